//! The lock of a build: a file beside the table, which is removed when the build ends.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use crate::snapshot::SnapshotError;

/// An exclusive lock on the file at `path`. Dropping it removes the file. After a kill, the next build removes it.
pub(in crate::snapshot) struct BuildLock {
    path: PathBuf,
    file: File,
}

impl BuildLock {
    /// Locks the file at `path`, which guards `target`.
    ///
    /// # Errors
    /// [`SnapshotError::Busy`] if another build holds the lock; the system's error, with the path.
    pub(in crate::snapshot) fn acquire(mut path: PathBuf, target: &Path) -> Result<Self, SnapshotError> {
        loop {
            let mut options = OpenOptions::new();
            options.create(true).truncate(false).write(true).custom_flags(libc::O_NOFOLLOW);
            let file = options.open(&path).map_err(SnapshotError::io(&path, "create the lock file"))?;
            // SAFETY: flock on a descriptor that is open for the whole call.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
                let error = io::Error::last_os_error();
                return Err(match error.kind() {
                    io::ErrorKind::WouldBlock => SnapshotError::Busy(target.to_owned()),
                    _ => SnapshotError::io(path, "lock")(error),
                });
            }
            let lock = Self { path, file };
            if lock.is_at_its_path().map_err(SnapshotError::io(&lock.path, "read"))? {
                return Ok(lock);
            }
            // A build that ended meanwhile has removed the opened file. A lock on a removed file keeps no other build out.
            path = lock.path.clone();
        }
    }

    /// Returns whether the locked file is still the one that other builds find at the path.
    fn is_at_its_path(&self) -> io::Result<bool> {
        let own = self.file.metadata()?;
        match fs::symlink_metadata(&self.path) {
            Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for BuildLock {
    fn drop(&mut self) {
        // The file is removed while it is locked. A build that opened it before finds out after locking it. If it cannot be
        // removed, it does no harm.
        if self.is_at_its_path().is_ok_and(|is_ours| is_ours) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use super::*;

    #[test]
    fn a_lock_keeps_others_out_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        // A killed build leaves the file.
        fs::write(&path, b"").unwrap();
        let lock = BuildLock::acquire(path.clone(), dir.path()).unwrap();
        assert!(matches!(BuildLock::acquire(path.clone(), dir.path()), Err(SnapshotError::Busy(_))));
        drop(lock);
        assert!(!path.exists());
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
        assert!(matches!(BuildLock::acquire(path, dir.path()), Err(SnapshotError::Io { .. })));
        assert!(!dir.path().join("elsewhere").exists());
    }

    #[test]
    fn one_at_a_time_holds_it_while_others_remove_it() {
        const ROUNDS: usize = 2000;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let inside = AtomicUsize::new(0);
        let held = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let Ok(_lock) = BuildLock::acquire(path.clone(), dir.path()) else { continue };
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold the lock");
                        held.fetch_add(1, Ordering::SeqCst);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(held.into_inner() > 0);
        assert!(!path.exists());
    }
}
