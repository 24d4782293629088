//! Opening a snapshot.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use memmap2::{Mmap, MmapOptions};

use super::{CHUNK_BYTES, FileEntry, Header, SnapshotError, checksum::verify_chunks};

/// How much of a snapshot is checked when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// The header's checksum and the length of every file: instant.
    Header,
    /// The checksum of every byte: reads everything once.
    Full,
}

/// When the pages of a map are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Residency {
    /// When they are touched.
    Lazy,
    /// At once.
    Resident,
}

/// A checked snapshot.
pub struct Snapshot {
    dir: PathBuf,
    header: Header,
}

impl Snapshot {
    /// Opens the snapshot in `dir`.
    ///
    /// # Errors
    /// [`SnapshotError`] names the file that is missing, of another version, or damaged.
    pub fn open(dir: &Path, verify: Verify) -> Result<Self, SnapshotError> {
        let snapshot = Self { dir: dir.to_owned(), header: Header::read(dir)? };
        for entry in &snapshot.header.files {
            let file = snapshot.map_entry(entry, Residency::Lazy)?;
            if verify == Verify::Full {
                verify_chunks(&file.path, file.as_ref(), entry.hashes())?;
            }
        }
        Ok(snapshot)
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Maps the file called `name` and reads all of it into memory, so that the first query is as fast as the next.
    ///
    /// # Errors
    /// [`SnapshotError::Header`] if the header does not list it; otherwise what the system says.
    pub fn map_resident(&self, name: &str) -> Result<MappedFile, SnapshotError> {
        match self.header.files.iter().find(|entry| entry.name == name) {
            Some(entry) => self.map_entry(entry, Residency::Resident),
            None => Err(self.damaged(format!("it does not list {name}"))),
        }
    }

    fn map_entry(&self, entry: &FileEntry, residency: Residency) -> Result<MappedFile, SnapshotError> {
        if entry.name.contains(['/', '\\']) || entry.name.starts_with('.') {
            return Err(self.damaged(format!("it lists a file outside the folder: {}", entry.name)));
        }
        let chunks = entry.bytes.div_ceil(CHUNK_BYTES as u64);
        if entry.chunk_bytes != CHUNK_BYTES as u64 || chunks * 32 != entry.chunks.len() as u64 {
            return Err(self.damaged(format!("the checksums of {} do not fit its length", entry.name)));
        }
        let file = MappedFile::map(&self.dir.join(&entry.name), residency)?;
        if file.as_ref().len() as u64 != entry.bytes {
            let actual = file.as_ref().len() as u64;
            return Err(SnapshotError::Length { path: file.path, expected: entry.bytes, actual });
        }
        Ok(file)
    }

    fn damaged(&self, reason: String) -> SnapshotError {
        SnapshotError::Header { path: self.dir.join(super::HEADER_FILE), reason }
    }
}

/// A file mapped read-only.
pub struct MappedFile {
    path: PathBuf,
    map: Mmap,
}

impl MappedFile {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// What the system says, with the path.
    pub fn open(path: &Path) -> Result<Self, SnapshotError> {
        Self::map(path, Residency::Lazy)
    }

    fn map(path: &Path, residency: Residency) -> Result<Self, SnapshotError> {
        let file = File::open(path).map_err(SnapshotError::io(path, "open"))?;
        let mut options = MmapOptions::new();
        if residency == Residency::Resident {
            options.populate();
        }
        // SAFETY: snapshots are immutable by design (replaced by rename, never written in place). Someone who
        // truncates one under a running server gets a bus error, not undefined contents in safe code's reach.
        let map = unsafe { options.map(&file) }.map_err(SnapshotError::io(path, "map"))?;
        Ok(Self { path: path.to_owned(), map })
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}
