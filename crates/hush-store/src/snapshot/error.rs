//! The error of reading and writing snapshots. Every variant names the path and says what to do.

use std::{
    io,
    path::{Path, PathBuf},
};

use hush_protocol::{
    shown_url,
    wording::{Slot, Wording},
};
use thiserror::Error;

use super::HEADER_FILE;
use crate::cancel::Cancelled;

/// A reason why a snapshot could not be written or opened.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum SnapshotError {
    #[error("{path}: cannot {action}: {source}{hint}", path = path.display(), hint = full_disk_hint(source))]
    Io { path: PathBuf, action: &'static str, source: io::Error },
    #[error("{} exists already: {}", .0.display(), Wording("choose another {out}, or replace it with {force=true}"))]
    Exists(PathBuf),
    #[error("{} is not a hushdb snapshot and is not replaced: {}", .0.display(), Wording("choose another {out}"))]
    NotASnapshot(PathBuf),
    #[error("{} is a link to {}, and nothing is there: create that folder, or remove the link", path.display(), to.display())]
    DanglingLink { path: PathBuf, to: PathBuf },
    #[error("{path} is a mount point, and no table can take its place: choose a folder inside it", path = .0.display())]
    MountPoint(PathBuf),
    #[error("{}: no table can be put there: {source}: choose a folder that this user can write to", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("another build or change of {} is under way: {}", .0.display(), Wording("wait for it, or choose another {out}"))]
    Busy(PathBuf),
    #[error("{} is to hold the unfinished table, but {reason}: {}", path.display(), Wording("remove it, or choose another {out}"))]
    NotOurs { path: PathBuf, reason: String },
    #[error("{}", missing(path))]
    Missing { path: PathBuf },
    #[error(
        "{path} is a link, or not a regular file, and is not opened: put the file itself there, or link the table's whole folder",
        path = path.display()
    )]
    NotRegular { path: PathBuf },
    #[error("{path} is damaged: {reason}: build the snapshot again, or restore it from a copy", path = path.display())]
    Header { path: PathBuf, reason: String },
    #[error(
        "{path} is of a table as an object store has it, where files have other names: serve the table from its URL",
        path = path.display()
    )]
    InStore { path: PathBuf },
    #[error("{path} has format version {actual}, this program reads {expected}: build it again with this version", path = path.display())]
    Version { path: PathBuf, expected: u32, actual: u64 },
    #[error("{path} is damaged: {actual} bytes, expected {expected}: build the snapshot again, or restore it from a copy", path = path.display())]
    Length { path: PathBuf, expected: u64, actual: u64 },
    #[error("{path} is damaged: the checksum of bytes {start} to {end} differs: build the snapshot again, or restore it from a copy", path = path.display())]
    Corrupt { path: PathBuf, start: u64, end: u64 },
    #[error(
        "{path} was changed after it was opened, or cannot be read any more: put a whole folder in its place, as a build does, and load the table again",
        path = path.display()
    )]
    Changed { path: PathBuf },
    #[error("{path} is damaged: it is no list of changes: build the snapshot again, or restore it from a copy", path = path.display())]
    NoChanges { path: PathBuf },
    /// The work on the snapshot was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Returns the message that no snapshot is at `path`, which may be the URL of one.
fn missing(path: &Path) -> String {
    match path.to_str().filter(|text| text.contains("://")) {
        Some(url) => format!("{} is a URL, and the folder of a table is needed", shown_url(url)),
        None => {
            format!(
                "{} is not a hushdb snapshot (no {HEADER_FILE}): build one with {}",
                path.display(),
                Slot::Command("build", &[])
            )
        }
    }
}

impl SnapshotError {
    /// Wraps an I/O error on `path`.
    pub fn io(path: impl Into<PathBuf>, action: &'static str) -> impl FnOnce(io::Error) -> SnapshotError {
        let path = path.into();
        move |source| SnapshotError::Io { path, action, source }
    }
}

fn full_disk_hint(error: &io::Error) -> Wording {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Wording("; nothing was kept: free some space, or choose an {out} on a larger disk")
        }
        _ => Wording(""),
    }
}
