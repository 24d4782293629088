//! Copies a table at a URL to the local disk before it is served.

use std::{
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use hush_engine::{Bytes, OpenError, Progress, free_disk};
use hush_ingest::mirror::{Mirror, MirrorError as StoreError, RemoteTable};
use hush_store::{
    cancel::{Cancel, Cancelled},
    snapshot::{ArrivingSnapshot, Header, SnapshotError, Trust},
};
use thiserror::Error;

/// The number of attempts at a copy of a table that is replaced meanwhile.
const REPLACED: usize = 3;
/// The interval between checks whether another process has finished its fetch of the same table.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// A reason why a table cannot be copied.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum MirrorError {
    /// An error of the remote table or of the local copy.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "{}: {} have to be fetched, and the disk of {} has {} free: free some space, or choose a folder on a larger disk",
        table.display(), Bytes(*missing as usize), folder.display(), Bytes(*free as usize)
    )]
    NoRoom {
        /// The table's URL, without its secrets.
        table: PathBuf,
        folder: PathBuf,
        missing: u64,
        free: u64,
    },
}

impl From<SnapshotError> for MirrorError {
    fn from(error: SnapshotError) -> Self {
        Self::Store(error.into())
    }
}

impl From<MirrorError> for OpenError {
    fn from(error: MirrorError) -> Self {
        Self::Fetch(Box::new(error))
    }
}

impl From<Cancelled> for MirrorError {
    fn from(cancelled: Cancelled) -> Self {
        SnapshotError::from(cancelled).into()
    }
}

/// Makes the folder `target` a copy of `table`. Files that an earlier version or an interrupted copy left in the folder are not
/// fetched again. Returns whether the folder was changed: `false` if it was a current copy already.
///
/// # Errors
/// [`MirrorError`]. The target is then unchanged, and the bytes that were fetched are kept for the next attempt.
pub fn mirror(
    table: &RemoteTable,
    target: &Path,
    trust: Trust,
    progress: &dyn Progress,
) -> Result<bool, MirrorError> {
    let mut header = table.header()?;
    for _ in 1..REPLACED {
        match copied(table, &header, target, trust, progress) {
            Err(MirrorError::Store(error @ (StoreError::Differs { .. } | StoreError::Refused { .. }))) => {
                let now = table.header()?;
                if now.files == header.files {
                    return Err(error.into());
                }
                header = now;
            }
            outcome => return outcome,
        }
    }
    copied(table, &header, target, trust, progress)
}

fn copied(
    table: &RemoteTable,
    header: &Header,
    target: &Path,
    trust: Trust,
    progress: &dyn Progress,
) -> Result<bool, MirrorError> {
    let is_current = || trust == Trust::Copy && ArrivingSnapshot::is_current(header, target);
    let mut is_told = false;
    let mut mirror = loop {
        if is_current() {
            return Ok(false);
        }
        match Mirror::begin(table, header.clone(), target, trust, &Cancel::new()) {
            Err(SnapshotError::Busy(_)) => {
                if !is_told {
                    progress.note("another program is fetching it: waiting");
                    is_told = true;
                }
                progress.check()?;
                thread::sleep(LOOK);
            }
            begun => break begun?,
        }
    };
    let missing = mirror.missing();
    let folder = mirror.folder().to_owned();
    if let Some(free) = free_disk(&folder).filter(|free| *free < missing) {
        return Err(MirrorError::NoRoom { table: table.shown().into(), folder, missing, free });
    }
    let all = header.files.iter().map(|file| file.bytes).sum::<u64>();
    progress.note(&format!("{} to fetch of {}", Bytes(missing as usize), Bytes(all as usize)));
    progress.start("fetch", missing, "bytes");
    mirror.start(table)?;
    while let Some(bytes) = mirror.step()? {
        progress.check()?;
        progress.advance(bytes);
    }
    mirror.finish()?;
    Ok(true)
}
