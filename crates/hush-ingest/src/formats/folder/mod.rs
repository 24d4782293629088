//! A folder of files: each key is a name relative to the folder, each value the content of the file.

pub(crate) mod walk;

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use hush_protocol::{
    column_type::{Layout, PlainType},
    schema::{Column, Schema, append_single},
};

use crate::{
    Format, IngestError, IngestOptions, Place, Progress, ProgressUnit, Reader, Record,
    formats::folder::walk::{Skipped, Walk},
    record::projection::{Projection, check_key_size, check_value_size},
};

/// A reader of the files of a folder and its subfolders. Each folder is read in the byte order of its names.
pub(crate) struct FolderReader {
    root: PathBuf,
    walk: Walk,
    follow_links: bool,
    skipped: Skipped,
    max_value_size: usize,
    row: u64,
    total: u64,
}

impl FolderReader {
    pub(crate) fn open(root: &Path, options: &IngestOptions) -> Result<Self, IngestError> {
        let mut total = 0;
        let mut all = Walk::new(root, options)?;
        for file in &mut all {
            let file = file?;
            if options.folder.is_none() && Format::is_of_rows(&file) {
                return Err(IngestError::FolderOfRows { path: root.into(), file });
            }
            total += 1;
        }
        options.check(root, Format::Folder)?;
        Ok(Self {
            root: root.into(),
            walk: Walk::new(root, options)?,
            follow_links: options.follow_links,
            skipped: all.skipped(),
            max_value_size: options.max_value_size as usize,
            row: 0,
            total,
        })
    }

    fn record(&self, path: PathBuf) -> Result<Record, IngestError> {
        let name = path.strip_prefix(&self.root).unwrap_or(&path);
        let key = name.as_os_str().as_bytes().to_vec();
        let place = || Place { path: path.clone(), row: self.row, line: None };
        check_key_size(key.len(), place)?;
        let unreadable = |source| IngestError::Unreadable { path: path.clone(), source };
        let file = self.open_file(&path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(IngestError::NotAFile { path: path.clone() });
        }
        let size = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        check_value_size(size, self.max_value_size, place)?;
        let mut content = Vec::with_capacity(size);
        let mut value = Vec::new();
        // The file may have grown since its metadata was read.
        file.take(self.max_value_size as u64 + 1).read_to_end(&mut content).map_err(unreadable)?;
        check_value_size(content.len(), self.max_value_size, place)?;
        append_single(Some(&content), &mut value);
        Ok(Record { key: Some(key), value })
    }

    /// Opens a file. Without `follow_links` links are refused, and a pipe does not block: the file may have been replaced since it
    /// was found.
    fn open_file(&self, path: &Path) -> io::Result<File> {
        let links = if self.follow_links { 0 } else { libc::O_NOFOLLOW };
        OpenOptions::new().read(true).custom_flags(links | libc::O_NONBLOCK).open(path)
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

    fn projection(&self) -> Option<&Projection> {
        None
    }

    fn columns(&self) -> Option<Schema> {
        // A name may be any bytes.
        let column = |name: &str, own: PlainType| vec![Column(name.into(), own.into())];
        let content = PlainType::Binary(Layout::Short);
        Some(Schema {
            key: column("name", PlainType::Any),
            value: column("content", content),
            ..Schema::default()
        })
    }

    fn skipped(&self) -> Skipped {
        self.skipped
    }
}
