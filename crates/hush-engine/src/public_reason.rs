//! What everybody may know of a table that cannot be served: what is wrong, but nothing of the machine.

use hush_store::snapshot::SnapshotError;

use crate::OpenError;

/// What everybody may know of a table whose files changed while it was served.
pub const FILES_CHANGED: &str = "its files were changed while they were served";

impl OpenError {
    /// The reason without paths, numbers or words of the system. Who runs the server gets the error itself.
    pub fn public_reason(&self) -> &'static str {
        match self {
            Self::Snapshot(error) => match error {
                SnapshotError::Missing { .. } => "there is no table in its folder",
                SnapshotError::Header { .. }
                | SnapshotError::Length { .. }
                | SnapshotError::Corrupt { .. }
                | SnapshotError::NoChanges { .. } => "its files are damaged",
                SnapshotError::Changed { .. } => FILES_CHANGED,
                SnapshotError::Version { .. } => "its files are of another version",
                SnapshotError::Io { .. }
                | SnapshotError::Exists(_)
                | SnapshotError::NotASnapshot(_)
                | SnapshotError::DanglingLink { .. }
                | SnapshotError::MountPoint(_)
                | SnapshotError::Unwritable { .. }
                | SnapshotError::Busy(_)
                | SnapshotError::NotOurs { .. }
                | SnapshotError::NotRegular { .. }
                | SnapshotError::Cancelled(_) => "its files cannot be read",
            },
            Self::Protocol(_) => "its parameters are none that this server has",
            Self::Ops(_) => "what computes its answers has failed",
            Self::Fetch(_) => "it cannot be fetched",
            Self::NoRoom { .. } => "it does not fit into the memory of the server",
            Self::Memory(_) => "it does not fit into the memory of the GPU",
        }
    }
}
