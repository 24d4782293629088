//! Copies a table to a URL, from which others fetch it.

use hush_engine::{Bytes, Progress};
use hush_ingest::mirror::{MirrorError, RemoteTable};
use hush_store::snapshot::Snapshot;

/// Copies a table to `to`: first the files that are missing there, then the header. Prints the size before it starts. Fails with
/// [`MirrorError`] if the remote header cannot be fetched or is malformed, if a file cannot be read or uploaded, or if `progress`
/// cancels the copy. The remote table is then as it was.
pub fn push(snapshot: &Snapshot, to: &RemoteTable, progress: &dyn Progress) -> Result<(), MirrorError> {
    let plan = to.plan_push(snapshot)?;
    let bytes = plan.bytes();
    let all: u64 = snapshot.header().files.iter().map(|file| file.bytes).sum();
    progress.note(&format!("{} to put there of {}", Bytes(bytes as usize), Bytes(all as usize)));
    progress.start("push", bytes, "bytes");
    to.push(&plan, &|bytes| {
        progress.advance(bytes);
        progress.check()
    })
}
