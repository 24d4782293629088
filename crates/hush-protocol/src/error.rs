//! The error of the protocol layer.

use hush_he::params::MAX_LOG2_FAILURE;
use thiserror::Error;

use crate::registry::Protocol;

/// Why a table, a message or a look-up was refused. Carries shapes and names, never data.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ProtocolError {
    /// The shape is outside what this program handles.
    #[error("{what} is {actual}, allowed is {allowed}")]
    Limit {
        /// Which number.
        what: &'static str,
        /// Its value.
        actual: u64,
        /// The range allowed, in words.
        allowed: String,
    },
    /// The slots are too long for the protocol, in any shape.
    #[error(
        "{protocol} is for the shortest values: a slot has {actual} bytes, allowed are {max}: use {instead}"
    )]
    SlotTooLong {
        /// The protocol.
        protocol: Protocol,
        /// Bytes of a slot.
        actual: usize,
        /// Most bytes of a slot.
        max: usize,
        /// A protocol that has no such limit.
        instead: Protocol,
    },
    /// The noise of the parameter set does not fit the shape.
    #[error(
        "a look-up would fail with probability 2^{log2_failure:.1}, above 2^{most}, with {columns} columns and {blocks} blocks \
         under {preset}: try fewer columns, or more where it folds; shorter values; fewer tiers; or another preset",
        most = MAX_LOG2_FAILURE
    )]
    TooNoisy {
        /// log2 of the failure probability of one answer, of all segments together.
        log2_failure: f64,
        /// Columns (D0) of the table.
        columns: usize,
        /// Row blocks.
        blocks: usize,
        /// Name of the preset.
        preset: &'static str,
    },
    /// A part of a message has the wrong length.
    #[error("{what} is {actual} bytes, expected {expected}")]
    Length {
        /// Which part.
        what: &'static str,
        /// What the table's shape needs.
        expected: usize,
        /// What came.
        actual: usize,
    },
    /// What came of the parts of a table is not all of it, each once.
    #[error(
        "the parts that were scanned are not the table: they are of another epoch, or shared out otherwise"
    )]
    Partials,
    /// The index is not in the table.
    #[error("index {index} is not in the table, which has the records 0 to {last}")]
    IndexOutOfRange {
        /// The index asked for.
        index: u64,
        /// The last record.
        last: u64,
    },
    /// A position is out of the range of positions.
    #[error("a position is a whole number from 0 to 2^64 - 1")]
    Position,
    /// The table is looked up the other way.
    #[error("the table is looked up by {actual}, not by {asked}")]
    WrongLookup {
        /// "key" or "index".
        actual: &'static str,
        /// "key" or "index".
        asked: &'static str,
    },
    /// The descriptor contradicts itself or is from a newer version.
    #[error("invalid table descriptor: {0}")]
    Descriptor(String),
    /// A key is too long.
    #[error("a key is {actual} bytes, at most {max} are allowed")]
    KeyTooLong {
        /// Length of the key.
        actual: usize,
        /// Longest key.
        max: usize,
    },
    /// A key was given with another number of columns than the table's has.
    #[error(
        "a key of {given} column{} was given, and the table's key is {key}",
        if *given == 1 { "" } else { "s" }
    )]
    KeyColumns {
        /// How many columns were given.
        given: usize,
        /// The columns of the table's key, with their types.
        key: String,
    },
    /// A column of a key is not of its type.
    #[error("the key column {} is of type {kind}, and what was given is not: it has to be {form}", column.escape_debug())]
    KeyForm {
        /// The column.
        column: String,
        /// The type of the column.
        kind: String,
        /// The form that a field of this type has, in words.
        form: String,
    },
    /// A record is not the fields that the descriptor names.
    #[error(
        "a record is not the fields that the table's descriptor names: the table is damaged, or the server does not keep to it"
    )]
    Fields,
    /// An answer was read with another table than the one that its query was made with.
    #[error("the answer belongs to another table than the query")]
    OtherTable,
    /// Uploaded evaluation keys are none of the table's.
    #[error("evaluation keys: {0}")]
    Keys(String),
    /// A query of a batch is none of the table.
    #[error("query {index} is none of this table: {source}")]
    Query {
        /// Position in the batch.
        index: usize,
        /// What is wrong with it.
        source: hush_he::HeError,
    },
    /// From the scheme layer.
    #[error(transparent)]
    He(#[from] hush_he::HeError),
    /// From a step.
    #[error(transparent)]
    Ops(#[from] hush_ops::OpsError),
}
