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

/// Why a snapshot could not be written or opened.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The operating system refused.
    #[error("{path}: cannot {action}: {source}{hint}", path = path.display(), hint = full_disk_hint(source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The output folder exists.
    #[error("{} exists already: {}", .0.display(), Wording("choose another {out}, or replace it with {force=true}"))]
    Exists(PathBuf),
    /// The output folder exists and is not a snapshot, so it is not replaced.
    #[error("{} is not a hushdb snapshot and is not replaced: {}", .0.display(), Wording("choose another {out}"))]
    NotASnapshot(PathBuf),
    /// The output folder is a link that leads nowhere.
    #[error("{} is a link to {}, and nothing is there: create that folder, or remove the link", path.display(), to.display())]
    DanglingLink {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        to: PathBuf,
    },
    /// A file system is mounted at the output folder, so that the folder cannot be replaced.
    #[error("{path} is a mount point, and no table can take its place: choose a folder inside it", path = .0.display())]
    MountPoint(PathBuf),
    /// Nothing can be put into the folder around the output folder.
    #[error("{}: no table can be put there: {source}: choose a folder that this user can write to", path.display())]
    Unwritable {
        /// The outer folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Another build, or change, of the same snapshot is under way.
    #[error("another build or change of {} is under way: {}", .0.display(), Wording("wait for it, or choose another {out}"))]
    Busy(PathBuf),
    /// The folder of an unfinished build is not this user's alone.
    #[error("{} is to hold the unfinished table, but {reason}: {}", path.display(), Wording("remove it, or choose another {out}"))]
    NotOurs {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No snapshot is there.
    #[error("{}", missing(path))]
    Missing {
        /// The folder.
        path: PathBuf,
    },
    /// A file of a snapshot is none.
    #[error(
        "{path} is a link, or not a regular file, and is not opened: put the file itself there, or link the table's whole folder",
        path = path.display()
    )]
    NotRegular {
        /// What is there.
        path: PathBuf,
    },
    /// The header cannot be read.
    #[error("{path} is damaged: {reason}: build the snapshot again, or restore it from a copy", path = path.display())]
    Header {
        /// The header file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The snapshot is of another version.
    #[error("{path} has format version {actual}, this program reads {expected}: build it again with this version", path = path.display())]
    Version {
        /// The header file.
        path: PathBuf,
        /// The version that this program reads.
        expected: u32,
        /// The version found.
        actual: u64,
    },
    /// A file has the wrong length.
    #[error("{path} is damaged: {actual} bytes, expected {expected}: build the snapshot again, or restore it from a copy", path = path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes in the header.
        expected: u64,
        /// Bytes on disk.
        actual: u64,
    },
    /// A chunk of a file does not match its checksum.
    #[error("{path} is damaged: the checksum of bytes {start} to {end} differs: build the snapshot again, or restore it from a copy", path = path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// First byte of the chunk.
        start: u64,
        /// One past the last byte.
        end: u64,
    },
    /// A file is not what it was when it was opened.
    #[error(
        "{path} was changed after it was opened, or cannot be read any more: put a whole folder in its place, as a build does, and load the table again",
        path = path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file of changes holds none.
    #[error("{path} is damaged: it is no list of changes: build the snapshot again, or restore it from a copy", path = path.display())]
    NoChanges {
        /// The file.
        path: PathBuf,
    },
    /// Nobody wants the snapshot any more.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Says that no snapshot is at a path, which may be the URL of one.
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
