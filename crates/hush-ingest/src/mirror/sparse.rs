//! Some ranges of the files of a table that is elsewhere.

use std::{ops::Range, path::Path, sync::mpsc::sync_channel, thread};

use hush_store::snapshot::{Missing, SnapshotError, SparseFolder};

use super::{
    MirrorError, RemoteTable,
    download::{check, download, wanted},
    remote_table::runtime,
};

/// A table that is elsewhere, and the folder of what has come of it. The folder opens as any snapshot does, but for
/// [`Verify::Full`](hush_store::snapshot::Verify::Full): what has not been fetched is not what its header says.
pub struct SparseCopy {
    table: RemoteTable,
    folder: SparseFolder,
}

impl SparseCopy {
    /// Opens the copy of the table that is there now, in a folder of its epoch's among those in `copies`. Nothing but its header
    /// is fetched.
    ///
    /// # Errors
    /// If there is no table; those of [`SparseFolder::begin`].
    pub fn begin(table: RemoteTable, copies: &Path) -> Result<Self, MirrorError> {
        let folder = SparseFolder::begin(table.header()?, copies)?;
        Ok(Self { table, folder })
    }

    /// Returns the folder of what has come.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the table's URL, without what is secret in it.
    pub fn shown(&self) -> &Path {
        self.table.shown()
    }

    /// Finds what has to come of a file, as [`SparseFolder::missing`].
    pub fn missing(&self, name: &str, ranges: &[Range<usize>]) -> Result<Missing, SnapshotError> {
        self.folder.missing(name, ranges)
    }

    /// Removes the folders of older epochs, as [`SparseFolder::forget_others`].
    pub fn forget_others(&self) {
        self.folder.forget_others();
    }

    /// Fetches what is missing; what has come stays when it ends early.
    ///
    /// # Errors
    /// If the server does not give it, or gives other bytes, or the disk is full.
    pub fn fetch(&self, missing: Missing) -> Result<(), MirrorError> {
        if missing.pieces().is_empty() {
            return Ok(());
        }
        let entry = missing.entry();
        let runtime = runtime().map_err(SnapshotError::io(self.table.shown(), "fetch"))?;
        let wanted: Vec<_> =
            missing.pieces().iter().map(|piece| wanted(&self.table, entry, *piece)).collect();
        let (sender, receiver) = sync_channel(1);
        thread::scope(|scope| {
            scope.spawn(move || runtime.block_on(download(wanted, sender)));
            // Gone with this block: who fetches ends when nobody takes what comes.
            let receiver = receiver;
            while let Ok((piece, fetched)) = receiver.recv() {
                let bytes = fetched.map_err(|refused| self.table.refused(&entry.name, refused))?;
                check(&self.table.shown().join(&entry.name), entry, piece, &bytes)?;
                missing.put(piece, &bytes)?;
            }
            Ok::<_, MirrorError>(())
        })?;
        Ok(missing.finish()?)
    }
}
