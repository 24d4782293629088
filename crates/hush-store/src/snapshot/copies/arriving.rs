//! A copy of a table that is fetched in chunks, and replaces the target folder when it is complete. Chunks that have arrived stay
//! when the process ends early, and are not fetched again.

use std::{
    fs::{self, File, OpenOptions},
    ops::Range,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::cancel::Cancel;
use crate::snapshot::{
    CHUNK_BYTES, FileEntry, Header, MappedFile, SnapshotError, SnapshotWriter,
    checksum::{differing, verify_chunks},
    writing::{
        partial, resume, target,
        writer::{remove_if_there, sibling},
    },
};

/// The part of an existing copy that is trusted to be intact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Files of the existing copy, if their lengths are right.
    Copy,
    /// Nothing: every byte is checked.
    Nothing,
}

/// A chunk of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of the file in the header.
    pub file: usize,
    /// The number of the chunk in the file.
    pub chunk: usize,
}

impl Piece {
    /// Returns the range of the file's bytes in the chunk.
    pub fn range(self, entry: &FileEntry) -> Range<u64> {
        let start = (self.chunk * CHUNK_BYTES) as u64;
        start..entry.bytes.min(start + CHUNK_BYTES as u64)
    }
    /// Returns whether `bytes` match the checksum of the chunk in the header.
    pub fn is_intact(self, entry: &FileEntry, bytes: &[u8]) -> bool {
        entry
            .hashes()
            .get(self.chunk)
            .is_some_and(|expected| blake3::hash(bytes) == blake3::Hash::from_bytes(*expected))
    }
}

/// Returns the total number of bytes in `pieces`.
pub(in crate::snapshot) fn bytes_of(header: &Header, pieces: &[Piece]) -> u64 {
    let ranges = pieces.iter().map(|piece| piece.range(&header.files[piece.file]));
    ranges.map(|range| range.end - range.start).sum()
}

/// A copy in progress, beside the target. Chunks that have arrived are in the hidden folder `.NAME.hush-fetched`.
pub struct ArrivingSnapshot {
    target: PathBuf,
    folder: PathBuf,
    writer: SnapshotWriter,
    header: Header,
    /// For every file of the header: the opened file, if any of its chunks is missing.
    files: Vec<Option<File>>,
    missing: Vec<Piece>,
}

/// Returns the folder that holds the chunks of an incomplete copy.
fn fetched_folder(target: &Path) -> PathBuf {
    sibling(target, ".hush-fetched")
}

impl ArrivingSnapshot {
    /// Returns whether the folder `target` holds the table of `header`, with files of the right lengths.
    pub fn is_current(header: &Header, target: &Path) -> bool {
        let own = Header::read(target);
        own.is_ok_and(|own| {
            own.descriptor.epoch == header.descriptor.epoch
                && own.files == header.files
                && own.files.iter().all(|file| has_length(target, file))
        })
    }

    /// Removes the chunks of an incomplete copy that is not needed any more. Fails with [`SnapshotError::DanglingLink`] or
    /// [`SnapshotError::Io`].
    pub fn forget(target: &Path) -> Result<(), SnapshotError> {
        let target = target::resolved(target)?;
        remove_if_there(&fetched_folder(&target))
    }

