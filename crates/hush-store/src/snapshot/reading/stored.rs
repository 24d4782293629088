//! An open file of a snapshot that has not been read yet.

use std::{
    fs::{self, File},
    io::ErrorKind,
    ops::Range,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    regular,
    resident::{Checksums, ResidentFile},
};
use crate::snapshot::{
    CHUNK_BYTES, FileEntry, HEADER_FILE, MappedFile, SnapshotError,
    checksum::{self, Buffer, chunks_of},
};

/// The identity of a file on disk, by which its replacement is noticed without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// Returns the stamp of the snapshot in `dir`, by its header; `None` if there is none.
    pub fn of(dir: &Path) -> Option<Self> {
        fs::metadata(dir.join(HEADER_FILE)).ok().as_ref().map(Self::new)
    }

    fn new(file: &fs::Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
        }
    }
}

/// An open file. Replacing the file on disk does not change it.
pub struct StoredFile {
    path: PathBuf,
    file: File,
    /// The stamp of the file when it was opened.
    stamp: Stamp,
}

impl StoredFile {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// [`SnapshotError::NotRegular`] if it is a link, or no regular file; the system's error, with the path.
    pub(in crate::snapshot) fn open(path: &Path) -> Result<Self, SnapshotError> {
        let file = regular::open(path)?;
        let metadata = file.metadata().map_err(SnapshotError::io(path, "read"))?;
        Ok(Self { path: path.to_owned(), file, stamp: Stamp::new(&metadata) })
    }

    /// Returns the path at which the file was opened.
    pub(in crate::snapshot) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::snapshot) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the stamp of the file when it was opened.
    pub(in crate::snapshot) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Returns the file's length when it was opened, in bytes.
    pub fn bytes(&self) -> u64 {
        self.stamp.bytes
    }

    /// Returns whether the length and the time of the file are unchanged. A file without readable metadata counts as changed.
    pub(in crate::snapshot) fn is_unchanged(&self) -> bool {
        self.file.metadata().is_ok_and(|now| Stamp::new(&now) == self.stamp)
    }

    pub(in crate::snapshot) fn changed(&self) -> SnapshotError {
        SnapshotError::Changed { path: self.path.clone() }
    }

    /// Returns another handle of the same open file. Fails with [`SnapshotError::Io`] if the system has no more handles.
    pub fn again(&self) -> Result<Self, SnapshotError> {
        let file = self.file.try_clone().map_err(SnapshotError::io(&self.path, "open"))?;
        Ok(Self { path: self.path.clone(), file, stamp: self.stamp })
    }

    /// Maps the file read-only. Fails with [`SnapshotError::Io`].
    pub fn map(self) -> Result<MappedFile, SnapshotError> {
        MappedFile::new(self)
    }

    /// Reads `ranges` of the file into memory of this process. All other bytes are zeros, and take no memory. `entry` is the
    /// header's entry of the file. If the same content is in memory already, that memory is shared.
    ///
    /// # Errors
    /// [`SnapshotError::Corrupt`], [`SnapshotError::Length`] or [`SnapshotError::Changed`] if the file does not match its entry;
    /// the system's error, with the path.
    pub fn read(
        &self,
        entry: &FileEntry,
        ranges: &[Range<usize>],
        checksums: Checksums,
    ) -> Result<Arc<ResidentFile>, SnapshotError> {
        ResidentFile::shared(self, entry, ranges, checksums)
    }

    /// Returns whether [`StoredFile::read`] of the whole file would share memory that exists already.
    pub fn is_resident(&self, entry: &FileEntry, checksums: Checksums) -> bool {
        ResidentFile::find(self, entry, &[0..entry.bytes as usize], checksums).is_some()
    }

    /// Checks the checksums of the chunks that contain a byte of `ranges`. `entry` is the header's entry of the file.
    pub fn verify(&self, entry: &FileEntry, ranges: &[Range<usize>]) -> Result<(), SnapshotError> {
        checksum::in_parallel(chunks_of(ranges), |chunk, buffer: &mut Buffer| {
            let range = entry.chunk(chunk);
            let content = buffer.of(range.len());
            self.read_at(content, range.start)?;
            self.compare(entry, chunk, content)
        })
    }

    /// Fills `to` with the bytes of the file from `start` on.
    pub(in crate::snapshot) fn read_at(&self, to: &mut [u8], start: usize) -> Result<(), SnapshotError> {
        self.file.read_exact_at(to, start as u64).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => SnapshotError::Length {
                path: self.path.clone(),
                expected: self.stamp.bytes,
                actual: self.file.metadata().map_or(0, |now| now.len()),
            },
            _ => SnapshotError::io(&self.path, "read")(error),
        })
    }

    /// Compares the content of chunk number `chunk` with its checksum.
    pub(in crate::snapshot) fn compare(
        &self,
        entry: &FileEntry,
        chunk: usize,
        content: &[u8],
    ) -> Result<(), SnapshotError> {
        let expected = entry.hashes().get(chunk).copied().map(blake3::Hash::from_bytes);
        if expected == Some(blake3::hash(content)) {
            return Ok(());
        }
        let start = (chunk * CHUNK_BYTES) as u64;
        Err(SnapshotError::Corrupt { path: self.path.clone(), start, end: start + content.len() as u64 })
    }

    /// Returns the system's handle of the file.
    pub fn into_file(self) -> File {
        self.file
    }
}
