//! The keys of look-ups.

use std::fmt;

use hush_client::{self as client, Wanted};
use hush_protocol::{ProtocolError, descriptor::Descriptor, sorted::found::RowMatch};

/// Which record is looked up.
#[derive(Clone, PartialEq, Eq, uniffi::Enum)]
#[uniffi::export(Display)]
pub enum Key {
    /// The record with this key, as UTF-8. Text is read as a value of the column's type, such as a date.
    Text(String),
    /// The record with this key.
    Bytes(Vec<u8>),
    /// The record with this whole number as its key.
    Number(i64),
    /// The record at this position, from 0, of a table by position; or with this number as its key, if the key is an integer.
    Index(u64),
    /// The record with a key of these columns, in the order of the table.
    Columns(Vec<KeyColumn>),
    /// Rows of a sorted table, found by this text. The value is JSON: an object of the row's columns; for a prefix an object of
    /// such `rows` and of `more`, whether there may be further ones.
    Rows(Rows, String),
}

/// The rows of a sorted table that a look-up finds.
#[derive(Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum Rows {
    /// The last row at or before the key.
    AtOrBelow,
    /// The first row at or behind the key.
    AtOrAbove,
    /// The rows whose keys begin with the text.
    Prefix,
    /// The smallest range that has the key.
    InRange,
}

impl Rows {
    fn of_client(self) -> RowMatch {
        match self {
            Self::AtOrBelow => RowMatch::AtOrBelow,
            Self::AtOrAbove => RowMatch::AtOrAbove,
            Self::Prefix => RowMatch::Prefix,
            Self::InRange => RowMatch::InRange,
        }
    }
}

/// A column of a key.
#[derive(Clone, PartialEq, Eq, uniffi::Enum)]
#[uniffi::export(Display)]
pub enum KeyColumn {
    /// Text, as UTF-8. It is read as a value of the column's type, such as a date.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A whole number.
    Number(i64),
}

impl fmt::Display for Key {
    /// Does not tell which record it is: a log may have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl fmt::Display for KeyColumn {
    /// Does not tell which record it is: a log may have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyColumn(..)")
    }
}

impl Key {
    /// Returns the same for a session.
    pub(crate) fn wanted(self, descriptor: &Descriptor) -> Result<Wanted, ProtocolError> {
        let columns = match self {
            Self::Text(text) => return Ok(Wanted::Key(text.into_bytes())),
            Self::Bytes(bytes) => return Ok(Wanted::Key(bytes)),
            Self::Rows(rows, key) => return Ok(Wanted::Row(rows.of_client(), key.into_bytes())),
            Self::Number(number) => vec![client::KeyColumn::Number(number.into())],
            Self::Index(number) => vec![client::KeyColumn::Number(number.into())],
            Self::Columns(columns) => columns.into_iter().map(KeyColumn::of_client).collect(),
        };
        Wanted::of_columns(columns, descriptor)
    }
}

impl KeyColumn {
    fn of_client(self) -> client::KeyColumn {
        match self {
            Self::Text(text) => client::KeyColumn::Bytes(text.into_bytes().into()),
            Self::Bytes(bytes) => client::KeyColumn::Bytes(bytes.into()),
            Self::Number(number) => client::KeyColumn::Number(number.into()),
        }
    }
}
