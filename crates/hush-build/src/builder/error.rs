//! The error of a build.

use hush_engine::{Bytes, DoesNotFit};
use hush_ingest::IngestError;
use hush_ops::OpsError;
use hush_protocol::{
    InvalidName, Name, Protocol, ProtocolError,
    keyword::{FilterError, FilterKind},
    wording::{Slot, Wording},
};
use hush_store::{cancel::Cancelled, snapshot::SnapshotError};
use thiserror::Error;

use crate::planner::OutOfBudget;

/// A reason why a table could not be built.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum BuildError {
    #[error("the input has no records: there is nothing to look up")]
    NoRecords,
    #[error("no table is within the budgets: {0}")]
    OutOfBudget(#[from] OutOfBudget),
    #[error(
        "{protocol} has a column for every slot: {}",
        Wording("leave {columns} out, or use {protocol=simple}")
    )]
    NoColumns { protocol: Protocol },
    #[error(
        "{protocol} does not keep plaintexts as symbols: {}",
        Wording("leave {form} out, or use {protocol=tfhe}")
    )]
    NoForm { protocol: Protocol },
    #[error(
        "{} makes no table: {source}: {}",
        Slot::Setting("columns", columns),
        Wording("choose another number, or leave {columns} out")
    )]
    Columns { columns: usize, source: ProtocolError },
    #[error(
        "the pack columns of plaintext {plaintext} are larger than the noise of an answer allows: {}",
        Wording("build the table with another number of columns ({columns})")
    )]
    PackColumns { plaintext: usize },
    #[error(
        "a table of several tiers, or with room for changes, cannot have {}: {}",
        Slot::Setting("filter", filter),
        Wording("use band128 or band64, or {max-tiers=1} and no {updatable}")
    )]
    TierFilter { filter: FilterKind },
    #[error("the longest value has {longest} bytes: {}", Wording("let the last of {tiers} be as long"))]
    TiersTooShort { longest: usize },
    #[error(
        "{} are lengths in bytes, each longer than the one before, at most {max} of them",
        Slot::Option("tiers")
    )]
    TierOrder { max: usize },
    #[error(
        "the {records} values beyond {from} bytes fit no tier of this table: {}",
        Wording("use other {tiers}, or {max-tiers=1}")
    )]
    NoTier { records: usize, from: usize },
    #[error(
        "there is no room for {changes} changes beside this table, whose values fill plaintexts of their own: {}",
        Wording("ask for room for fewer ({changes})")
    )]
    NoChangeRoom { changes: usize },
    #[error(
        "the table was built without room for changes: {}",
        Wording("build it again with {updatable=true}")
    )]
    NotUpdatable,
    #[error(
        "the value of the key '{key}' has {bytes} bytes, and the longest that the table takes {longest}: make room for it with \
         {}, and apply the change then",
        Slot::Command("compact", &[Slot::Setting("longest", bytes)])
    )]
    ChangeTooLong { key: String, bytes: usize, longest: usize },
    #[error(
        "the value of the key '{key}' has {bytes} bytes, which become {compressed} when they are compressed, and the longest that the \
         table takes becomes {longest}: make room for it with {}, and apply the change then",
        Slot::Command("compact", &[Slot::Setting("longest", compressed)])
    )]
    ChangeTooDense { key: String, bytes: usize, compressed: usize, longest: usize },
    #[error(
        "the table has room for {room} changes, or for fewer of long values, and would have {changes}: {}",
        Wording(
            "fold those that are there into a new base with {compact()}, which makes room for more with {changes=N}, and apply \
                 the others then"
        )
    )]
    ChangesFull { changes: usize, room: usize },
    /// The machine lacks the disk or memory for the table.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// An error while the values were compressed.
    #[error(transparent)]
    Compress(#[from] IngestError),
    /// The shape or the parameters are invalid.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The key filter could not be built.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// An error while the snapshot was written.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A computation failed.
    #[error(transparent)]
    Ops(#[from] OpsError),
    /// The build does not fit the memory of the requested GPU.
    #[error(transparent)]
    Memory(#[from] DoesNotFit),
    #[error("a table is signed under the name of its folder if no other is given, and {source}")]
    SignedName { source: InvalidName },
    #[error(
        "the table '{name}' was published with serial {previous} before, and clients refuse {serial} after that: choose a greater one"
    )]
    Serial { name: Name, serial: u64, previous: u64 },
    #[error("the pieces that others compute did not arrive: {0}; the same build resumes from those that did")]
    Crew(String),
    /// The build was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// A need for disk or memory that the machine cannot meet.
#[derive(Debug, Error)]
#[error(
    "the table takes {} of {what}, {} are free: {why}; {}",
    Bytes(*needed),
    Bytes(*free),
    Wording("{force-size=true} goes on all the same")
)]
pub struct NoRoom {
    /// The resource: disk or memory.
    pub(super) what: &'static str,
    pub(super) needed: usize,
    pub(super) free: usize,
    /// The reason for the size, and what would reduce it.
    pub(super) why: String,
}

impl BuildError {
    /// Returns whether the error, of whichever variant, is a cancellation.
    pub fn is_cancelled(&self) -> bool {
        matches!(
            self,
            Self::Cancelled(_)
                | Self::Snapshot(SnapshotError::Cancelled(_))
                | Self::Compress(IngestError::Cancelled(_))
        )
    }
}
