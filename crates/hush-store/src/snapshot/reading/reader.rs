//! Opening a snapshot.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use crate::snapshot::{
    Checksums, FileEntry, HEADER_FILE, Header, MappedFile, SnapshotError, Stamp, StoredFile,
    checksum::verify_chunks,
};

/// The extent of the checks when a snapshot is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// The header's checksum and the length of every file: instant.
    Header,
    /// The checksum of every byte: reads everything once.
    Full,
}

/// A checked snapshot. Its files stay open: a snapshot that is replaced on disk stays whole for the process that opened it.
pub struct Snapshot {
    dir: PathBuf,
    header: Header,
    files: Vec<StoredFile>,
}

/// The files whose bytes were all checked when an earlier epoch of the table was opened. Files that the next epoch shares are not
/// read again.
#[derive(Clone, Debug, Default)]
pub struct Verified(HashMap<Stamp, [u8; 32]>);

impl Verified {
    /// Returns how to treat the checksums of a file: they are compared if `verify` asks for it and they are not known already.
    pub fn checksums(&self, verify: Verify, file: &StoredFile, entry: &FileEntry) -> Checksums {
        match verify {
            _ if self.0.get(&file.stamp()) == Some(&entry.digest()) => Checksums::Known,
            Verify::Header => Checksums::Skip,
            Verify::Full => Checksums::Compare,
        }
    }
}

/// The maximum number of attempts to open a table that is replaced meanwhile.
const REPLACED: usize = 100;

impl Snapshot {
    /// Opens the snapshot in `dir`, and checks it as far as `verify` says. Fails with [`SnapshotError::Missing`] if there is none,
    /// with [`SnapshotError::Header`] or [`SnapshotError::Version`] if its header is invalid, with [`SnapshotError::NotRegular`] or
    /// [`SnapshotError::Length`] for a bad file, with [`SnapshotError::Corrupt`] for a wrong checksum, and with the system's error.
    pub fn open(dir: &Path, verify: Verify) -> Result<Self, SnapshotError> {
        let snapshot = Self::opened(dir)?;
        if verify == Verify::Full {
            snapshot.verify(&Verified::default(), |_| true)?;
        }
        Ok(snapshot)
    }

    /// Opens the files of one table. Repeats this if a new table replaces it meanwhile.
    fn opened(dir: &Path) -> Result<Self, SnapshotError> {
        for _ in 1..REPLACED {
            let before = Stamp::of(dir);
            let snapshot = Self::with_files(dir);
            // If the header changed meanwhile, the files may be of two tables.
            if before == Stamp::of(dir) {
                return snapshot;
            }
        }
        Self::with_files(dir)
    }

    /// Reads the header and opens all files, once.
    fn with_files(dir: &Path) -> Result<Self, SnapshotError> {
        let mut snapshot = Self { dir: dir.to_owned(), header: Header::read(dir)?, files: Vec::new() };
        for entry in &snapshot.header.files {
            let file = snapshot.open_entry(entry)?;
            snapshot.files.push(file);
        }
        Ok(snapshot)
    }

    /// Checks every byte of the files that are `wanted`, except those that are `verified`.
    pub fn verify(
        &self,
        verified: &Verified,
        wanted: impl Fn(&FileEntry) -> bool,
    ) -> Result<(), SnapshotError> {
        for (entry, file) in self.entries().filter(|(entry, _)| wanted(entry)) {
            if verified.checksums(Verify::Full, file, entry) == Checksums::Compare {
                file.verify(entry, &[0..entry.bytes as usize])?;
            }
        }
        Ok(())
    }

    /// Returns the set of all files, which the caller has checked completely.
    pub fn as_verified(&self) -> Verified {
        Verified(self.entries().map(|(entry, file)| (file.stamp(), entry.digest())).collect())
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the files that have not been taken out.
    fn entries(&self) -> impl Iterator<Item = (&FileEntry, &StoredFile)> {
        self.header.files.iter().filter_map(|entry| {
            Some((
                entry,
                self.files.iter().find(|file: &&StoredFile| {
                    file.path().file_name().is_some_and(|own| *own == *entry.name)
                })?,
            ))
        })
    }

    /// Returns the file called `name`; `None` if it is not listed or has been taken out.
    pub fn file(&self, name: &str) -> Option<(&FileEntry, &StoredFile)> {
        self.entries().find(|(entry, _)| entry.name == *name)
    }

    /// Takes the file called `name` out of the snapshot.
    ///
    /// # Errors
    /// [`SnapshotError::Header`] if the header does not list it, or it has been taken out.
    pub fn take_file(&mut self, name: &str) -> Result<StoredFile, SnapshotError> {
        match self.files.iter().position(|file| file.path().file_name().is_some_and(|own| own == name)) {
            Some(index) => Ok(self.files.swap_remove(index)),
            None => Err(self.damaged(format!("it does not list {name}"))),
        }
    }

    /// Takes the file called `name` out of the snapshot and maps it. Fails with the errors of [`Snapshot::take_file`], and with
    /// [`SnapshotError::Io`] if the file cannot be mapped.
    pub fn take(&mut self, name: &str) -> Result<MappedFile, SnapshotError> {
        self.take_file(name)?.map()
    }

    /// Takes the file called `name` out of the snapshot, maps it and checks its checksums.
    ///
    /// # Errors
    /// The errors of [`Snapshot::take`]; [`SnapshotError::Corrupt`].
    pub fn take_checked(&mut self, name: &str) -> Result<MappedFile, SnapshotError> {
        let file = self.take(name)?;
        if let Some(entry) = self.header.files.iter().find(|entry| entry.name == name) {
            verify_chunks(&self.path(name), file.as_ref(), entry.hashes())?;
        }
        Ok(file)
    }

    /// Returns the path of the file called `name`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn open_entry(&self, entry: &FileEntry) -> Result<StoredFile, SnapshotError> {
        let file = StoredFile::open(&self.dir.join(&entry.name))?;
        if file.bytes() != entry.bytes {
            let path = file.path().to_owned();
            let actual = file.bytes();
            return Err(SnapshotError::Length { path, expected: entry.bytes, actual });
        }
        Ok(file)
    }

    fn damaged(&self, reason: String) -> SnapshotError {
        SnapshotError::Header { path: self.dir.join(HEADER_FILE), reason }
    }
}
