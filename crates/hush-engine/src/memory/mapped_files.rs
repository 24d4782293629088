//! The files of a table that are read from the disk through a mapping.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hush_store::snapshot::{MappedFile, SnapshotError};

/// Mapped files. Others may write to them, so they are checked after every scan. Clones share the files.
#[derive(Clone, Default)]
pub(crate) struct MappedFiles(Arc<Mutex<Vec<Arc<MappedFile>>>>);

impl MappedFiles {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<MappedFile>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, file: Arc<MappedFile>) {
        self.lock().push(file);
    }

    /// Checks whether all files are as they were when they were opened.
    ///
    /// # Errors
    /// [`SnapshotError::Changed`] names the first file that is not.
    pub(crate) fn check(&self) -> Result<(), SnapshotError> {
        self.lock().iter().try_for_each(|file| file.check())
    }

    /// Forgets the files that nobody reads any more, now that the table is open.
    pub(crate) fn forget_unused(&self) {
        self.lock().retain(|file| Arc::strong_count(file) > 1);
    }
}
