//! Locks on files, between processes.

use std::{fs::File, io};

use rustix::{
    fs::{FlockOperation, flock},
    io::{Errno, retry_on_intr},
};

/// Locks `file`, and waits as long as another process holds it. Closing the file releases the lock. [`File::lock`] is not
/// used, because it does not exist on Android.
pub(super) fn lock(file: &File) -> io::Result<()> {
    Ok(retry_on_intr(|| flock(file, FlockOperation::LockExclusive))?)
}

/// Locks `file` unless another process holds it. Returns whether the file is locked now.
pub(super) fn try_lock(file: &File) -> io::Result<bool> {
    match retry_on_intr(|| flock(file, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
