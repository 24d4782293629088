//! The records of a table, as they were read, for the day on which its changes are folded into a new base.
//!
//! Keys and lengths are in one file, values in another, so that who looks for a key does not read values.

use super::{FileEntry, MappedFile, Snapshot, SnapshotError, SnapshotWriter};

/// The file of kept keys. It has, of every record, in order: the length of its key in 2 bytes, that of its value in
/// 4, the key.
pub const KEYS_FILE: &str = "keys.bin";
/// The values, one after another.
pub const VALUES_FILE: &str = "values.bin";

/// Bytes in front of a key.
const LENGTHS_BYTES: usize = 6;

impl SnapshotWriter {
    /// Writes the records. Keys have at most 65,535 bytes.
    ///
    /// # Errors
    /// What the system says, with the path; [`SnapshotError::Cancelled`].
    pub fn keep_records<'r>(
        &self,
        records: impl Iterator<Item = (&'r [u8], &'r [u8])> + Clone,
    ) -> Result<[FileEntry; 2], SnapshotError> {
        let (key_bytes, value_bytes) = records.clone().fold((0, 0), |(keys, values), (key, value)| {
            (keys + LENGTHS_BYTES + key.len(), values + value.len())
        });
        let mut keys = self.create_mapped(KEYS_FILE, key_bytes)?;
        let mut values = self.create_mapped(VALUES_FILE, value_bytes)?;
        let mut key_at = keys.bytes();
        let mut value_at = values.bytes();
        for (index, (key, value)) in records.enumerate() {
            if index.is_multiple_of(1 << 16) {
                self.cancel.check()?;
            }
            let lengths = [&(key.len() as u16).to_le_bytes()[..], &(value.len() as u32).to_le_bytes()];
            lengths.into_iter().chain([key]).for_each(|part| put(&mut key_at, part));
            put(&mut value_at, value);
        }
        Ok([keys.finish()?, values.finish()?])
    }
}

/// Writes `part` to the beginning of `to`, which is then what is behind it.
fn put(to: &mut &mut [u8], part: &[u8]) {
    let (head, rest) = std::mem::take(to).split_at_mut(part.len());
    head.copy_from_slice(part);
    *to = rest;
}

/// The records of a table.
pub struct KeptRecords {
    keys: MappedFile,
    values: MappedFile,
}

impl KeptRecords {
    /// Takes them out of a snapshot, their checksums checked.
    pub fn take(snapshot: &mut Snapshot) -> Result<Self, SnapshotError> {
        let [keys, values] = [KEYS_FILE, VALUES_FILE].map(|name| snapshot.take_checked(name));
        Ok(Self { keys: keys?, values: values? })
    }

    /// Looks whether the files are what they were when they were opened. Who has read records asks before they are used.
    ///
    /// # Errors
    /// [`SnapshotError::Changed`].
    pub fn check(&self) -> Result<(), SnapshotError> {
        self.keys.check().and_then(|()| self.values.check())
    }

    /// Key and value of every record, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        let mut values = self.values.as_ref();
        keys(self.keys.as_ref()).map_while(move |(key, value_bytes)| {
            let (value, rest) = values.split_at_checked(value_bytes)?;
            values = rest;
            Some((key, value))
        })
    }
}

/// Returns the keys in the content of [`KEYS_FILE`], in order, and the lengths of their values.
pub fn keys(mut content: &[u8]) -> impl Iterator<Item = (&[u8], usize)> + Clone {
    std::iter::from_fn(move || {
        let (lengths, rest) = content.split_first_chunk::<LENGTHS_BYTES>()?;
        let [a, b, value_bytes @ ..] = *lengths;
        let (key, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([a, b])))?;
        content = rest;
        Some((key, u32::from_le_bytes(value_bytes) as usize))
    })
}
