//! Locks on files, between processes.

use std::{fs::File, io};

/// Locks `file`, and waits as long as another process holds it. Closing the file releases the lock.
pub(super) fn lock(file: &File) -> io::Result<()> {
    system::lock(file)
}

/// Locks `file` unless another process holds it. Returns whether the file is locked now.
pub(super) fn try_lock(file: &File) -> io::Result<bool> {
    system::try_lock(file)
}

/// The locks of Unix. [`File::lock`] is not used, because it does not exist on Android.
#[cfg(unix)]
mod system {
    use std::{fs::File, io};

    use rustix::{
        fs::{FlockOperation, flock},
        io::{Errno, retry_on_intr},
    };

    pub(super) fn lock(file: &File) -> io::Result<()> {
        Ok(retry_on_intr(|| flock(file, FlockOperation::LockExclusive))?)
    }

    pub(super) fn try_lock(file: &File) -> io::Result<bool> {
        match retry_on_intr(|| flock(file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::{
        fs::{File, TryLockError},
        io,
    };

    pub(super) fn lock(file: &File) -> io::Result<()> {
        file.lock()
    }

    pub(super) fn try_lock(file: &File) -> io::Result<bool> {
        match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
