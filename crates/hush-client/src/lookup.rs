//! What is asked for, and what was found.

use std::fmt;

use hush_protocol::{ProtocolError, descriptor::Lookup, keyword::MAX_KEY_BYTES};
use zeroize::Zeroize;

/// A record to look up. Wiped when dropped; its `Debug` does not tell which record it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The record with this key.
    Key(Vec<u8>),
    /// The record at this position, from 0.
    Index(u64),
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key(..)",
            Self::Index(_) => "Index(..)",
        })
    }
}

impl Wanted {
    /// Refuses what no table that is looked up like this can be asked for. Nothing but the kind may come from the server here: a
    /// look-up that is refused must not tell which of several it was.
    ///
    /// # Errors
    /// [`ProtocolError::KeyTooLong`], [`ProtocolError::WrongLookup`].
    pub(crate) fn check(&self, lookup: &Lookup) -> Result<(), ProtocolError> {
        match (self, lookup) {
            (Self::Key(key), _) if key.len() > MAX_KEY_BYTES => {
                Err(ProtocolError::KeyTooLong { actual: key.len(), max: MAX_KEY_BYTES })
            }
            (Self::Key(_), Lookup::Index | Lookup::Position(_)) => {
                Err(ProtocolError::WrongLookup { actual: "index", asked: "key" })
            }
            (Self::Index(_), Lookup::Key(_)) => {
                Err(ProtocolError::WrongLookup { actual: "key", asked: "index" })
            }
            (Self::Key(_), Lookup::Key(_)) | (Self::Index(_), Lookup::Index | Lookup::Position(_)) => Ok(()),
        }
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        match self {
            Self::Key(key) => key.zeroize(),
            Self::Index(index) => index.zeroize(),
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
        let shown = format!("{:?}", [Wanted::Key(b"secret".to_vec()), Wanted::Index(4711)]);
        assert_eq!(shown, "[Key(..), Index(..)]");
    }
}
