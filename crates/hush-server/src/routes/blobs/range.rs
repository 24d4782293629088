//! The part of a file that the headers of a request ask for.

use std::ops::Range;

/// A range that is malformed, or has no byte inside the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outside;

/// Returns the part of a file of `bytes` bytes that a `Range` header asks for; `None` for all of it. Fails with [`Outside`] if
/// the range is malformed or not inside the file.
///
/// Units other than bytes and several ranges at once are ignored, which RFC 9110 section 14.2 allows. `If-Range` (section 13.1.5)
/// with another entity tag asks for the whole file.
pub(super) fn wanted(
    range: Option<&[u8]>,
    if_range: Option<&[u8]>,
    etag: &str,
    bytes: u64,
) -> Result<Option<Range<u64>>, Outside> {
    let Some(range) = range else { return Ok(None) };
    if if_range.is_some_and(|tag| tag != etag.as_bytes()) {
        return Ok(None);
    }
    let text = str::from_utf8(range).ok().filter(|text| text.is_ascii()).ok_or(Outside)?;
    let (unit, set) = text.split_once('=').ok_or(Outside)?;
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
        return Ok(None);
    }
    parse_range(set.trim(), bytes).ok_or(Outside).map(Some)
}

/// Parses `first-last`, `first-` or `-length` in a file of `bytes` bytes. Returns `None` if the text is malformed or the range
/// has no byte of the file.
fn parse_range(text: &str, bytes: u64) -> Option<Range<u64>> {
    let (first, last) = text.split_once('-')?;
    let range = match (first, last) {
        ("", length) => bytes.saturating_sub(number(length)?)..bytes,
        (first, "") => number(first)?..bytes,
        (first, last) => {
            let first = number(first)?;
            let last = number(last)?;
            if last < first {
                return None;
            }
            first..bytes.min(last.saturating_add(1))
        }
    };
    (range.start < range.end).then_some(range)
}

/// Returns a decimal number; a number that does not fit counts as the largest one.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_the_rfc() {
        let parse = |text| parse_range(text, 10);
        assert_eq!(parse("0-0"), Some(0..1));
        assert_eq!(parse("2-5"), Some(2..6));
        assert_eq!(parse("9-9"), Some(9..10));
        assert_eq!(parse("5-100"), Some(5..10));
        assert_eq!(parse("5-99999999999999999999999"), Some(5..10));
        assert_eq!(parse("4-"), Some(4..10));
        assert_eq!(parse("-3"), Some(7..10));
        assert_eq!(parse("-100"), Some(0..10));
        for bad in ["10-", "10-12", "-0", "-", "", "5", "5-4", "a-b", "+1-2", "1-2-3", " 1-2", "-1-"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(parse_range("0-", 0), None);
    }

    #[test]
    fn headers_that_ask_for_no_part_get_the_whole_file() {
        let asked = |range: &[u8], if_range: Option<&[u8]>| wanted(Some(range), if_range, "\"tag\"", 10);
        assert_eq!(wanted(None, None, "\"tag\"", 10), Ok(None));
        assert_eq!(asked(b" Bytes = 2-5 ", None), Ok(Some(2..6)));
        assert_eq!(asked(b"bytes=2-5", Some(b"\"tag\"")), Ok(Some(2..6)));
        assert_eq!(asked(b"bytes=2-5", Some(b"\"other\"")), Ok(None));
        assert_eq!(asked(b"bytes=2-5,7-8", None), Ok(None));
        assert_eq!(asked(b"lines=2-5", None), Ok(None));
        for bad in [&b"bytes"[..], b"", b"bytes=", b"bytes=10-", b"bytes=\xe9", b"\xff=1-2"] {
            assert_eq!(asked(bad, None), Err(Outside));
        }
    }
}
