//! The targets of look-ups, and the results.

use std::{fmt, mem};

use hush_protocol::{
    ProtocolError,
    column_type::PlainType,
    descriptor::Descriptor,
    keyword::MAX_KEY_BYTES,
    schema::{Column, ColumnType, KEY_SEPARATOR, Schema},
    sorted::found::RowMatch,
};
use zeroize::{Zeroize, Zeroizing};

/// A record to look up. It is wiped when dropped, and its `Debug` does not reveal the record.
#[derive(Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The record with this key. A key of several columns is the columns joined by [`KEY_SEPARATOR`].
    Key(Vec<u8>),
    /// The record whose key has these columns.
    Columns(Vec<Vec<u8>>),
    /// The record at this position, from 0.
    Index(u64),
    /// The rows of a sorted table that this match finds for this key. Clients are shown them as JSON ([`Sorted::find`]).
    ///
    /// [`Sorted::find`]: hush_protocol::sorted::Sorted::find
    Row(RowMatch, Vec<u8>),
}

/// A column of a key in the form in which programs give it.
pub enum KeyColumn {
    /// Text or bytes. Text is parsed as a value of the column's type.
    Bytes(Zeroizing<Vec<u8>>),
    /// A whole number.
    Number(i128),
}

impl KeyColumn {
    fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Bytes(mut bytes) => mem::take(&mut *bytes),
            Self::Number(number) => number.to_string().into_bytes(),
        }
    }
}

/// Returns whether an integer can be a value of the type.
fn takes_numbers(own: &ColumnType) -> bool {
    use PlainType::{Any, Decimal, Float, Int, Uint};
    matches!(own.plain(), Some(Any | Int(_) | Uint(_) | Float(_) | Decimal { .. }))
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key(..)",
            Self::Columns(_) => "Columns(..)",
            Self::Index(_) => "Index(..)",
            Self::Row(by, _) => return write!(f, "Row({by:?}, ..)"),
        })
    }
}

impl Wanted {
    /// Returns the record with a key of these columns. For a table by position, a single integer is the position.
    ///
    /// # Errors
    /// [`ProtocolError::Position`] if the position is out of range. [`ProtocolError::KeyForm`] if an integer is given for a
    /// column that is not numeric.
    pub fn of_columns(columns: Vec<KeyColumn>, descriptor: &Descriptor) -> Result<Self, ProtocolError> {
        let is_by_key = descriptor.is_by_key();
        if let (false, [KeyColumn::Number(number)]) = (is_by_key, &columns[..]) {
            return u64::try_from(*number).map(Self::Index).map_err(|_| ProtocolError::Position);
        }
        let key = descriptor.schema.as_ref().map_or(&[][..], |schema| &schema.key[..]);
        for (column, Column(name, own)) in columns.iter().zip(key) {
            if matches!(column, KeyColumn::Number(_)) && !takes_numbers(own) {
                let form = own.plain().map_or_else(|| own.name(), PlainType::example);
                return Err(ProtocolError::KeyForm { column: name.clone(), kind: own.name(), form });
            }
        }
        Ok(Self::Columns(columns.into_iter().map(KeyColumn::into_bytes).collect()))
    }

    /// Returns the look-up of the rows of a sorted table that `by` finds for the same key. A position becomes a number as the key.
    #[must_use]
    pub fn matching(mut self, by: RowMatch) -> Self {
        match &mut self {
            _ if by == RowMatch::Exact => self,
            Self::Key(key) | Self::Row(_, key) => Self::Row(by, mem::take(key)),
            Self::Columns(parts) => Self::Row(by, parts.join(&KEY_SEPARATOR)),
            Self::Index(index) => Self::Row(by, index.to_string().into_bytes()),
        }
    }

