//! A partial copy of a remote table: some ranges of its files.

use std::{mem, ops::Range, path::Path, sync::mpsc::sync_channel, thread};

use hush_store::snapshot::{Missing, Piece, SnapshotError, SparseFolder};

use super::{
    MirrorError, RemoteTable,
    download::{Objects, check, download, object, wanted},
    remote_table::runtime,
};

/// A remote table, and the folder of the ranges fetched from it. The folder opens as any snapshot does, except with
/// [`Verify::Full`](hush_store::snapshot::Verify::Full): ranges that are missing do not match the header.
pub struct SparseCopy {
    table: RemoteTable,
    folder: SparseFolder,
    objects: Objects,
}

impl SparseCopy {
    /// Opens the copy of the remote table in a folder for its epoch among those in `copies`. Only its header is fetched.
    ///
    /// # Errors
    /// There is no table; those of [`SparseFolder::begin`].
    pub fn begin(table: RemoteTable, copies: &Path) -> Result<Self, MirrorError> {
        let mut header = table.header()?;
        let objects = mem::take(&mut header.objects);
        let folder = SparseFolder::begin(header, copies)?;
        Ok(Self { table, folder, objects })
    }

    /// Returns the folder of the fetched ranges.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the table's URL, without its secrets.
    pub fn shown(&self) -> &Path {
        self.table.shown()
    }

    /// Finds the missing pieces of some ranges of a file. Works and fails like [`SparseFolder::missing`].
    pub fn missing(&self, name: &str, ranges: &[Range<usize>]) -> Result<Missing, SnapshotError> {
        self.folder.missing(name, ranges)
    }

    /// Removes the folders of older epochs, as [`SparseFolder::forget_others`].
    pub fn forget_others(&self) {
        self.folder.forget_others();
    }

    /// Fetches the missing pieces. If it ends early, the pieces that have arrived stay.
    ///
    /// # Errors
    /// The server refuses or sends other bytes, or the disk is full.
    pub fn fetch(&self, missing: Missing) -> Result<(), MirrorError> {
        if missing.pieces().is_empty() {
            return Ok(());
        }
        let entry = missing.entry();
        let runtime = runtime().map_err(SnapshotError::io(self.table.shown(), "fetch"))?;
        let name = object(&self.objects, entry);
        let wanted = |piece: &Piece| wanted(&self.table, &self.objects, entry, *piece);
        let wanted: Vec<_> = missing.pieces().iter().map(wanted).collect();
        let (sender, receiver) = sync_channel(1);
        thread::scope(|scope| {
            scope.spawn(move || runtime.block_on(download(wanted, sender)));
            // This scope owns the receiver: when it ends early, the downloading thread ends too.
            let receiver = receiver;
            while let Ok((piece, fetched)) = receiver.recv() {
                let bytes = fetched.map_err(|refused| self.table.refused(name, refused.of_table()))?;
                check(&self.table.shown().join(name), entry, piece, &bytes)?;
                missing.put(piece, &bytes)?;
            }
            Ok::<_, MirrorError>(())
        })?;
        Ok(missing.finish()?)
    }
}
