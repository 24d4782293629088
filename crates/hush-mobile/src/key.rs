//! What is looked up.

use std::fmt;

use hush_client::Wanted;

/// Which record is looked up.
#[derive(Clone, PartialEq, Eq, uniffi::Enum)]
#[uniffi::export(Display)]
pub enum Key {
    /// The record with this key, as UTF-8. A key of several columns is their values joined by U+001F.
    Text(String),
    /// The record with this key.
    Bytes(Vec<u8>),
    /// The record at this position, from 0, of a table by position; or with this number as its key, if the key is an integer.
    Index(u64),
}

impl fmt::Display for Key {
    /// Does not tell which record it is: a log may have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl From<Key> for Wanted {
    fn from(key: Key) -> Self {
        match key {
            Key::Text(text) => Self::Key(text.into_bytes()),
            Key::Bytes(bytes) => Self::Key(bytes),
            Key::Index(index) => Self::Index(index),
        }
    }
}
