//! Sparse copies of a remote table's files: each has its full length, with holes where no chunk was fetched.

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

/// The number of a table's epochs that are kept: the current one, and the previous one.
const KEPT_EPOCHS: usize = 2;

/// A folder with a table's files, of which some chunks were fetched. It opens like any snapshot, but not with
/// [`Verify::Full`](crate::snapshot::Verify::Full): holes do not match the header's checksums.
pub struct SparseFolder {
    header: Header,
    folder: PathBuf,
}

/// The missing chunks of a file. While this value lives, no other process fetches chunks of the same table.
pub struct Missing {
    entry: FileEntry,
    path: PathBuf,
    file: File,
    pieces: Vec<Piece>,
    bytes: u64,
    _lock: BuildLock,
}

impl Missing {
    /// Returns the number of missing bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the missing chunks.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns the header's entry of the file.
    pub fn entry(&self) -> &FileEntry {
        &self.entry
    }

    /// Writes a chunk. The caller has to check its bytes before ([`Piece::is_intact`]). Fails with [`SnapshotError::Io`].
    pub fn put(&self, piece: Piece, bytes: &[u8]) -> Result<(), SnapshotError> {
        let at = piece.range(&self.entry).start;
        self.file.write_all_at(bytes, at).map_err(SnapshotError::io(&self.path, "write"))
    }

    /// Makes the written chunks durable. Fails with [`SnapshotError::Io`].
    pub fn finish(self) -> Result<(), SnapshotError> {
        self.file.sync_all().map_err(SnapshotError::io(&self.path, "sync"))
    }
}

impl SparseFolder {
    /// Opens the folder of the table of `header` in the folder `copies`. Creates it with files of holes if it does not exist.
    ///
    /// # Errors
    /// The system's error if no folder can be made; [`SnapshotError::Busy`] while another process fetches chunks of the table.
    pub fn begin(header: Header, copies: &Path) -> Result<Self, SnapshotError> {
        let epoch = blake3::Hash::from_bytes(header.descriptor.epoch).to_hex();
        let folder = copies.join(&epoch[..32]);
        let copy = Self { header, folder };
        copy.create(copies)?;
        Ok(copy)
    }

    /// Returns the path of the folder.
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
        // A folder without the header is incomplete.
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

    /// Finds the chunks that are missing in `ranges` of the file `name`. Every chunk in the ranges is checked.
    ///
    /// # Errors
    /// [`SnapshotError::Busy`] while another process fetches chunks of the table; [`SnapshotError::Header`] if it has no such file.
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

    /// Removes the folders of other epochs, except the one that was used last. A process that has opened a removed one keeps its
    /// files.
    pub fn forget_others(&self) {
        // Without the time, a folder that is removed too early is fetched again.
        let header = File::open(self.folder.join(HEADER_FILE));
        let _ = header.and_then(|header| header.set_modified(SystemTime::now()));
        let Some(Ok(folders)) = self.folder.parent().map(fs::read_dir) else { return };
        let mut others: Vec<(SystemTime, PathBuf)> = folders
            .filter_map(|entry| Some(entry.ok()?.path()).filter(|path| *path != self.folder))
            .filter_map(|path| {
                let header = path.join(HEADER_FILE).metadata().ok()?;
                Some((header.modified().ok()?, path))
            })
            .collect();
        others.sort();
        let old = others.len().saturating_sub(KEPT_EPOCHS - 1);
        for (_, folder) in &others[..old] {
            // A folder that cannot be removed takes space, but does no harm.
            let _ = remove_if_there(folder);
        }
    }
}
