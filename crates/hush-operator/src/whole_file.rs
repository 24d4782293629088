//! The atomic replacement of files, and locks on them.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::{FlockOperation, flock};

/// Replaces the file at `path` by `text`, with the permissions `mode`, atomically.
///
/// # Errors
/// The error of the system. The file is then unchanged.
pub fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    let mut options = OpenOptions::new();
    let written = options.write(true).create_new(true).mode(mode).open(&partial).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, path)
    });
    if written.is_err() {
        // The first error is returned; the partial file may not exist.
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Locks the file at `path` against changes by others until the result is dropped, so that a read and a later write are one step.
/// Fails with a message if the lock file beside `path` cannot be created or locked.
pub fn lock(path: &Path) -> Result<File, String> {
    let beside = path.with_added_extension("lock");
    let lock = File::create(&beside).and_then(|file| {
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    });
    lock.map_err(|error| {
        format!("cannot change {}, for want of {}: {error}", path.display(), beside.display())
    })
}
