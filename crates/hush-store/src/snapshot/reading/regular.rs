//! Opens the files of a table, which have to be regular files, never links.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use crate::snapshot::SnapshotError;

/// Opens the file at `path` for reading. Refuses a link and anything but a regular file: otherwise whoever can write to a table's
/// folder could have other files of the machine read. The folder itself may be a link, by which versions are switched.
pub(in crate::snapshot) fn open(path: &Path) -> Result<File, SnapshotError> {
    let refused = || SnapshotError::NotRegular { path: path.to_owned() };
    // Without O_NONBLOCK, opening a pipe waits for a writer.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) if path.is_symlink() => refused(),
        // The system says this of a socket.
        Some(libc::ENXIO) => refused(),
        _ => SnapshotError::io(path, "open")(error),
    })?;
    let metadata = file.metadata().map_err(SnapshotError::io(path, "read"))?;
    if metadata.is_file() { Ok(file) } else { Err(refused()) }
}
