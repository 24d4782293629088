//! Locks of files, between processes.

use std::{fs::File, io};

use rustix::{
    fs::{FlockOperation, flock},
    io::{Errno, retry_on_intr},
};

/// Waits until no other process holds `file`. Closing it lets go. Not [`File::lock`], which Android does not have.
pub(super) fn lock(file: &File) -> io::Result<()> {
    Ok(retry_on_intr(|| flock(file, FlockOperation::LockExclusive))?)
}

/// Takes `file` if no other process holds it, and says whether it did.
pub(super) fn try_lock(file: &File) -> io::Result<bool> {
    match retry_on_intr(|| flock(file, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
