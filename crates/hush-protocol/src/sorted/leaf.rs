//! Leaves: rows in the order of their keys, each key by what it adds to the one before.
//!
//! A row is the number of bytes that its key shares with the key before, the number of further bytes of the key, these bytes, the
//! length of the value, and the value. Numbers are LEB128, as short as they can be, and as much is shared as can be.

use crate::keyword::MAX_KEY_BYTES;

/// The most bytes of a number.
const NUMBER_BYTES: usize = 5;

/// A leaf that is written.
#[derive(Default)]
pub struct LeafWriter {
    bytes: Vec<u8>,
    last: Vec<u8>,
}

impl LeafWriter {
    /// Appends a row, whose key is above that of the row before.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        append_text(&mut self.bytes, &self.last, key);
        append_number(&mut self.bytes, value.len());
        self.bytes.extend_from_slice(value);
        self.last.clear();
        self.last.extend_from_slice(key);
    }

    /// Returns the length of the leaf in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the leaf.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Returns the most bytes that a row takes in a leaf.
pub fn most_row_bytes(key: &[u8], value: &[u8]) -> usize {
    2 * number_bytes(key.len()) + number_bytes(value.len()) + key.len() + value.len()
}

/// Returns the bytes of a number.
fn number_bytes(number: usize) -> usize {
    (usize::BITS - number.leading_zeros()).div_ceil(7).max(1) as usize
}

/// Passes the key and the value of every row to `each`. Returns `None` if the leaf is malformed, its keys are not sorted, or `each`
/// returns it.
pub fn rows<'a>(mut leaf: &'a [u8], mut each: impl FnMut(&[u8], &'a [u8]) -> Option<()>) -> Option<()> {
    let mut key = Vec::new();
    let mut is_first = true;
    while !leaf.is_empty() {
        let next = read_text(&mut leaf, &key)?;
        if !is_first && next <= key {
            return None;
        }
        is_first = false;
        key = next;
        let length = read_number(&mut leaf)?;
        let (value, rest) = leaf.split_at_checked(length)?;
        leaf = rest;
        each(&key, value)?;
    }
    Some(())
}

/// Appends a text by what it adds to the text `before`.
pub fn append_text(out: &mut Vec<u8>, before: &[u8], text: &[u8]) {
    let shared = text.iter().zip(before).take_while(|(a, b)| a == b).count();
    append_number(out, shared);
    append_number(out, text.len() - shared);
    out.extend_from_slice(&text[shared..]);
}

/// Reads a text of [`append_text`], and advances `from` behind it. Returns `None` if it is malformed or longer than any key.
pub fn read_text(from: &mut &[u8], before: &[u8]) -> Option<Vec<u8>> {
    let shared = read_number(from)?;
    let length = read_number(from)?;
    let (rest, behind) = from.split_at_checked(length)?;
    let (shared, differing) = before.split_at_checked(shared)?;
    *from = behind;
    let is_short = rest.is_empty() || rest.first() != differing.first();
    (is_short && shared.len() + rest.len() <= MAX_KEY_BYTES).then(|| [shared, rest].concat())
}

fn append_number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn read_number(from: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in (0..7 * NUMBER_BYTES).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return if byte == 0 && shift > 0 { None } else { usize::try_from(number).ok() };
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(leaf: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut all = Vec::new();
        rows(leaf, |key, value| {
            all.push((key.to_vec(), value.to_vec()));
            Some(())
        })?;
        Some(all)
    }

    #[test]
    fn leaves_are_written_and_read() {
        let long = vec![7; 300];
        let own: Vec<(Vec<u8>, Vec<u8>)> = [
            (&b""[..], &b"x"[..]),
            (b"a", b""),
            (b"ab", &long),
            (b"abc", b"1"),
            (b"b", b"2"),
            (&[0xff; 200], b"3"),
        ]
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .into();
        let mut writer = LeafWriter::default();
        for (key, value) in &own {
            let before = writer.bytes();
            writer.push(key, value);
            assert!(writer.bytes() - before <= most_row_bytes(key, value));
        }
        assert_eq!(writer.bytes(), writer.bytes.len());
        let leaf = writer.finish();
        assert_eq!(read(&leaf), Some(own));
        assert_eq!(read(&[]), Some(Vec::new()));
        let whole = (1..leaf.len()).filter(|&end| read(&leaf[..end]).is_some()).count();
        assert_eq!(whole, 5, "a leaf that is cut between rows alone is whole");
    }

    #[test]
    fn hostile_leaves_are_refused() {
        for bad in [
            &[0, 1, b'b', 0, 0, 1, b'a', 0][..],
            &[0, 1, b'a', 0, 1, 0, 0],
            &[1, 0, 0],
            &[0, 0x80],
            &[0xff; 9],
            &[0, 0xff, 0xff, 0xff, 0xff, 0x7f],
            &[0, 1, b'a', 9],
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
        let long = [&[0, 0x81, 0x20][..], &[0; MAX_KEY_BYTES + 1], &[0]].concat();
        assert_eq!(read(&long), None);
    }
}
