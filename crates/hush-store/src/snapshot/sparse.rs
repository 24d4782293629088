//! A table that is elsewhere, and what comes here of it: files as long as they are there, with holes.

use std::{
    fs,
    io::Write,
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::mpsc::sync_channel,
    thread,
    time::SystemTime,
};

use super::{
    HEADER_FILE, Header, MappedFile, MirrorError, RemoteTable, SnapshotError,
    checksum::{chunks_of, differing},
    lock::BuildLock,
    mirror::{Piece, check, download, opened, runtime},
    partial,
    writer::{remove_if_there, sibling, sync_dir},
};

/// Epochs of a table that stay: the one that is served, and the one before.
const KEPT_EPOCHS: usize = 2;

/// A folder with the files of a table of which some chunks are here. It opens as any snapshot does, but for
/// [`Verify::Full`](super::Verify::Full): what has not been fetched is not what its header says.
pub struct SparseCopy {
    table: RemoteTable,
    header: Header,
    folder: PathBuf,
}

/// Chunks of a file that have to come; while they do, nobody else fetches of the same table.
pub struct Missing {
    pieces: Vec<Piece>,
    bytes: u64,
    _lock: BuildLock,
}

impl Missing {
    /// How many bytes that are.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl SparseCopy {
    /// The copy of the table that is there now, in a folder of its epoch's among those in `copies`. Nothing but its header is
    /// fetched.
    ///
    /// # Errors
    /// If there is no table, or no folder can be made; [`SnapshotError::Busy`] while another program fetches of it.
    pub fn begin(table: RemoteTable, copies: &Path) -> Result<Self, MirrorError> {
        let header = table.header()?;
        let epoch = blake3::Hash::from_bytes(header.descriptor.epoch).to_hex();
        let folder = copies.join(&epoch[..32]);
        let copy = Self { table, header, folder };
        copy.create(copies)?;
        Ok(copy)
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The table's URL, without what is secret in it.
    pub fn shown(&self) -> &Path {
        self.table.shown()
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
        let (path, unfinished) = (self.folder.join(HEADER_FILE), self.folder.join(".header"));
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

    /// What has to come of a file, so that some ranges of it are here. Every chunk that is here is checked.
    ///
    /// # Errors
    /// [`SnapshotError::Busy`] while another program fetches of it.
    pub fn missing(&self, name: &str, ranges: &[Range<usize>]) -> Result<Missing, SnapshotError> {
        let lock = self.lock()?;
        let damaged = || SnapshotError::Header {
            path: self.folder.join(HEADER_FILE),
            reason: format!("it does not list {name}"),
        };
        let file = self.header.files.iter().position(|entry| entry.name == name).ok_or_else(damaged)?;
        let entry = &self.header.files[file];
        let here = MappedFile::open(&self.folder.join(name))?;
        let chunks = differing(here.as_ref(), entry.hashes(), &chunks_of(ranges));
        let pieces: Vec<_> = chunks.into_iter().map(|chunk| Piece { file, chunk }).collect();
        let length = |piece: &Piece| {
            let range = piece.range(entry);
            range.end - range.start
        };
        Ok(Missing { bytes: pieces.iter().map(length).sum(), pieces, _lock: lock })
    }

    /// Fetches what is missing; what has come stays when it ends early.
    ///
    /// # Errors
    /// If the server does not give it, or gives other bytes, or the disk is full.
    pub fn fetch(&self, missing: Missing) -> Result<(), MirrorError> {
        let Some(first) = missing.pieces.first() else { return Ok(()) };
        let entry = &self.header.files[first.file];
        let path = self.folder.join(&entry.name);
        let file = opened(&path)?;
        let runtime = runtime().map_err(SnapshotError::io(self.table.shown(), "fetch"))?;
        let remote = self.table.remote().child(&entry.name);
        let wanted =
            missing.pieces.iter().map(|piece| (*piece, remote.clone(), piece.range(entry), entry.bytes));
        let wanted: Vec<_> = wanted.collect();
        let (sender, receiver) = sync_channel(1);
        thread::scope(|scope| {
            scope.spawn(move || runtime.block_on(download(wanted, sender)));
            // Gone with this block: who fetches ends when nobody takes what comes.
            let receiver = receiver;
            while let Ok((piece, fetched)) = receiver.recv() {
                let bytes = fetched.map_err(|refused| self.table.refused(&entry.name, refused))?;
                let range = piece.range(entry);
                check(&self.table.shown().join(&entry.name), entry, piece, &bytes)?;
                file.write_all_at(&bytes, range.start).map_err(SnapshotError::io(&path, "write"))?;
            }
            Ok::<_, MirrorError>(())
        })?;
        Ok(file.sync_all().map_err(SnapshotError::io(&path, "sync"))?)
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
