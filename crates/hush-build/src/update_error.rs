//! The error of an update.

use std::{io, path::PathBuf};

use hush_ingest::NotCast;
use hush_protocol::{
    ProtocolError,
    signature::PublicKey,
    wording::{Slot, Wording},
};
use thiserror::Error;

use crate::JobError;

/// A reason why an update made no new epoch. The table is unchanged.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum UpdateError {
    #[error(
        "there is nothing to change: {}",
        Wording("name a file of changes, or one of keys to delete with {delete}")
    )]
    Nothing,
    #[error(
        "which record a change is of is not said: {}",
        Wording("name its column, or that of the position, with {key}")
    )]
    NoKey,
    #[error(
        "the table has {part}s of the columns {}, and the changes have {part}s of the columns {}: choose the table's columns \
         with {}, or rename the columns of the changes",
        columns(table),
        columns(changes),
        Slot::Option(part)
    )]
    OtherColumns { part: &'static str, table: Vec<String>, changes: Vec<String> },
    #[error(
        "row {row} of the changes, of the key '{key}': the column {} of the table is of type {}; convert the changes, or build the table again",
        field.column.escape_debug(),
        field.expected
    )]
    OtherType { row: u64, key: String, field: NotCast },
    /// A key of the changes is invalid in the table.
    #[error(transparent)]
    Key(ProtocolError),
    #[error(
        "no epoch whose hash begins with '{named}' is kept, or more than one: {}{}",
        if kept.is_empty() { "none is kept" } else { "kept are " },
        kept.join(", ")
    )]
    NotKept { named: String, kept: Vec<String> },
    #[error("the epoch {named} is in place already")]
    InPlace { named: String },
    #[error("there is no record of the key '{key}', so that it cannot be deleted: leave it out")]
    Absent { key: String },
    #[error("the record of the key '{key}' is to be changed and to be deleted: decide which")]
    ChangedAndDeleted { key: String },
    #[error(
        "the record of the key '{key}' is to be changed twice: {}",
        Wording("leave one out, or keep one with {on-duplicate=first} or {on-duplicate=last}")
    )]
    ChangedTwice { key: String },
    #[error("the key '{key}' is to be deleted twice: leave one out")]
    DeletedTwice { key: String },
    #[error("'{text}' is not a position of this table, which has records 0 to {last}")]
    Position { text: String, last: u64 },
    #[error(
        "the table is signed by {publisher}, and clients that trust it take no other: {}",
        Wording("sign the new epoch too ({sign})")
    )]
    Unsigned { publisher: PublicKey },
    #[error("the table has no changes to fold into its base")]
    NoChanges,
    #[error("another table was put in the place of this one while its new base was made: nothing is changed")]
    Replaced,
    #[error("{}: cannot be read: {source}", path.display())]
    Keys { path: PathBuf, source: io::Error },
    /// An error of the input, of the build, or of the table's folder.
    #[error(transparent)]
    Job(JobError),
}

impl<E: Into<JobError>> From<E> for UpdateError {
    fn from(error: E) -> Self {
        Self::Job(error.into())
    }
}

/// Returns a list of column names for a message.
fn columns(names: &[String]) -> String {
    if names.is_empty() { "(none)".into() } else { names.join(", ") }
}
