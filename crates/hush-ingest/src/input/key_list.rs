//! Lists of keys: a key a line, as bytes.

use thiserror::Error;

/// The byte order mark of UTF-8.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
/// The byte order marks of UTF-16. The little-endian mark of UTF-32 begins with the first one.
const UTF16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// The error for a text in UTF-16.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the text is in UTF-16, and only UTF-8 is read; convert it, for instance with iconv")]
pub struct Utf16;

/// Returns the text behind a byte order mark of UTF-8, if there is one.
///
/// # Errors
/// [`Utf16`] if the text begins with a byte order mark of UTF-16.
pub fn without_mark(text: &[u8]) -> Result<&[u8], Utf16> {
    match UTF16_MARKS.iter().any(|mark| text.starts_with(mark)) {
        true => Err(Utf16),
        false => Ok(text.strip_prefix(UTF8_MARK).unwrap_or(text)),
    }
}

/// Returns the keys of a list: its lines without LF or CRLF. Skips a byte order mark and empty lines. A key may have any other
/// bytes, and is not trimmed. Refuses a text with a byte order mark of UTF-16: [`Utf16`].
pub fn keys(text: &[u8]) -> Result<impl Iterator<Item = &[u8]>, Utf16> {
    let lines = without_mark(text)?.split(|&byte| byte == b'\n');
    let keys = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    Ok(keys.filter(|key| !key.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_key_a_line() {
        let read = |text: &'static [u8]| keys(text).map(Iterator::collect::<Vec<_>>);
        assert_eq!(read(b""), Ok(vec![]));
        assert_eq!(read(b"a\n"), Ok(vec![&b"a"[..]]));
        assert_eq!(read(b" a \r\n\n\r\nb\r"), Ok(vec![&b" a "[..], b"b"]));
        assert_eq!(read(b"\xff\tx"), Ok(vec![&b"\xff\tx"[..]]));
        assert_eq!(read(b"\xef\xbb\xbfa\r\nb"), Ok(vec![&b"a"[..], b"b"]));
        assert_eq!(read(b"\xef\xbb\xbf"), Ok(vec![]));
        // A mark counts only at the beginning.
        assert_eq!(read(b"a\n\xef\xbb\xbfb"), Ok(vec![&b"a"[..], b"\xef\xbb\xbfb"]));
        for utf16 in [&b"\xff\xfea\0\n\0"[..], b"\xfe\xff\0a\0\n"] {
            assert!(keys(utf16).is_err());
        }
    }
}
