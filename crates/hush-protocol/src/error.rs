//! The error of the protocol layer.

use hush_he::params::MAX_LOG2_FAILURE;
use thiserror::Error;

use crate::{Code, registry::Protocol};

/// The reason why a table, a message or a look-up was refused. It contains shapes and names, never data.
#[derive(Clone, Debug, Error, PartialEq)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum ProtocolError {
    #[error("{what} is {actual}, allowed is {allowed}")]
    Limit { what: &'static str, actual: u64, allowed: String },
    #[error(
        "{protocol} is for the shortest values: a slot has {actual} bytes, allowed are {max}: use {instead}"
    )]
    SlotTooLong { protocol: Protocol, actual: usize, max: usize, instead: Protocol },
    #[error(
        "a look-up would fail with probability 2^{log2_failure:.1}, above 2^{most}, with {columns} columns and {blocks} blocks \
         under {preset}: try fewer columns, or more where it folds; shorter values; fewer tiers; or another preset",
        most = MAX_LOG2_FAILURE
    )]
    TooNoisy {
        /// log2 of the failure probability of one answer of all segments together.
        log2_failure: f64,
        columns: usize,
        blocks: usize,
        preset: &'static str,
    },
    #[error("{what} is {actual} bytes, expected {expected}")]
    Length { what: &'static str, expected: usize, actual: usize },
    #[error(
        "the parts that were scanned are not the table: they are of another epoch, or shared out otherwise"
    )]
    Partials,
    #[error("index {index} is not in the table, which has the records 0 to {last}")]
    IndexOutOfRange { index: u64, last: u64 },
    #[error("a position is a whole number from 0 to 2^64 - 1")]
    Position,
    #[error(
        "the table is looked up by {actual}, not by {asked}{}",
        if *actual == "index" { ": give the number of the record, from 0" } else { "" }
    )]
    WrongLookup { actual: &'static str, asked: &'static str },
    #[error("the table has no such look-up: {why}")]
    NoSuchMatch { why: &'static str },
    #[error("invalid table descriptor: {0}")]
    Descriptor(String),
    #[error("a key is {actual} bytes, at most {max} are allowed")]
    KeyTooLong { actual: usize, max: usize },
    #[error(
        "a key of {given} column{} was given, and the table's key is {key}",
        if *given == 1 { "" } else { "s" }
    )]
    KeyColumns { given: usize, key: String },
    #[error("the key column {} is of type {kind}, and the given key is not: give {form}", column.escape_debug())]
    KeyForm { column: String, kind: String, form: String },
    #[error(
        "a record is not the fields that the table's descriptor names: the table is damaged, or the server does not keep to it"
    )]
    Fields,
    #[error("the answer belongs to another table than the query")]
    OtherTable,
    #[error("evaluation keys: {0}")]
    Keys(String),
    #[error("query {index} is malformed for this table: {source}")]
    Query { index: usize, source: hush_he::HeError },
    /// An error of the scheme layer.
    #[error(transparent)]
    He(#[from] hush_he::HeError),
    /// An error of a backend's step.
    #[error(transparent)]
    Ops(#[from] hush_ops::OpsError),
}

impl ProtocolError {
    /// Returns the code under which a client reports a look-up that failed with this error.
    pub fn code(&self) -> Code {
        match self {
            Self::KeyTooLong { .. } => Code::KeyTooLong,
            Self::WrongLookup { .. } | Self::NoSuchMatch { .. } => Code::WrongLookup,
            Self::KeyColumns { .. } | Self::KeyForm { .. } | Self::Position => Code::BadKey,
            Self::IndexOutOfRange { .. } => Code::IndexOutOfRange,
            _ => Code::BadAnswer,
        }
    }
}
