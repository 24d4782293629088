//! The atomic replacement of files, and locks on them.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::{FlockOperation, flock};

use crate::durable::sync_folder;

/// Replaces the file at `path` by `text`, with the permissions `mode`, atomically and durably.
///
/// # Errors
/// The error of the system. The file is then unchanged, unless only the sync of its folder failed.
pub fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    // A killed process of the same number may have left it: in a container, that is often 1. What stays is an error below.
    let _ = fs::remove_file(&partial);
    let mut options = OpenOptions::new();
    let written = options.write(true).create_new(true).mode(mode).open(&partial).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, path)?;
        sync_folder(path.parent().unwrap_or(path))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_of_the_same_number_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let left = path.with_extension(format!("{}.partial", std::process::id()));
        fs::write(&left, "half").unwrap();
        write(&path, "whole", 0o600).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert!(!left.exists());
    }
}
