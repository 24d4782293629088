//! The conversion of typed keys to look-ups, and of records to text.

use hush_client::Wanted;

/// Returns the look-up of a key; with `index` the key is a position.
pub(super) fn wanted(key: &[u8], index: bool) -> Result<Wanted, String> {
    if !index {
        return Ok(Wanted::Key(key.to_vec()));
    }
    let position = str::from_utf8(key).ok().and_then(|text| text.parse().ok());
    position.map(Wanted::Index).ok_or_else(|| {
        format!("'{}' is not a position: with --index, keys are whole numbers from 0", escaped(key))
    })
}

/// Escapes bytes for a field of a line. Different bytes have different texts.
pub(super) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '\t' => text.push_str("\\t"),
                '\n' => text.push_str("\\n"),
                c if c.is_control() => {
                    let mut utf8 = [0; 4];
                    push_hex(&mut text, c.encode_utf8(&mut utf8).as_bytes());
                }
                c => text.push(c),
            }
        }
        push_hex(&mut text, chunk.invalid());
    }
    text
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str(&format!("\\x{byte:02x}"));
    }
}

/// Formats a value for a terminal. Control characters are replaced, so that a value cannot control the terminal.
pub(super) fn readable(bytes: &[u8]) -> String {
    let shown =
        |c: char| if c.is_control() && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
    String::from_utf8_lossy(bytes).chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_keep_lines_apart_and_bytes_exact() {
        assert_eq!(
            escaped("tab\there, line\nthere, \\ and \u{e9}".as_bytes()),
            "tab\\there, line\\nthere, \\\\ and \u{e9}"
        );
        assert_eq!(escaped(b"\x1b[31m\xff\r"), "\\x1b[31m\\xff\\x0d");
        assert_eq!(escaped("\u{85}".as_bytes()), "\\xc2\\x85");
        assert_eq!(readable(b"a\x1b\xff\n\tb"), "a\u{fffd}\u{fffd}\n\tb");
    }

    #[test]
    fn positions_are_whole_numbers() {
        assert_eq!(wanted(b"18446744073709551615", true), Ok(Wanted::Index(u64::MAX)));
        for bad in [&b"-1"[..], b"", b"1.0", b"18446744073709551616", b"\xff"] {
            assert!(wanted(bad, true).unwrap_err().starts_with(&format!("'{}'", escaped(bad))));
        }
        assert_eq!(wanted(b"7", false), Ok(Wanted::Key(b"7".to_vec())));
    }
}
