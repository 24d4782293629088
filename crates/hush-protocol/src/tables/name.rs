//! Names that are used as a segment of a path, of a URL or of a key in an object store.

use std::{borrow::Borrow, fmt, ops::Deref, path::Path, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The name of a table, of a file of a table, or of an upload.
///
/// A name is 1 to 64 ASCII letters, digits, `.`, `_` and `-`, and does not begin with a dot. A folder joined with a name is
/// always a visible child of the folder, because `.`, `..` and separators are not names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// A text that is not a [`Name`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{shown:?} is not a name: a name is 1 to 64 of a-z A-Z 0-9 . _ - and does not begin with a dot")]
pub struct InvalidName {
    /// The beginning of the text, up to 64 characters.
    shown: String,
}

impl Name {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// Returns the last segment of a path, or an error if that is not a name.
    pub fn last_of(path: &Path) -> Result<Self, InvalidName> {
        path.file_name().unwrap_or_default().to_string_lossy().parse()
    }
}

fn is_name(text: &str) -> bool {
    (1..=Name::MAX_BYTES).contains(&text.len())
        && text.bytes().all(|byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !text.starts_with('.')
}

impl TryFrom<String> for Name {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        if is_name(&text) {
            return Ok(Self(text));
        }
        let shown = match text.char_indices().nth(Self::MAX_BYTES) {
            Some((end, _)) => format!("{}..", &text[..end]),
            None => text,
        };
        Err(InvalidName { shown })
    }
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        text.to_owned().try_into()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<Path> for Name {
    fn as_ref(&self) -> &Path {
        self.0.as_ref()
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_visible_child_of_its_folder() {
        let longest = "a".repeat(Name::MAX_BYTES);
        for text in ["a", "-x", "_", "db.bin", "1.db.bin", "people..csv", "A-z_0.9", &longest] {
            let path = Path::new("/data").join(text.parse::<Name>().unwrap());
            assert_eq!(path.parent(), Some(Path::new("/data")));
            assert_eq!(Name::last_of(&path).unwrap(), text);
        }
        let too_long = "a".repeat(Name::MAX_BYTES + 1);
        for text in [
            "", ".", "..", ".a", "...", "a/b", "/a", "a/", "a\\b", "a b", "a\0", "a\n", "\u{7f}", "ä",
            &too_long,
        ] {
            assert!(text.parse::<Name>().is_err(), "{text:?}");
            let json = serde_json::to_string(text).unwrap();
            assert!(serde_json::from_str::<Name>(&json).is_err(), "{json}");
        }
        assert!(Name::last_of(Path::new("/")).is_err() && Name::last_of(Path::new("/data/..")).is_err());
    }

    #[test]
    fn an_error_shows_the_text_escaped_and_cut() {
        let error = "..\u{1b}[2J".parse::<Name>().unwrap_err().to_string();
        assert!(error.starts_with(r#""..\u{1b}[2J" is not a name: "#), "{error}");
        let error = "ü".repeat(1 << 20).parse::<Name>().unwrap_err().to_string();
        assert!(error.len() < 300, "{} bytes", error.len());
    }
}
