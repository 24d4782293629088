//! The reasons why a table cannot be served: for its operator, and for everybody.

use hush_ops::OpsError;
use hush_protocol::ProtocolError;
use hush_store::snapshot::SnapshotError;
use thiserror::Error;

use crate::memory::plan::DoesNotFit;

/// The public reason for a table whose files changed while it was served.
pub const FILES_CHANGED: &str = "its files were changed while they were served";

/// A reason why a snapshot could not be served.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Reading the snapshot failed.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The descriptor is invalid.
    #[error(transparent)]
    Protocol(ProtocolError),
    /// The backend failed.
    #[error(transparent)]
    Ops(#[from] OpsError),
    /// There is not enough memory for files that are to be resident.
    #[error(
        "the table needs {needed} of memory, and {room} are free: stop what else takes memory, or have its files mapped"
    )]
    NoRoom {
        /// The memory that they take.
        needed: String,
        /// The memory that is free.
        room: String,
    },
    /// The table does not fit the GPU that was asked for.
    #[error(transparent)]
    Memory(#[from] DoesNotFit),
    /// Fetching the files of a part failed.
    #[error(transparent)]
    Fetch(Box<dyn std::error::Error + Send + Sync>),
}

impl From<ProtocolError> for OpenError {
    /// Makes errors of the backend [`OpenError::Ops`], whichever way they come.
    fn from(error: ProtocolError) -> Self {
        match error {
            ProtocolError::Ops(error) => Self::Ops(error),
            error => Self::Protocol(error),
        }
    }
}

impl OpenError {
    /// Returns the reason without paths, numbers or texts of the system. The operator gets the error itself.
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
                | SnapshotError::InStore { .. }
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
