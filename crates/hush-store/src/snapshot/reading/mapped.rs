//! A file that is mapped read-only.

use std::{fs::File, ops::Range, path::Path};

use memmap2::Mmap;

use super::{guard::Guard, stored::StoredFile};
use crate::snapshot::{SnapshotError, system};

/// A file mapped read-only. If the file is truncated, the lost bytes read as zeros, and [`MappedFile::check`] fails.
pub struct MappedFile {
    /// The guard against lost pages. Dropped before the map.
    guard: Guard,
    map: Mmap,
    file: StoredFile,
    /// Whether other processes may write the missing bytes of the file.
    is_filled_by_others: bool,
}

impl MappedFile {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// [`SnapshotError::NotRegular`] if it is a link, or no regular file; the system's error, with the path.
    pub fn open(path: &Path) -> Result<Self, SnapshotError> {
        StoredFile::open(path)?.map()
    }

    pub(in crate::snapshot) fn new(file: StoredFile) -> Result<Self, SnapshotError> {
        // SAFETY: snapshots are immutable by design (replaced by rename, never written in place). A process that writes into one
        // under a running server changes bytes that are only ever read as bytes. If a process truncates one, the guard handles it.
        let map = unsafe { Mmap::map(file.file()) }.map_err(SnapshotError::io(file.path(), "map"))?;
        // SAFETY: fields are dropped in order: the guard before the map.
        let guard = unsafe { Guard::new(&map) }.map_err(SnapshotError::io(file.path(), "guard"))?;
        Ok(Self { guard, map, file, is_filled_by_others: false })
    }

    /// Returns a file whose missing bytes other processes write. It changes, but the bytes that were read from it do not.
    pub fn filled_by_others(self) -> Self {
        Self { is_filled_by_others: true, ..self }
    }

    /// Checks whether the file is unchanged since it was opened. Call it after reading the map and before using the result.
    ///
    /// # Errors
    /// [`SnapshotError::Changed`] if the file was truncated, was written to, or cannot be read.
    pub fn check(&self) -> Result<(), SnapshotError> {
        if self.guard.is_torn() || !(self.is_filled_by_others || self.file.is_unchanged()) {
            return Err(self.file.changed());
        }
        Ok(())
    }

    /// Reads the whole file into the system's cache, so that the first query is as fast as later ones.
    ///
    /// # Errors
    /// The system's error, with the path; [`SnapshotError::Changed`] if pages are missing.
    pub fn make_resident(&self) -> Result<(), SnapshotError> {
        self.make_part_resident(0..self.map.len())
    }

    /// Reads a range of the file into the system's cache.
    ///
    /// # Errors
    /// The errors of [`MappedFile::make_resident`].
    ///
    /// # Panics
    /// If the file ends before the range does.
    pub fn make_part_resident(&self, range: Range<usize>) -> Result<(), SnapshotError> {
        system::populate(&self.map, range).map_err(|error| match error.raw_os_error() {
            // A page of the file is missing.
            Some(libc::EFAULT) => self.file.changed(),
            _ => SnapshotError::io(self.file.path(), "read")(error),
        })
    }

    /// Returns the file, without its map.
    pub fn into_file(self) -> File {
        self.file.into_file()
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}