    /// Returns the match and the key of a look-up in a sorted table, or `None` for a position.
    pub(crate) fn row(&self) -> Option<(RowMatch, Zeroizing<Vec<u8>>)> {
        let (by, key) = match self {
            Self::Index(_) => return None,
            Self::Key(key) => (RowMatch::Exact, key.clone()),
            Self::Columns(parts) => (RowMatch::Exact, parts.join(&KEY_SEPARATOR)),
            Self::Row(by, key) => (*by, key.clone()),
        };
        Some((by, key.into()))
    }

    /// Refuses a look-up that is impossible in every table of this kind. Of the server's data, only the kind of look-up may
    /// be used here: in a batch, an error must not reveal to the server which look-up was refused.
    ///
    /// # Errors
    /// [`ProtocolError::KeyTooLong`] if the key is too long. [`ProtocolError::WrongLookup`] if a key is given for a table
    /// by position, or the reverse. [`ProtocolError::NoSuchMatch`] if the table is not sorted so that it has the match.
    pub(crate) fn check(&self, descriptor: &Descriptor) -> Result<(), ProtocolError> {
        let length = match self {
            Self::Key(key) | Self::Row(_, key) => key.len(),
            Self::Columns(parts) => parts.iter().map(|part| part.len() + 1).sum::<usize>().saturating_sub(1),
            Self::Index(_) => 0,
        };
        if length > MAX_KEY_BYTES {
            return Err(ProtocolError::KeyTooLong { actual: length, max: MAX_KEY_BYTES });
        }
        match (self, &descriptor.sorted) {
            (Self::Row(by, _), Some(sorted)) => sorted.check_match(*by),
            (Self::Row(..), None) => Err(ProtocolError::NoSuchMatch { why: "the table is not sorted" }),
            (Self::Index(_), _) if descriptor.is_by_key() => {
                Err(ProtocolError::WrongLookup { actual: "key", asked: "index" })
            }
            (Self::Key(_) | Self::Columns(_), _) if !descriptor.is_by_key() => {
                Err(ProtocolError::WrongLookup { actual: "index", asked: "key" })
            }
            _ => Ok(()),
        }
    }

    /// Returns the key in the form that the table has. Returns `None` for a position, and an error for a key that the
    /// table's schema does not allow.
    pub(crate) fn key(&self, schema: Option<&Schema>) -> Option<Result<Zeroizing<Vec<u8>>, ProtocolError>> {
        let parts = match self {
            Self::Index(_) | Self::Row(..) => return None,
            Self::Key(key) => schema.map_or_else(|| vec![&key[..]], |schema| schema.key_parts(key)),
            Self::Columns(parts) => parts.iter().map(|part| &part[..]).collect(),
        };
        let key = schema
            .map_or_else(|| Ok(Zeroizing::new(parts.join(&KEY_SEPARATOR))), |schema| schema.key(&parts));
        Some(key)
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        match self {
            Self::Key(key) => key.zeroize(),
            Self::Columns(parts) => parts.zeroize(),
            Self::Index(index) => index.zeroize(),
            Self::Row(_, key) => key.zeroize(),
        }
    }
}

/// The value of a record, or `None` if the table has no such key.
pub type Found = Option<Vec<u8>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_tells_no_secret() {
        let columns = Wanted::Columns(vec![b"secret".to_vec()]);
        let shown = format!("{:?}", [Wanted::Key(b"secret".to_vec()), columns, Wanted::Index(4711)]);
        assert_eq!(shown, "[Key(..), Columns(..), Index(..)]");
    }

    #[test]
    fn numbers_are_for_columns_of_numbers() {
        let named = |kind: &str| serde_json::from_str::<ColumnType>(&format!("\"{kind}\"")).unwrap();
        for kind in ["int8", "uint64", "float32", "decimal128[9,2]", "any"] {
            assert!(takes_numbers(&named(kind)), "{kind}");
        }
        for kind in ["string", "binary", "date32", "bool", "uuid"] {
            assert!(!takes_numbers(&named(kind)), "{kind}");
        }
    }
}
