//! A complete copy of a remote table.

use std::{
    mem,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use hush_store::{
    cancel::Cancel,
    snapshot::{ArrivingSnapshot, Header, Piece, SnapshotError, Trust},
};

use super::{
    MirrorError, RemoteTable,
    download::{FetchedRanges, Objects, check, download, object, wanted},
    remote_table::refused_at,
    remote_table::runtime,
};
use crate::remote::Refused;

/// The longest time that a step waits for a chunk.
const STEP: Duration = Duration::from_millis(100);

/// A copy in progress, beside the one in place. If it ends early, the chunks that have arrived stay for the next attempt.
pub struct Mirror {
    table_url: PathBuf,
    copy: ArrivingSnapshot,
    objects: Objects,
    download: Option<Receiver<FetchedRanges>>,
    /// The number of pieces that have not arrived yet.
    left: usize,
    /// The number of bytes that have arrived.
    came: u64,
}

impl Mirror {
    /// Begins to copy `table`, whose header is `header`, to the folder `target`. Finds the pieces that are there already. Fails
    /// with the errors of [`ArrivingSnapshot::begin`].
    pub fn begin(
        table: &RemoteTable,
        mut header: Header,
        target: &Path,
        trust: Trust,
        cancel: &Cancel,
    ) -> Result<Self, SnapshotError> {
        let objects = mem::take(&mut header.objects);
        let copy = ArrivingSnapshot::begin(header, target, trust, cancel)?;
        let left = copy.missing().len();
        Ok(Self { table_url: table.shown().into(), copy, objects, download: None, left, came: 0 })
    }

    /// Returns the number of bytes that are missing.
    pub fn missing(&self) -> u64 {
        self.copy.missing_bytes()
    }

    /// Returns the folder that holds the arriving pieces.
    pub fn folder(&self) -> &Path {
        self.copy.folder()
    }

    /// Requests the missing pieces, on a separate thread. Fails with [`SnapshotError::Io`] if no runtime can be started.
    pub fn start(&mut self, table: &RemoteTable) -> Result<(), SnapshotError> {
        let runtime = runtime().map_err(SnapshotError::io(table.shown(), "fetch"))?;
        let (sender, receiver) = sync_channel(1);
        let files = &self.copy.header().files;
        let wanted = |piece: &Piece| wanted(table, &self.objects, &files[piece.file], *piece);
        let wanted: Vec<_> = self.copy.missing().iter().map(wanted).collect();
        thread::spawn(move || runtime.block_on(download(wanted, sender)));
        self.download = Some(receiver);
        Ok(())
    }

    /// Waits for a chunk, at most a tenth of a second. Returns the number of bytes that arrived; `None` once the copy is complete.
    ///
    /// # Errors
    /// The server refuses or sends other bytes, or the disk is full.
    pub fn step(&mut self) -> Result<Option<u64>, MirrorError> {
        let Some(download) = self.download.as_ref().filter(|_| self.left > 0) else { return Ok(None) };
        let entry_of = |piece: Piece| &self.copy.header().files[piece.file];
        let path_of = |piece: Piece| self.table_url.join(object(&self.objects, entry_of(piece)));
        match download.recv_timeout(STEP) {
            Ok((piece, Ok(bytes))) => {
                check(&path_of(piece), entry_of(piece), piece, &bytes)?;
                self.copy.put(piece, &bytes)?;
                self.left -= 1;
                self.came += bytes.len() as u64;
                Ok(Some(bytes.len() as u64))
            }
            Ok((piece, Err(refused))) => {
                Err(refused_at(&path_of(piece), refused.of_table().so_far(self.came, Some(self.missing()))))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Some(0)),
            Err(RecvTimeoutError::Disconnected) => {
                Err(refused_at(&self.table_url, Refused::for_now("it ended without a reason")))
            }
        }
    }

    /// Puts the complete copy in place. After an error, the target is as it was.
    pub fn finish(self) -> Result<(), SnapshotError> {
        self.copy.finish()
    }
}
