//! What is asked for, and what was found.

/// A record to look up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The record with this key.
    Key(Vec<u8>),
    /// The record at this position, from 0.
    Index(u64),
}

/// The value of a record, or `None` if the table has no such key.
pub type Found = Option<Vec<u8>>;
