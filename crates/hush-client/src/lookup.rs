//! What is asked for, and what was found.

use std::fmt;

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
