//! Locks on files, between processes: `lock` waits as long as another process holds the lock, and `try_lock` returns whether the
//! file is locked now. `unlock` releases the lock. Closing the file does so too, unless the file is mapped: the map keeps it open.

pub(super) use system::{lock, try_lock, unlock};

/// The locks of Unix. [`std::fs::File::lock`] is not used, because it does not exist on Android.
#[cfg(unix)]
mod system {
    use std::{fs::File, io};

    use rustix::{
        fs::{FlockOperation, flock},
        io::{Errno, retry_on_intr},
    };

    /// Locks `file`, and waits as long as another process holds it.
    pub(in crate::http) fn lock(file: &File) -> io::Result<()> {
        Ok(retry_on_intr(|| flock(file, FlockOperation::LockExclusive))?)
    }

    /// Releases the lock of `file`.
    pub(in crate::http) fn unlock(file: &File) -> io::Result<()> {
        Ok(flock(file, FlockOperation::Unlock)?)
    }

    /// Locks `file` unless another process holds it. Returns whether the file is locked now.
    pub(in crate::http) fn try_lock(file: &File) -> io::Result<bool> {
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

    pub(in crate::http) fn lock(file: &File) -> io::Result<()> {
        file.lock()
    }

    pub(in crate::http) fn unlock(file: &File) -> io::Result<()> {
        file.unlock()
    }

    pub(in crate::http) fn try_lock(file: &File) -> io::Result<bool> {
        match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
