//! Names that survive a loss of power. A file that was synced is there afterwards only if its folder was synced, too.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

/// Makes the names in a folder durable. Fails with the system's error.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?.sync_all()
}

/// Creates a folder, and those above it that are missing. Their names are durable. Fails with the system's error.
pub fn create_folders(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(folder);
    if !parent.as_os_str().is_empty() {
        create_folders(parent)?;
    }
    // Another process may be faster.
    fs::create_dir(folder).or_else(|error| if folder.is_dir() { Ok(()) } else { Err(error) })?;
    sync_folder(parent)
}
