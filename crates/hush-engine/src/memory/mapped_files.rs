//! The files of a table that are read where they are on disk.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hush_store::snapshot::{MappedFile, SnapshotError};

/// Mapped files, which other processes may change: they are checked after every scan. Clones have the same files.
#[derive(Clone, Default)]
pub(crate) struct MappedFiles(Arc<Mutex<Vec<Arc<MappedFile>>>>);

impl MappedFiles {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<MappedFile>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, file: Arc<MappedFile>) {
        self.lock().push(file);
    }

    /// Checks that no file has changed since it was opened.
    ///
    /// # Errors
    /// [`SnapshotError::Changed`] names the first file that has.
    pub(crate) fn check(&self) -> Result<(), SnapshotError> {
        self.lock().iter().try_for_each(|file| file.check())
    }

    /// Forgets the files that nobody reads any more, now that the table is open.
    pub(crate) fn forget_unused(&self) {
        self.lock().retain(|file| Arc::strong_count(file) > 1);
    }
}
