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

/// Why a table could not be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The input has no record.
    #[error("the input has no records: there is nothing to look up")]
    NoRecords,
    /// No table is within the budgets.
    #[error("no table is within the budgets: {0}")]
    OutOfBudget(#[from] OutOfBudget),
    /// A number of columns was asked for that the protocol does not have.
    #[error(
        "{protocol} has a column for every slot: {}",
        Wording("leave {columns} out, or use {protocol=simple}")
    )]
    NoColumns {
        /// The protocol.
        protocol: Protocol,
    },
    /// A form was asked for that tables of the protocol do not have.
    #[error(
        "{protocol} does not keep plaintexts as symbols: {}",
        Wording("leave {form} out, or use {protocol=tfhe}")
    )]
    NoForm {
        /// The protocol.
        protocol: Protocol,
    },
    /// The number of columns that was asked for makes a shape that cannot be.
    #[error(
        "{} makes no table: {source}: {}",
        Slot::Setting("columns", columns),
        Wording("choose another number, or leave {columns} out")
    )]
    Columns {
        /// What was asked for.
        columns: usize,
        /// What is out of range.
        source: ProtocolError,
    },
    /// The pack columns of a plaintext would make more noise than is reckoned with.
    #[error(
        "the pack columns of plaintext {plaintext} are larger than the noise of an answer allows: {}",
        Wording("build the table with another number of columns ({columns})")
    )]
    PackColumns {
        /// Which one.
        plaintext: usize,
    },
    /// The filter is none of a table of several tiers.
    #[error(
        "a table of several tiers, or with room for changes, cannot have {}: {}",
        Slot::Setting("filter", filter),
        Wording("use band128 or band64, or {max-tiers=1} and no {updatable}")
    )]
    TierFilter {
        /// The filter.
        filter: FilterKind,
    },
    /// The tiers do not go up to the longest value.
    #[error("the longest value has {longest} bytes: {}", Wording("let the last of {tiers} be as long"))]
    TiersTooShort {
        /// The longest.
        longest: usize,
    },
    /// The tiers are not in order.
    #[error(
        "{} are lengths in bytes, each longer than the one before, at most {max} of them",
        Slot::Option("tiers")
    )]
    TierOrder {
        /// The most there are.
        max: usize,
    },
    /// The keys of a tier can be put into no shape that the base's queries ask.
    #[error(
        "the {records} values beyond {from} bytes fit no tier of this table: {}",
        Wording("use other {tiers}, or {max-tiers=1}")
    )]
    NoTier {
        /// Values that are longer.
        records: usize,
        /// Than this.
        from: usize,
    },
    /// No segment beside the base holds so many changes.
    #[error(
        "there is no room for {changes} changes beside this table, whose values fill plaintexts of their own: {}",
        Wording("ask for room for fewer ({changes})")
    )]
    NoChangeRoom {
        /// How many there was to be room for.
        changes: usize,
    },
    /// The table has no room for changes.
    #[error(
        "the table was built without room for changes: {}",
        Wording("build it again with {updatable=true}")
    )]
    NotUpdatable,
    /// A changed value is longer than any slot holds.
    #[error(
        "the value of the key '{key}' has {bytes} bytes, and the longest that the table takes {longest}: make room for it with \
         {}, and apply the change then",
        Slot::Command("compact", &[Slot::Setting("longest", bytes)])
    )]
    ChangeTooLong {
        /// The key.
        key: String,
        /// Bytes of its value.
        bytes: usize,
        /// The most.
        longest: usize,
    },
    /// There are more changes than there is room for.
    #[error(
        "the table has room for {room} changes, or for fewer of long values, and would have {changes}: {}",
        Wording(
            "fold those that are there into a new base with {compact()}, which makes room for more with {changes=N}, and apply \
                 the others then"
        )
    )]
    ChangesFull {
        /// How many there would be.
        changes: usize,
        /// How many there is room for.
        room: usize,
    },
    /// The machine has no room for the table.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// Compressing the values.
    #[error(transparent)]
    Compress(#[from] IngestError),
    /// The shape or the parameters.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The key filter.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// Writing the snapshot.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A step.
    #[error(transparent)]
    Ops(#[from] OpsError),
    /// The GPU that was asked for.
    #[error(transparent)]
    Memory(#[from] DoesNotFit),
    /// No table has the name that is to be signed.
    #[error("a table is signed under the name of its folder if no other is given, and {source}")]
    SignedName {
        /// What is wrong with it.
        source: InvalidName,
    },
    /// The serial is not above that of the table in the folder.
    #[error(
        "the table '{name}' was published with serial {previous} before, and clients refuse {serial} after that: choose a greater one"
    )]
    Serial {
        /// The signed name.
        name: Name,
        /// The serial that was asked for.
        serial: u64,
        /// The serial of the table in the folder.
        previous: u64,
    },
    /// Those who compute elsewhere.
    #[error("what others were to compute is not there: {0}; the same build goes on from what has come")]
    Crew(String),
    /// Nobody wants the table any more.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// What a table needs and the machine does not have.
#[derive(Debug, Error)]
#[error(
    "the table takes {} of {what}, {} are free: {why}; {}",
    Bytes(*needed),
    Bytes(*free),
    Wording("{force-size=true} goes on all the same")
)]
pub struct NoRoom {
    /// Disk or memory.
    pub(super) what: &'static str,
    pub(super) needed: usize,
    pub(super) free: usize,
    /// Why it takes so much, and what changes that.
    pub(super) why: String,
}

impl BuildError {
    /// Whether the build was given up, wherever that was noticed.
    pub fn is_cancelled(&self) -> bool {
        matches!(
            self,
            Self::Cancelled(_)
                | Self::Snapshot(SnapshotError::Cancelled(_))
                | Self::Compress(IngestError::Cancelled(_))
        )
    }
}
