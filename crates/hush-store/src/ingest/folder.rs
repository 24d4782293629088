//! A folder of files: the key is the name relative to the folder, the value the content.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    IngestError, IngestOptions, Place, Progress, ProgressUnit, Reader, Record,
    record::{check_key_size, check_value_size},
};

/// Reads the files of a folder and its subfolders, each folder in the order of its names' bytes.
pub(super) struct FolderReader {
    root: PathBuf,
    walk: Walk,
    max_value_size: usize,
    row: u64,
    total: u64,
}

impl FolderReader {
    pub(super) fn open(root: &Path, options: &IngestOptions) -> Result<Self, IngestError> {
        let mut total = 0;
        for file in Walk::new(root)? {
            file?;
            total += 1;
        }
        let max_value_size = options.max_value_size as usize;
        Ok(Self { root: root.into(), walk: Walk::new(root)?, max_value_size, row: 0, total })
    }

    fn record(&self, path: PathBuf) -> Result<Record, IngestError> {
        let name = path.strip_prefix(&self.root).unwrap_or(&path);
        let key = name.as_os_str().as_bytes().to_vec();
        let place = || Place { path: path.clone(), row: self.row, line: None };
        check_key_size(key.len(), place)?;
        let unreadable = |source| IngestError::Unreadable { path: path.clone(), source };
        let file = File::open(&path).map_err(unreadable)?;
        let size = usize::try_from(file.metadata().map_err(unreadable)?.len()).unwrap_or(usize::MAX);
        check_value_size(size, self.max_value_size, place)?;
        let mut value = Vec::with_capacity(size);
        // The file may have grown since.
        file.take(self.max_value_size as u64 + 1).read_to_end(&mut value).map_err(unreadable)?;
        check_value_size(value.len(), self.max_value_size, place)?;
        Ok(Record { key: Some(key), value })
    }
}

impl Iterator for FolderReader {
    type Item = Result<Record, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        let path = match self.walk.next()? {
            Ok(path) => path,
            Err(error) => return Some(Err(error)),
        };
        self.row += 1;
        Some(self.record(path))
    }
}

impl Reader for FolderReader {
    fn progress(&self) -> Progress {
        Progress { read: self.row, total: Some(self.total), unit: ProgressUnit::Rows }
    }
}

/// The files below a folder. Holds the names of one folder per level.
struct Walk {
    /// For each level, the entries left, last first.
    levels: Vec<Vec<PathBuf>>,
}

impl Walk {
    fn new(root: &Path) -> Result<Self, IngestError> {
        Ok(Self { levels: vec![entries(root)?] })
    }
}

impl Iterator for Walk {
    type Item = Result<PathBuf, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(path) = self.levels.last_mut()?.pop() else {
                self.levels.pop();
                continue;
            };
            match kind(&path) {
                Ok(Kind::File) => return Some(Ok(path)),
                Ok(Kind::Folder) => match entries(&path) {
                    Ok(level) => self.levels.push(level),
                    Err(error) => return Some(Err(error)),
                },
                Ok(Kind::Other) => return Some(Err(IngestError::NotAFile { path })),
                Err(source) => return Some(Err(IngestError::Unreadable { path, source })),
            }
        }
    }
}

enum Kind {
    File,
    Folder,
    Other,
}

/// What is at `path`. A link to a file is a file; one to a folder could lead round in a circle.
fn kind(path: &Path) -> io::Result<Kind> {
    Ok(if path.symlink_metadata()?.is_dir() {
        Kind::Folder
    } else if path.metadata()?.is_file() {
        Kind::File
    } else {
        Kind::Other
    })
}

/// The entries of a folder, last first.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, IngestError> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    let mut entries = read().map_err(|source| IngestError::Unreadable { path: folder.into(), source })?;
    entries.sort_unstable_by(|a, b| b.cmp(a));
    Ok(entries)
}
