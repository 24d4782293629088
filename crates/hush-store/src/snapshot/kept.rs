//! The records of a table, kept as they were read, from which a compaction makes a new base.
//!
//! Keys and lengths are in one file and values in another, so that a search for a key does not read values.

use super::{FileEntry, MappedFile, Snapshot, SnapshotError, SnapshotWriter};

/// The file of kept keys. For every record, in order, it has the key's length in 2 bytes, the value's length in 4 bytes, and the
/// key. Lengths are little-endian.
pub const KEYS_FILE: &str = "keys.bin";
/// The file of kept values, one after another.
pub const VALUES_FILE: &str = "values.bin";

/// The bytes of the two lengths in front of a key.
const LENGTHS_BYTES: usize = 6;

impl SnapshotWriter {
    /// Writes the records and returns the entries of both files. A key has at most 65,535 bytes.
    ///
    /// # Errors
    /// The system's error, with the path; [`SnapshotError::Cancelled`].
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

/// Copies `part` to the beginning of `to`, and advances `to` behind it.
fn put(to: &mut &mut [u8], part: &[u8]) {
    let (head, rest) = std::mem::take(to).split_at_mut(part.len());
    head.copy_from_slice(part);
    *to = rest;
}

/// The kept records of a table.
pub struct KeptRecords {
    keys: MappedFile,
    values: MappedFile,
}

impl KeptRecords {
    /// Takes the files of the records out of a snapshot, and checks their checksums. Fails with the errors of
    /// [`Snapshot::take_checked`].
    pub fn take(snapshot: &mut Snapshot) -> Result<Self, SnapshotError> {
        let [keys, values] = [KEYS_FILE, VALUES_FILE].map(|name| snapshot.take_checked(name));
        Ok(Self { keys: keys?, values: values? })
    }

    /// Checks whether the files are unchanged since they were opened. Call it after reading records and before using them.
    ///
    /// # Errors
    /// [`SnapshotError::Changed`] if a file changed.
    pub fn check(&self) -> Result<(), SnapshotError> {
        self.keys.check().and_then(|()| self.values.check())
    }

    /// Returns the key and the value of every record, in order.
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
