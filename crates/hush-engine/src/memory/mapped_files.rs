//! The files of a table that are read where they are on disk.

use std::sync::Arc;

use hush_store::snapshot::{MappedFile, SnapshotError};

/// Mapped files, which whoever can write to them can change: asked after every scan.
#[derive(Default)]
pub(crate) struct MappedFiles(Vec<Arc<MappedFile>>);

impl MappedFiles {
    pub(crate) fn push(&mut self, file: Arc<MappedFile>) {
        self.0.push(file);
    }

    /// Looks whether all are what they were when they were opened.
    ///
    /// # Errors
    /// [`SnapshotError::Changed`] names the first that is not.
    pub(crate) fn check(&self) -> Result<(), SnapshotError> {
        self.0.iter().try_for_each(|file| file.check())
    }

    /// Forgets those that nobody reads any more, now that the table is open.
    pub(crate) fn forget_unused(&mut self) {
        self.0.retain(|file| Arc::strong_count(file) > 1);
    }
}
