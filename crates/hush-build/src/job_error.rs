//! The error of a job.

use std::path::PathBuf;

use hush_ingest::{IngestError, Place};
use hush_protocol::wording::Wording;
use hush_store::{
    cancel::Cancelled,
    snapshot::{Phase, SnapshotError},
};
use thiserror::Error;

use crate::{builder::BuildError, sorted::SortError};

/// A reason why a job made no new table. The target is unchanged.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum JobError {
    /// The job was cancelled. The same request resumes from `phase`, if that phase can be resumed.
    #[error("cancelled")]
    Cancelled { phase: Phase },
    #[error("{}: {source}", input.display())]
    DuplicateKey {
        input: PathBuf,
        /// [`IngestError::DuplicateKey`].
        source: IngestError,
    },
    #[error(
        "{} and {} both have the key \"{key}\"; {}",
        places[0],
        places[1],
        Wording(
            "keep one with {on-duplicate=first} or {on-duplicate=last}, or a list of them with {on-duplicate=all}"
        )
    )]
    DuplicateKeyOfFiles { key: String, places: Box<[Place; 2]> },
    /// An error while the input was read or its records were spooled.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// An error while records were sorted.
    #[error(transparent)]
    Sort(#[from] SortError),
    /// An error of the table's folder.
    #[error(transparent)]
    Target(#[from] SnapshotError),
    /// An error while the table was built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl JobError {
    /// Returns whether the error, of whichever variant, is a cancellation.
    pub(crate) fn is_cancelled(&self) -> bool {
        match self {
            Self::Cancelled { .. } | Self::Target(SnapshotError::Cancelled(_)) => true,
            Self::Build(error) => error.is_cancelled(),
            _ => false,
        }
    }
}

impl From<Cancelled> for JobError {
    fn from(cancelled: Cancelled) -> Self {
        Self::Build(cancelled.into())
    }
}
