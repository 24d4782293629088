//! The files of a table that is elsewhere, as long as they are there, with holes where nothing has come yet.

use std::{
    fs::{self, File},
    io::Write,
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::arriving::{Piece, bytes_of, opened};
use crate::snapshot::{
    FileEntry, HEADER_FILE, Header, MappedFile, SnapshotError,
    checksum::{chunks_of, differing},
    writing::{
        lock::BuildLock,
        partial,
        writer::{remove_if_there, sibling, sync_dir},
    },
};

/// Epochs of a table that stay: the one that is served, and the one before.
const KEPT_EPOCHS: usize = 2;

/// A folder with the files of a table of which some chunks are here. It opens as any snapshot does, but for
/// [`Verify::Full`](crate::snapshot::Verify::Full): what has not been fetched is not what its header says.
pub struct SparseFolder {
    header: Header,
    folder: PathBuf,
}

/// Chunks of a file that have to come; while they do, nobody else fetches of the same table.
pub struct Missing {
    entry: FileEntry,
    path: PathBuf,
    file: File,
    pieces: Vec<Piece>,
    bytes: u64,
    _lock: BuildLock,
}

impl Missing {
    /// Returns the number of bytes that have to come.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the chunks that have to come.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns the header's entry of the file.
    pub fn entry(&self) -> &FileEntry {
        &self.entry
    }

    /// Writes a chunk, whose bytes the caller has checked ([`Piece::is_intact`]).
    pub fn put(&self, piece: Piece, bytes: &[u8]) -> Result<(), SnapshotError> {
        let at = piece.range(&self.entry).start;
        self.file.write_all_at(bytes, at).map_err(SnapshotError::io(&self.path, "write"))
    }

    /// Has what came on the disk.
    pub fn finish(self) -> Result<(), SnapshotError> {
        self.file.sync_all().map_err(SnapshotError::io(&self.path, "sync"))
    }
}

impl SparseFolder {
    /// Opens the folder of the table of `header`, among those in `copies`, or creates it. Nothing has come then.
    ///
    /// # Errors
    /// If no folder can be made; [`SnapshotError::Busy`] while another program fetches of the table.
    pub fn begin(header: Header, copies: &Path) -> Result<Self, SnapshotError> {
        let epoch = blake3::Hash::from_bytes(header.descriptor.epoch).to_hex();
        let folder = copies.join(&epoch[..32]);
        let copy = Self { header, folder };
        copy.create(copies)?;
        Ok(copy)
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    fn create(&self, copies: &Path) -> Result<(), SnapshotError> {
        fs::create_dir_all(copies).map_err(SnapshotError::io(copies, "create the folder"))?;
        let _lock = self.lock()?;
        partial::check(&self.folder)?;
        if Header::read(&self.folder).is_ok_and(|own| own.files == self.header.files) {
            return Ok(());
        }
        // Without its header it is nothing yet.
        remove_if_there(&self.folder)?;
        partial::create(&self.folder)?;
        for entry in &self.header.files {
            let path = self.folder.join(&entry.name);
            let file = opened(&path)?;
            file.set_len(entry.bytes).map_err(SnapshotError::io(&path, "size"))?;
        }
        let path = self.folder.join(HEADER_FILE);
        let unfinished = self.folder.join(".header");
        let text = self.header.to_text();
        let mut file = opened(&unfinished)?;
        file.write_all(text.as_bytes()).map_err(SnapshotError::io(&unfinished, "write"))?;
        file.sync_all().map_err(SnapshotError::io(&unfinished, "sync"))?;
        fs::rename(&unfinished, &path).map_err(SnapshotError::io(&path, "rename"))?;
        sync_dir(&self.folder)
    }

    fn lock(&self) -> Result<BuildLock, SnapshotError> {
        BuildLock::acquire(sibling(&self.folder, ".lock"), &self.folder)
    }

    /// Finds what has to come of a file, so that some ranges of it are here. Every chunk that is here is checked.
    ///
    /// # Errors
    /// [`SnapshotError::Busy`] while another program fetches of it.
    pub fn missing(&self, name: &str, ranges: &[Range<usize>]) -> Result<Missing, SnapshotError> {
        let lock = self.lock()?;
        let file = self.header.files.iter().position(|entry| entry.name == name).ok_or_else(|| {
            SnapshotError::Header {
                path: self.folder.join(HEADER_FILE),
                reason: format!("it does not list {name}"),
            }
        })?;
        let entry = &self.header.files[file];
        let here = MappedFile::open(&self.folder.join(name))?;
        let chunks = differing(here.as_ref(), entry.hashes(), &chunks_of(ranges));
        let pieces: Vec<_> = chunks.into_iter().map(|chunk| Piece { file, chunk }).collect();
        let path = self.folder.join(name);
        Ok(Missing {
            bytes: bytes_of(&self.header, &pieces),
            file: opened(&path)?,
            entry: entry.clone(),
            path,
            pieces,
            _lock: lock,
        })
    }

    /// Removes the folders of epochs beside this one, but for the one that was begun last. Who has opened one keeps it.
    pub fn forget_others(&self) {
        let Some(Ok(folders)) = self.folder.parent().map(fs::read_dir) else { return };
        let begun = |folder: &Path| folder.join(HEADER_FILE).metadata().and_then(|file| file.modified());
        let mut others: Vec<(SystemTime, PathBuf)> = folders
            .filter_map(|entry| Some(entry.ok()?.path()).filter(|path| *path != self.folder))
            .filter_map(|path| Some((begun(&path).ok()?, path)))
            .collect();
        others.sort();
        let old = others.len().saturating_sub(KEPT_EPOCHS - 1);
        for (_, folder) in &others[..old] {
            // It takes room, and does no harm.
            let _ = remove_if_there(folder);
        }
    }
}
