//! Opening the files of a table, which are regular files and never links.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use crate::snapshot::SnapshotError;

/// Opens the file at `path` to read, unless it is a link or anything else than a regular file: whoever copies a table, or is let
/// into its folder, has no say over which other files of the machine are read. The folder may be a link: versions are switched so.
pub(in crate::snapshot) fn open(path: &Path) -> Result<File, SnapshotError> {
    let refused = || SnapshotError::NotRegular { path: path.to_owned() };
    // Without O_NONBLOCK, opening a pipe waits for a writer.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) if path.is_symlink() => refused(),
        // A socket.
        Some(libc::ENXIO) => refused(),
        _ => SnapshotError::io(path, "open")(error),
    })?;
    let metadata = file.metadata().map_err(SnapshotError::io(path, "read"))?;
    if metadata.is_file() { Ok(file) } else { Err(refused()) }
}
