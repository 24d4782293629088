//! Folders for decoders that read files: in memory, where the system has such a place.

use std::{path::Path, sync::OnceLock};

use tempfile::TempDir;

/// Returns a folder of this process.
pub(crate) fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a folder for files")
}

/// Returns a folder that targets with one file write it to, over and over.
pub(crate) fn shared() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(folder).path()
}
