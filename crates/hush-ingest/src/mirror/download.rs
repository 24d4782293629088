//! The download of chunks: several at a time, each checked as it arrives.

use std::{collections::BTreeMap, ops::Range, path::Path, sync::mpsc::SyncSender};

use futures_util::{StreamExt, stream};
use hush_protocol::Name;
use hush_store::snapshot::{FileEntry, Piece};

use super::{MirrorError, RemoteTable};
use crate::remote::{Refused, Remote};

/// The number of chunks in flight: several connections carry more than one, and this many chunks are in memory.
const AT_A_TIME: usize = 8;

/// A requested chunk: its piece, its file, its range of bytes, and the length of the file.
pub(super) type WantedRanges = (Piece, Remote, Range<u64>, u64);

/// The names of the objects whose files have other names, by those.
pub(super) type Objects = BTreeMap<Name, Name>;

/// Returns the name of the object of a file.
pub(super) fn object<'n>(objects: &'n Objects, entry: &'n FileEntry) -> &'n Name {
    objects.get(&entry.name).unwrap_or(&entry.name)
}

/// Returns the request to `table` for a piece of the file of `entry`.
pub(super) fn wanted(
    table: &RemoteTable,
    objects: &Objects,
    entry: &FileEntry,
    piece: Piece,
) -> WantedRanges {
    (piece, table.remote().child(object(objects, entry)), piece.range(entry), entry.bytes)
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
