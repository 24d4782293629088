//! Copies a table to a URL, from which others fetch it.

use hush_engine::{Bytes, Progress};
use hush_ingest::mirror::{LeftObjects, MirrorError, RemoteTable};
use hush_store::snapshot::Snapshot;

/// Copies a table to `to`: first the files that are missing there, or with `resend` all of them, then the header. Prints the size
/// before it starts. Fails with [`MirrorError`] if `to` is no object store or has a malformed header, if a file cannot be read or
/// uploaded, or if `progress` cancels the copy. The remote table is then as it was.
pub fn push(
    snapshot: &Snapshot,
    to: &RemoteTable,
    resend: bool,
    progress: &dyn Progress,
) -> Result<(), MirrorError> {
    let plan = to.plan_push(snapshot, resend)?;
    let bytes = plan.bytes();
    let all: u64 = snapshot.header().files.iter().map(|file| file.bytes).sum();
    progress.note(&format!("{} to put there of {}", Bytes(bytes as usize), Bytes(all as usize)));
    progress.start("push", bytes, "bytes");
    let left = to.push(&plan, &|bytes| {
        progress.advance(bytes);
        progress.check()
    })?;
    if let Some(LeftObjects { count, bytes, reason }) = left {
        let bytes = Bytes(bytes as usize);
        progress.note(&format!(
            "{count} objects ({bytes}) of older tables stay there: allow their removal ({reason})"
        ));
    }
    Ok(())
}