    /// Begins to copy the table of `header` to the folder `target`, and finds the chunks that are missing. Fails with the errors of
    /// [`SnapshotWriter::create`], with [`SnapshotError::NotOurs`] if the folder of chunks belongs to another user, with
    /// [`SnapshotError::Io`] if it cannot be read or written, or with [`SnapshotError::Cancelled`].
    pub fn begin(
        header: Header,
        target: &Path,
        trust: Trust,
        cancel: &Cancel,
    ) -> Result<Self, SnapshotError> {
        let writer = SnapshotWriter::create(target, true)?.cancelled_by(cancel);
        let target = writer.target().to_owned();
        let folder = fetched_folder(&target);
        partial::check(&folder)?;
        if !folder.exists() {
            partial::create(&folder)?;
        }
        resume::sweep(&folder, |name| header.files.iter().any(|file| file.name == name))?;
        let own = Header::read(&target).map(|own| own.files).unwrap_or_default();
        let mut files = Vec::new();
        let mut missing = Vec::new();
        for (file, entry) in header.files.iter().enumerate() {
            cancel.check()?;
            if own.contains(entry) && is_whole(&target, entry, trust) {
                files.push(None);
                continue;
            }
            let (opened, chunks) = begun(&folder.join(&entry.name), entry)?;
            files.push(Some(opened));
            missing.extend(chunks.into_iter().map(|chunk| Piece { file, chunk }));
        }
        Ok(Self { target, folder, writer, header, files, missing })
    }

    /// Returns the missing chunks.
    pub fn missing(&self) -> &[Piece] {
        &self.missing
    }

    /// Returns the number of missing bytes.
    pub fn missing_bytes(&self) -> u64 {
        bytes_of(&self.header, &self.missing)
    }

    /// Returns the header of the table.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the folder that holds the chunks that have arrived.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a chunk. The caller has to check its bytes before ([`Piece::is_intact`]). Fails with [`SnapshotError::Io`].
    pub fn put(&self, piece: Piece, bytes: &[u8]) -> Result<(), SnapshotError> {
        let entry = &self.header.files[piece.file];
        let Some(file) = &self.files[piece.file] else { return Ok(()) };
        let path = self.folder.join(&entry.name);
        file.write_all_at(bytes, piece.range(entry).start).map_err(SnapshotError::io(path, "write"))
    }

    /// Puts the copy in place. All chunks have to be written. After an error, the target is unchanged.
    pub fn finish(self) -> Result<(), SnapshotError> {
        for (entry, file) in self.header.files.iter().zip(&self.files) {
            if let Some(file) = file {
                file.sync_all().map_err(SnapshotError::io(self.folder.join(&entry.name), "sync"))?;
            }
            let from = if file.is_some() { &self.folder } else { &self.target };
            self.writer.take_file(from, entry)?;
        }
        self.writer.commit(&self.header)?;
        remove_if_there(&self.folder)
    }
}

/// Returns whether the file exists with the right length.
fn has_length(dir: &Path, entry: &FileEntry) -> bool {
    // A link is not followed, because it would be refused later.
    let found = fs::symlink_metadata(dir.join(&entry.name));
    found.is_ok_and(|found| found.is_file() && found.len() == entry.bytes)
}

fn is_whole(dir: &Path, entry: &FileEntry, trust: Trust) -> bool {
    if !has_length(dir, entry) {
        return false;
    }
    if trust == Trust::Copy {
        return true;
    }
    let path = dir.join(&entry.name);
    let file = MappedFile::open(&path);
    file.and_then(|file| verify_chunks(&path, file.as_ref(), entry.hashes())).is_ok()
}

/// Opens a file to be filled, and creates it if it does not exist.
pub(in crate::snapshot) fn opened(path: &Path) -> Result<File, SnapshotError> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true).custom_flags(libc::O_NOFOLLOW);
    options.open(path).map_err(SnapshotError::io(path, "create"))
}

/// Opens a file that may be incomplete. Returns it with the numbers of its missing chunks.
fn begun(path: &Path, entry: &FileEntry) -> Result<(File, Vec<usize>), SnapshotError> {
    let file = opened(path)?;
    let length = file.metadata().map_err(SnapshotError::io(path, "read"))?.len();
    if length > entry.bytes {
        file.set_len(entry.bytes).map_err(SnapshotError::io(path, "size"))?;
    }
    let here = MappedFile::open(path)?;
    let all: Vec<usize> = (0..entry.hashes().len()).collect();
    let missing = differing(here.as_ref(), entry.hashes(), &all);
    Ok((file, missing))
}
