//! The format of a slot of the changes: `[fingerprint][length + 1, or 0][first bytes of the value][zeros]`.
//!
//! A look-up always asks both the base and the changes, and a change takes precedence over the base. The fingerprint is
//! long even if the base's is short, because a false match here would hide a record of the base.

use crate::slot::SlotFormat;

/// The number of bytes of a fingerprint.
pub const CHANGE_FINGERPRINT_BYTES: usize = 8;

/// The layout of a slot of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeFormat(SlotFormat);

/// A change of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// The record was deleted.
    Deleted,
    /// The record has another value.
    Value {
        /// The length of the value, in bytes.
        length: usize,
        /// The first bytes of the value, followed by zeros.
        head: &'a [u8],
    },
}

impl ChangeFormat {
    /// Creates the format for values of up to `max_value_bytes` bytes, whose first `head_bytes` bytes are in the slot.
    pub fn new(max_value_bytes: usize, head_bytes: usize) -> Self {
        let slot = SlotFormat::for_values(CHANGE_FINGERPRINT_BYTES as u8, 0, max_value_bytes + 1);
        Self(slot.with_head(head_bytes))
    }

    /// Returns the format of slots of `slot_bytes` bytes. Returns `None` if that is too short for a change, or longer than
    /// the longest value needs.
    pub fn of_slots(max_value_bytes: usize, slot_bytes: usize) -> Option<Self> {
        let head_bytes = slot_bytes.checked_sub(Self::new(max_value_bytes, 0).0.slot_bytes())?;
        (head_bytes <= max_value_bytes).then(|| Self::new(max_value_bytes, head_bytes))
    }

    /// Returns the size of a slot in bytes.
    pub fn slot_bytes(&self) -> usize {
        self.0.slot_bytes()
    }

    /// Returns the most bytes of a value that a slot holds.
    pub fn head_bytes(&self) -> usize {
        self.0.stored_bytes()
    }

    /// Writes a slot. A `value` of `None` means that the record was deleted.
    ///
    /// # Panics
    /// If `slot` or `fingerprint` has a length that the format does not have, or if the value is too long. Only a defect of
    /// the builder causes this.
    pub fn encode_into(&self, fingerprint: &[u8], value: Option<&[u8]>, slot: &mut [u8]) {
        assert_eq!((slot.len(), fingerprint.len()), (self.slot_bytes(), CHANGE_FINGERPRINT_BYTES));
        assert!(value.is_none_or(|value| value.len() < self.0.max_value_bytes as usize));
        let length = value.map_or(0, |value| value.len() as u32 + 1).to_le_bytes();
        let (own, rest) = slot.split_at_mut(CHANGE_FINGERPRINT_BYTES);
        own.copy_from_slice(fingerprint);
        let (own, rest) = rest.split_at_mut(usize::from(self.0.length_bytes));
        own.copy_from_slice(&length[..own.len()]);
        let value = value.unwrap_or_default();
        let head = &value[..value.len().min(rest.len())];
        rest[..head.len()].copy_from_slice(head);
        rest[head.len()..].fill(0);
    }

    /// Returns whether `slot` has a content that no builder writes ([`SlotFormat::is_damaged`]).
    pub fn is_damaged(&self, fingerprint: &[u8], slot: &[u8]) -> bool {
        self.0.is_damaged(fingerprint, slot)
    }

    /// Returns the change in `slot`, or `None` if the slot does not have this fingerprint.
    pub fn decode<'a>(&self, fingerprint: &[u8], slot: &'a [u8]) -> Option<Change<'a>> {
        let (length, head) = self.0.decode_head(fingerprint, slot)?;
        Some(length.checked_sub(1).map_or(Change::Deleted, |length| Change::Value { length, head }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"12345678";

    #[test]
    fn changes_round_trip() {
        for (max, head, field) in [(0, 0, 1), (5, 5, 1), (254, 9, 1), (255, 255, 2), (70_000, 300, 3)] {
            let format = ChangeFormat::new(max, head);
            assert_eq!(format.slot_bytes(), 8 + field + head);
            assert_eq!(ChangeFormat::of_slots(max, format.slot_bytes()), Some(format));
            let mut slot = vec![0xaa; format.slot_bytes()];
            for length in [0, head.saturating_sub(1), head, max] {
                let value = vec![7; length];
                format.encode_into(KEY, Some(&value), &mut slot);
                let Some(Change::Value { length: found, head: first }) = format.decode(KEY, &slot) else {
                    panic!("{max}, {head}, {length}")
                };
                assert_eq!((found, first.len()), (length, head));
                assert!(first.iter().enumerate().all(|(at, &byte)| byte == if at < length { 7 } else { 0 }));
                assert_eq!(format.decode(b"12345679", &slot), None);
            }
            format.encode_into(KEY, None, &mut slot);
            assert_eq!(format.decode(KEY, &slot), Some(Change::Deleted));
        }
    }

    #[test]
    fn slots_of_no_format_are_none() {
        assert_eq!(ChangeFormat::of_slots(5, 8), None);
        assert_eq!(ChangeFormat::of_slots(5, 15), None);
        // No value has the length in this slot.
        let slot = [KEY, &[7, 0, 0, 0, 0, 0]].concat();
        assert_eq!(ChangeFormat::new(5, 5).decode(KEY, &slot), None);
    }
}
