//! Keys as they are typed or stand in a file.

#[path = "../../crates/hushdb/src/commands/get/text.rs"]
mod text;

use hush_client::Wanted;
use hush_ingest::key_list;
use text::{escaped, readable, wanted};

/// A file of keys, a key a line, and what is shown of each.
pub fn keys_file(bytes: &[u8]) {
    let Ok(keys) = key_list::keys(bytes) else {
        assert!([&b"\xff\xfe"[..], b"\xfe\xff"].contains(&&bytes[..2]));
        return;
    };
    let keys: Vec<&[u8]> = keys.collect();
    let ends = bytes.iter().filter(|&&byte| byte == b'\n').count();
    assert!(keys.len() <= ends + 1 && keys.iter().all(|key| !key.is_empty() && !key.contains(&b'\n')));
    for key in keys {
        let shown = escaped(key);
        assert!(!shown.chars().any(char::is_control));
        assert_eq!(unescaped(&shown), key);
        assert!(readable(key).chars().all(|c| !c.is_control() || c == '\t'));
        assert!(wanted(key, false) == Ok(Wanted::Key(key.to_vec())));
        match wanted(key, true) {
            Ok(Wanted::Index(index)) => {
                let digits = str::from_utf8(key).expect("digits").trim_start_matches('+');
                assert_eq!(digits.trim_start_matches('0'), index.to_string().trim_start_matches('0'));
            }
            Ok(Wanted::Key(_) | Wanted::Columns(_) | Wanted::Row(..)) => panic!("a position is no key"),
            Err(message) => assert!(!message.chars().any(char::is_control)),
        }
    }
}

/// Returns the bytes of which `escaped` made a text.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, tail)) = rest.split_first() {
        let (byte, length) = match (first, tail) {
            (b'\\', [b'\\', ..]) => (b'\\', 2),
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b'x', high, low, ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16).expect("a digit") as u8;
                (digit(high) << 4 | digit(low), 4)
            }
            (b'\\', _) => panic!("a backslash that is none"),
            (byte, _) => (byte, 1),
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    bytes
}
