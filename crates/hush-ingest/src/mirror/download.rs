//! The download of chunks: several at a time, each checked as it arrives.

use std::{ops::Range, path::Path, sync::mpsc::SyncSender};

use futures_util::{StreamExt, stream};
use hush_store::snapshot::{FileEntry, Piece};

use super::{MirrorError, RemoteTable};
use crate::remote::{Refused, Remote};

/// The number of chunks in flight: several connections carry more than one, and this many chunks are in memory.
const AT_A_TIME: usize = 8;

/// A requested chunk: its piece, its file, its range of bytes, and the length of the file.
pub(super) type WantedRanges = (Piece, Remote, Range<u64>, u64);

/// Returns the request to `table` for a piece of the file of `entry`.
pub(super) fn wanted(table: &RemoteTable, entry: &FileEntry, piece: Piece) -> WantedRanges {
    (piece, table.remote().child(&entry.name), piece.range(entry), entry.bytes)
}

/// Checks a chunk of the file of `entry`, at `path`.
pub(super) fn check(path: &Path, entry: &FileEntry, piece: Piece, bytes: &[u8]) -> Result<(), MirrorError> {
    match piece.is_intact(entry, bytes) {
        true => Ok(()),
        false => Err(MirrorError::Differs { path: path.into(), range: piece.range(entry) }),
    }
}

pub(super) type FetchedRanges = (Piece, Result<Vec<u8>, Refused>);

/// Downloads the pieces until all have arrived, one is refused, or the receiver is gone.
pub(super) async fn download(wanted: Vec<WantedRanges>, to: SyncSender<FetchedRanges>) {
    let fetch =
        |(piece, remote, range, size): WantedRanges| async move { (piece, remote.range(range, size).await) };
    let mut fetched = stream::iter(wanted).map(fetch).buffer_unordered(AT_A_TIME);
    while let Some(next) = fetched.next().await {
        let is_last = next.1.is_err();
        if to.send(next).is_err() || is_last {
            return;
        }
    }
}
