//! Chunks that are asked for: several at a time, each checked as it comes.

use std::{ops::Range, path::Path, sync::mpsc::SyncSender};

use futures_util::{StreamExt, stream};
use hush_store::snapshot::{FileEntry, Piece};

use super::{MirrorError, RemoteTable};
use crate::remote::{Refused, Remote};

/// Chunks that are asked for at a time: several connections carry more than one, and so many are in memory.
const AT_A_TIME: usize = 8;

/// A chunk that is asked for: where its file is, which bytes, and how long the file is.
pub(super) type WantedRanges = (Piece, Remote, Range<u64>, u64);

/// Returns what to ask `table` for, so that a piece of the file of `entry` comes.
pub(super) fn wanted(table: &RemoteTable, entry: &FileEntry, piece: Piece) -> WantedRanges {
    (piece, table.remote().child(&entry.name), piece.range(entry), entry.bytes)
}

/// Checks a chunk of the file that `entry` is of, at `path`.
pub(super) fn check(path: &Path, entry: &FileEntry, piece: Piece, bytes: &[u8]) -> Result<(), MirrorError> {
    match piece.is_intact(entry, bytes) {
        true => Ok(()),
        false => Err(MirrorError::Differs { path: path.into(), range: piece.range(entry) }),
    }
}

pub(super) type FetchedRanges = (Piece, Result<Vec<u8>, Refused>);

/// Asks for pieces until all have come, one is not to be had, or nobody wants them.
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
