//! Opening a snapshot.

use std::{
    collections::HashMap,
    fs::{self, File},
    ops::Range,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use memmap2::{Advice, Mmap};

use super::{
    CHUNK_BYTES, FileEntry, HEADER_FILE, Header, SnapshotError,
    checksum::{chunks_of, differing, verify_chunks},
    regular,
};

/// How much of a snapshot is checked when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// The header's checksum and the length of every file: instant.
    Header,
    /// The checksum of every byte: reads everything once.
    Full,
}

/// Tells a file from another one that takes its place, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// That of the snapshot in `dir`, by its header; `None` if there is none.
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

/// A checked snapshot. It holds its files open: a snapshot that is replaced on disk stays whole for who opened it.
pub struct Snapshot {
    dir: PathBuf,
    header: Header,
    files: Vec<MappedFile>,
}

/// Files whose every byte was checked when an earlier epoch of a table was opened: those that the next one has too are not read
/// again.
#[derive(Clone, Debug, Default)]
pub struct Verified(HashMap<Stamp, [u8; 32]>);

/// A table may take another's place so many times while it is opened.
const REPLACED: usize = 100;

impl Snapshot {
    /// Opens the snapshot in `dir`.
    ///
    /// # Errors
    /// [`SnapshotError`] names the file that is missing, of another version, or damaged.
    pub fn open(dir: &Path, verify: Verify) -> Result<Self, SnapshotError> {
        Self::open_after(dir, verify, &mut Verified::default())
    }

    /// The same, where files that are `verified` are taken to be whole. These are then those of this snapshot.
    ///
    /// # Errors
    /// As [`Snapshot::open`].
    pub fn open_after(dir: &Path, verify: Verify, verified: &mut Verified) -> Result<Self, SnapshotError> {
        for _ in 1..REPLACED {
            let before = Stamp::of(dir);
            let snapshot = Self::mapped(dir);
            // Files of two tables are none.
            if before == Stamp::of(dir) {
                return snapshot?.verified(verify, verified);
            }
        }
        Self::mapped(dir)?.verified(verify, verified)
    }

    /// Opens all files.
    fn mapped(dir: &Path) -> Result<Self, SnapshotError> {
        let mut snapshot = Self { dir: dir.to_owned(), header: Header::read(dir)?, files: Vec::new() };
        for entry in &snapshot.header.files {
            let file = snapshot.map_entry(entry)?;
            snapshot.files.push(file);
        }
        Ok(snapshot)
    }

    fn verified(self, verify: Verify, verified: &mut Verified) -> Result<Self, SnapshotError> {
        let mut now = HashMap::new();
        if verify == Verify::Full {
            for (file, entry) in self.files.iter().zip(&self.header.files) {
                let metadata = file.file.metadata().map_err(SnapshotError::io(&file.path, "read"))?;
                let (stamp, digest) = (Stamp::new(&metadata), entry.digest());
                if verified.0.get(&stamp) != Some(&digest) {
                    verify_chunks(&file.path, file.as_ref(), entry.hashes())?;
                }
                now.insert(stamp, digest);
            }
        }
        verified.0 = now;
        Ok(self)
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The file called `name`, unless there is none or it has been taken out.
    pub fn file(&self, name: &str) -> Option<(&FileEntry, &MappedFile)> {
        let entry = self.header.files.iter().find(|entry| entry.name == name)?;
        let is_it = |file: &&MappedFile| file.path.file_name().is_some_and(|own| own == name);
        Some((entry, self.files.iter().find(is_it)?))
    }

    /// Takes the file called `name` out.
    ///
    /// # Errors
    /// [`SnapshotError::Header`] if the header does not list it.
    pub fn take(&mut self, name: &str) -> Result<MappedFile, SnapshotError> {
        match self.files.iter().position(|file| file.path.file_name().is_some_and(|own| own == name)) {
            Some(index) => Ok(self.files.swap_remove(index)),
            None => Err(self.damaged(format!("it does not list {name}"))),
        }
    }

    /// The same, once its checksums have been checked.
    ///
    /// # Errors
    /// Also [`SnapshotError::Corrupt`].
    pub fn take_checked(&mut self, name: &str) -> Result<MappedFile, SnapshotError> {
        let file = self.take(name)?;
        if let Some(entry) = self.header.files.iter().find(|entry| entry.name == name) {
            verify_chunks(&file.path, file.as_ref(), entry.hashes())?;
        }
        Ok(file)
    }

    /// Where the file called `name` is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn map_entry(&self, entry: &FileEntry) -> Result<MappedFile, SnapshotError> {
        let file = MappedFile::open(&self.dir.join(&entry.name))?;
        if file.as_ref().len() as u64 != entry.bytes {
            let actual = file.as_ref().len() as u64;
            return Err(SnapshotError::Length { path: file.path, expected: entry.bytes, actual });
        }
        Ok(file)
    }

    fn damaged(&self, reason: String) -> SnapshotError {
        SnapshotError::Header { path: self.dir.join(HEADER_FILE), reason }
    }
}

/// A file mapped read-only.
pub struct MappedFile {
    path: PathBuf,
    file: File,
    map: Mmap,
}

impl MappedFile {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// [`SnapshotError::NotRegular`] if it is a link, or no regular file; what the system says, with the path.
    pub fn open(path: &Path) -> Result<Self, SnapshotError> {
        let file = regular::open(path)?;
        // SAFETY: snapshots are immutable by design (replaced by rename, never written in place). Someone who
        // truncates one under a running server gets a bus error, not undefined contents in safe code's reach.
        let map = unsafe { Mmap::map(&file) }.map_err(SnapshotError::io(path, "map"))?;
        Ok(Self { path: path.to_owned(), file, map })
    }

    /// Reads all of it into memory, so that the first query is as fast as the next.
    ///
    /// # Errors
    /// What the system says, with the path.
    pub fn make_resident(&self) -> Result<(), SnapshotError> {
        self.make_part_resident(0..self.map.len())
    }

    /// Reads a range of it into memory.
    ///
    /// # Errors
    /// As [`MappedFile::make_resident`].
    ///
    /// # Panics
    /// If the file ends before the range does.
    pub fn make_part_resident(&self, range: Range<usize>) -> Result<(), SnapshotError> {
        let advised = self.map.advise_range(Advice::PopulateRead, range.start, range.len());
        advised.or_else(|error| match error.raw_os_error() {
            // Kernels before 5.14: touching every page does the same.
            Some(libc::EINVAL) => {
                let bytes = self.map[range].iter().step_by(4096);
                std::hint::black_box(bytes.fold(0, |sum: u8, byte| sum ^ byte));
                Ok(())
            }
            _ => Err(SnapshotError::io(&self.path, "read")(error)),
        })
    }

    /// Checks the checksums of those chunks that have a byte of some ranges; `entry` is the file's own.
    ///
    /// # Errors
    /// [`SnapshotError::Corrupt`] names the first that differs.
    pub fn verify_part(&self, entry: &FileEntry, ranges: &[Range<usize>]) -> Result<(), SnapshotError> {
        match differing(self.as_ref(), entry.hashes(), &chunks_of(ranges))[..] {
            [] => Ok(()),
            [chunk, ..] => {
                let (start, end) = (chunk * CHUNK_BYTES, ((chunk + 1) * CHUNK_BYTES).min(self.map.len()));
                Err(SnapshotError::Corrupt { path: self.path.clone(), start: start as u64, end: end as u64 })
            }
        }
    }

    /// The file, without its map.
    pub fn into_file(self) -> File {
        self.file
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}
