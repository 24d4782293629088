//! The format of a slot: `[fingerprint][length][value][zeros]`.
//!
//! The slots of a table by key begin with the key's fingerprint. If all values have one length, there is no length field.
//! Every slot is padded to the longest value, so its size reveals nothing about its record.

use hush_math::constant_time::equal_bytes;
use serde::{Deserialize, Serialize};

/// The longest value, in bytes.
pub const MAX_VALUE_BYTES: usize = 16 << 20;

/// The layout of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotFormat {
    /// The number of bytes of the fingerprint. 0 in a table that is looked up by index.
    pub fingerprint_bytes: u8,
    /// The number of bytes of the little-endian length field. 0 if all values have one length, else 1 to 4.
    pub length_bytes: u8,
    /// The length of the longest value, in bytes.
    pub max_value_bytes: u32,
    /// The most bytes of a value that are in the slot, in a table of several tiers. The other tiers hold the bytes after
    /// these. `None` if the slot holds the whole value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_bytes: Option<u32>,
}

impl SlotFormat {
    /// Returns the format for values of `min` to `max` bytes.
    pub fn for_values(fingerprint_bytes: u8, min: usize, max: usize) -> Self {
        let length_bytes = match max {
            _ if min == max => 0,
            0..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xff_ffff => 3,
            _ => 4,
        };
        Self { fingerprint_bytes, length_bytes, max_value_bytes: max as u32, head_bytes: None }
    }

    /// Returns the format in which a slot holds only the first `head_bytes` bytes of a value.
    pub fn with_head(self, head_bytes: usize) -> Self {
        Self { head_bytes: Some(head_bytes as u32), ..self }
    }

    /// Returns the most bytes of a value that a slot holds.
    pub fn stored_bytes(&self) -> usize {
        self.head_bytes.unwrap_or(self.max_value_bytes) as usize
    }

    /// Returns the size of a slot in bytes, at least 1.
    pub fn slot_bytes(&self) -> usize {
        (usize::from(self.fingerprint_bytes) + usize::from(self.length_bytes) + self.stored_bytes()).max(1)
    }

    /// Writes a slot: `fingerprint`, the length of `value`, and `value`, zero-padded. Source: ChalametPIR section 3.1.
    ///
    /// # Panics
    /// If `slot`, `fingerprint` or `value` has a length that the format does not have. Only a defect of the builder causes this.
    pub fn encode_into(&self, fingerprint: &[u8], value: &[u8], slot: &mut [u8]) {
        assert_eq!(slot.len(), self.slot_bytes());
        self.encode_part(fingerprint, value, 0, slot);
    }

    /// Writes a section of the slot to `out`: the bytes from `start` on that [`SlotFormat::encode_into`] would write.
    ///
    /// # Panics
    /// If `fingerprint` or `value` has a length that the format does not have, or if `out` ends beyond the slot. Only a
    /// defect of the builder causes this.
    pub fn encode_part(&self, fingerprint: &[u8], value: &[u8], start: usize, out: &mut [u8]) {
        let max = self.max_value_bytes as usize;
        let end = start + out.len();
        assert!(end <= self.slot_bytes() && fingerprint.len() == usize::from(self.fingerprint_bytes));
        assert!(if self.length_bytes == 0 { value.len() == max } else { value.len() <= max });
        let length = (value.len() as u32).to_le_bytes();
        let value = &value[..value.len().min(self.stored_bytes())];
        let mut at = 0;
        for field in [fingerprint, &length[..usize::from(self.length_bytes)], value] {
            let from = start.max(at);
            let to = end.min(at + field.len());
            if from < to {
                out[from - start..to - start].copy_from_slice(&field[from - at..to - at]);
            }
            at += field.len();
        }
        out[at.clamp(start, end) - start..].fill(0);
    }

    /// Returns the value in `slot`. Returns `None` if the fingerprint differs or the length is impossible: both mean that
    /// nothing is stored under the key.
    pub fn decode<'a>(&self, fingerprint: &[u8], slot: &'a [u8]) -> Option<&'a [u8]> {
        let (length, stored) = self.decode_head(fingerprint, slot)?;
        stored.get(..length)
    }

    /// Returns the length of the value, and the section of `slot` with its first bytes and zeros. Returns `None` in the
    /// cases of [`SlotFormat::decode`].
    pub fn decode_head<'a>(&self, fingerprint: &[u8], slot: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let (is_its_own, length, rest) = self.split(fingerprint, slot)?;
        let is_possible = length <= self.max_value_bytes as usize;
        if is_its_own & is_possible { Some((length, rest.get(..self.stored_bytes())?)) } else { None }
    }

    /// Returns whether `slot` has the right fingerprint but an impossible length, or is too short. No builder writes such a
    /// slot. The slot of another record looks like it only if the fingerprints are equal by chance.
    pub fn is_damaged(&self, fingerprint: &[u8], slot: &[u8]) -> bool {
        let split = self.split(fingerprint, slot);
        split.is_none_or(|(is_its_own, length, _)| is_its_own & (length > self.max_value_bytes as usize))
    }

    /// Returns whether `slot` has the fingerprint, the value of the length field, and the bytes behind that field.
    fn split<'a>(&self, fingerprint: &[u8], slot: &'a [u8]) -> Option<(bool, usize, &'a [u8])> {
        let (head, rest) = slot.split_at_checked(usize::from(self.fingerprint_bytes))?;
        let (length, rest) = rest.split_at_checked(usize::from(self.length_bytes))?;
        let length = if length.is_empty() {
            self.max_value_bytes as usize
        } else {
            length.iter().rev().fold(0usize, |acc, &byte| acc << 8 | usize::from(byte))
        };
        Some((equal_bytes(head, fingerprint), length, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_length_round_trip() {
        for (min, max, field) in
            [(3, 3, 0), (0, 0, 0), (0, 255, 1), (0, 256, 2), (1, 65_535, 2), (0, 65_536, 3)]
        {
            let format = SlotFormat::for_values(8, min, max);
            assert_eq!(format.length_bytes, field);
            let mut slot = vec![0xaa; format.slot_bytes()];
            for length in [min, max] {
                let value = vec![7; length];
                format.encode_into(b"12345678", &value, &mut slot);
                assert_eq!(format.decode(b"12345678", &slot), Some(&value[..]));
                assert_eq!(format.decode(b"12345679", &slot), None);
                for size in [1, 7, 9, 300] {
                    for (index, expected) in slot.chunks(size).enumerate() {
                        let mut part = vec![0xaa; expected.len()];
                        format.encode_part(b"12345678", &value, index * size, &mut part);
                        assert_eq!(part, expected);
                    }
                }
            }
        }
        assert_eq!(SlotFormat::for_values(0, 0, 0).slot_bytes(), 1);
    }

    #[test]
    fn an_impossible_length_is_not_found() {
        let format = SlotFormat::for_values(0, 1, 10);
        for slot in [&[11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &[]] {
            assert!(format.decode(&[], slot).is_none() && format.is_damaged(&[], slot));
        }
        let format = SlotFormat::for_values(1, 0, 1);
        assert!(format.is_damaged(b"k", b"k\x02v") && format.decode(b"k", b"k\x02v").is_none());
        assert!(!format.is_damaged(b"k", b"x\x02v") && !format.is_damaged(b"k", b"k\x01v"));
    }
}
