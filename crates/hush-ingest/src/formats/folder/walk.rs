//! The walk over the files below a folder, which counts the files that it skips.

use std::{
    fmt,
    fs::{self, Metadata},
    ops::AddAssign,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use hush_protocol::wording::Wording;

use crate::{FolderAs, IngestError, IngestOptions};

/// The counts of what is in a folder of files but not among its records. The text form is a line for the user who builds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Files whose name starts with a dot.
    pub hidden_files: u64,
    /// Folders whose name starts with a dot; nothing in them is counted.
    pub hidden_folders: u64,
    /// Symbolic links.
    pub links: u64,
}

impl AddAssign for Skipped {
    fn add_assign(&mut self, other: Self) {
        self.hidden_files += other.hidden_files;
        self.hidden_folders += other.hidden_folders;
        self.links += other.links;
    }
}

impl Skipped {
    /// Returns whether nothing was skipped.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (self.hidden_files, "hidden file"),
            (self.hidden_folders, "hidden folder"),
            (self.links, "link"),
        ];
        let counts: Vec<String> = kinds
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{count} {name}{}", if *count == 1 { "" } else { "s" }))
            .collect();
        let counts = match counts.split_last() {
            Some((last, rest @ [_, ..])) => format!("{} and {last}", rest.join(", ")),
            _ => counts.concat(),
        };
        let switches = match (self.hidden_files + self.hidden_folders, self.links) {
            (_, 0) => Wording("{hidden=true} takes"),
            (0, _) => Wording("{follow-links=true} takes"),
            _ => Wording("{hidden=true} and {follow-links=true} take"),
        };
        let them = if self.hidden_files + self.hidden_folders + self.links == 1 { "it" } else { "them" };
        write!(f, "skipped {counts}: {switches} {them}")
    }
}

/// An iterator over the files below a folder, each folder in the byte order of its names. Only the names of one folder per level
/// are held in memory.
pub(crate) struct Walk {
    hidden: bool,
    follow_links: bool,
    /// Whether the files have rows. Files that writers of such folders leave beside them, such as `_SUCCESS`, then count as hidden.
    is_of_rows: bool,
    levels: Vec<OpenFolder>,
    skipped: Skipped,
}

struct OpenFolder {
    /// The entries left, last first.
    entries: Vec<PathBuf>,
    /// Device and inode of the folder.
    id: (u64, u64),
}

impl Walk {
    pub(crate) fn new(root: &Path, options: &IngestOptions) -> Result<Self, IngestError> {
        let hidden = options.hidden;
        let follow_links = options.follow_links;
        let id =
            id(&root.metadata().map_err(|source| IngestError::Unreadable { path: root.into(), source })?);
        let levels = vec![OpenFolder { entries: entries(root)?, id }];
        let is_of_rows = options.folder == Some(FolderAs::Rows);
        Ok(Self { hidden, follow_links, is_of_rows, levels, skipped: Skipped::default() })
    }

    /// Returns the counts of what was skipped so far.
    pub(crate) fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// Returns whether the file at `path` is a record. Enters a folder, and counts what is skipped.
    fn is_taken(&mut self, path: &Path) -> Result<bool, IngestError> {
        let unreadable = |source| IngestError::Unreadable { path: path.into(), source };
        let mut metadata = path.symlink_metadata().map_err(unreadable)?;
        let is_hidden = starts_with(path, b".") || (self.is_of_rows && starts_with(path, b"_"));
        if !self.hidden && is_hidden {
            let is_folder = metadata.is_dir();
            *(if is_folder { &mut self.skipped.hidden_folders } else { &mut self.skipped.hidden_files }) += 1;
            return Ok(false);
        }
        let is_link = metadata.is_symlink();
        if is_link && !self.follow_links {
            self.skipped.links += 1;
            return Ok(false);
        }
        if is_link {
            metadata = path.metadata().map_err(unreadable)?;
        }
        if metadata.is_file() {
            return Ok(true);
        }
        if !metadata.is_dir() {
            return Err(IngestError::NotAFile { path: path.into() });
        }
        let id = id(&metadata);
        if is_link && self.levels.iter().any(|level| level.id == id) {
            return Err(IngestError::LinkLoop { path: path.into() });
        }
        self.levels.push(OpenFolder { entries: entries(path)?, id });
        Ok(false)
    }
}

impl Iterator for Walk {
    type Item = Result<PathBuf, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(path) = self.levels.last_mut()?.entries.pop() else {
                self.levels.pop();
                continue;
            };
            match self.is_taken(&path) {
                Ok(true) => return Some(Ok(path)),
                Ok(false) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

fn starts_with(path: &Path, prefix: &[u8]) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(prefix))
}

/// Returns the device and the inode of a file, which identify it on this machine under any name.
pub(crate) fn id(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Returns the entries of a folder, last first.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, IngestError> {
    let unreadable = |source| IngestError::Unreadable { path: folder.into(), source };
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        entries.push(entry.map_err(unreadable)?.path());
    }
    entries.sort_unstable_by(|a, b| b.cmp(a));
    Ok(entries)
}
