//! The changes of a table since its base was made, by key, and the file that holds them.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};

use super::{FileEntry, Snapshot, SnapshotError, SnapshotWriter};

/// The file of the changes. For every change, in the order of keys, it has the key's length in 2 bytes, the value's length in 4
/// bytes (all ones if the record is deleted), the key, and the value. Lengths are little-endian.
pub const CHANGES_FILE: &str = "changes.bin";

/// The bytes of the two lengths in front of a key.
const LENGTHS_BYTES: usize = 6;
/// The length of a value that marks a deleted record.
const DELETED: u32 = u32::MAX;

/// The changes by key: the new value, or `None` if the record is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes(pub BTreeMap<Vec<u8>, Option<Vec<u8>>>);

/// The number of changes and the room for them, for the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCount {
    /// The number of changes, including those that delete records.
    pub changes: u64,
    /// The number of deleted records.
    pub deleted: u64,
    /// The number of changes that there is room for.
    pub room: u64,
}

impl Changes {
    /// Returns the count of the changes; `room` is the number that there is room for.
    pub fn count(&self, room: u64) -> ChangeCount {
        let deleted = self.0.values().filter(|value| value.is_none()).count() as u64;
        ChangeCount { changes: self.0.len() as u64, deleted, room }
    }

    /// Takes the changes out of a snapshot, and checks their checksums. Fails with the errors of [`Snapshot::take_checked`], with
    /// [`SnapshotError::NoChanges`] if the list is malformed, or with [`SnapshotError::Changed`].
    pub fn take(snapshot: &mut Snapshot) -> Result<Self, SnapshotError> {
        let path = snapshot.path(CHANGES_FILE);
        let file = snapshot.take_checked(CHANGES_FILE)?;
        let changes = Self::parse(file.as_ref());
        file.check()?;
        changes.ok_or(SnapshotError::NoChanges { path })
    }

    fn parse(mut content: &[u8]) -> Option<Self> {
        let mut changes = BTreeMap::new();
        while let Some((lengths, rest)) = content.split_first_chunk::<LENGTHS_BYTES>() {
            let [a, b, value_bytes @ ..] = *lengths;
            let (key, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([a, b])))?;
            let value_bytes = u32::from_le_bytes(value_bytes);
            let stored = if value_bytes == DELETED { 0 } else { value_bytes as usize };
            let (value, rest) = rest.split_at_checked(stored)?;
            changes.insert(key.to_vec(), (value_bytes != DELETED).then(|| value.to_vec()));
            content = rest;
        }
        content.is_empty().then_some(Self(changes))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (key, value) in &self.0 {
            let value_bytes = value.as_ref().map_or(DELETED, |value| value.len() as u32);
            bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
            bytes.extend_from_slice(&value_bytes.to_le_bytes());
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(value.as_deref().unwrap_or_default());
        }
        bytes
    }
}

impl SnapshotWriter {
    /// Writes the changes.
    ///
    /// # Errors
    /// The system's error, with the path; [`SnapshotError::Cancelled`].
    pub fn keep_changes(&self, changes: &Changes) -> Result<FileEntry, SnapshotError> {
        let bytes = changes.to_bytes();
        let mut file = self.create_mapped(CHANGES_FILE, bytes.len())?;
        file.bytes().copy_from_slice(&bytes);
        file.finish()
    }

    /// Takes an unchanged file of another snapshot over from the folder `from`: as a hard link if possible, which takes neither
    /// time nor space, otherwise as a copy. Fails with [`SnapshotError::Io`] if the file cannot be copied.
    pub fn take_file(&self, from: &Path, entry: &FileEntry) -> Result<(), SnapshotError> {
        take_file(from, self.partial_dir(), &entry.name)
    }
}

/// Links the file `name` of the folder `from` into the folder `to`, or copies it.
pub(in crate::snapshot) fn take_file(from: &Path, to: &Path, name: &str) -> Result<(), SnapshotError> {
    let [from, to] = [from, to].map(|folder| folder.join(name));
    if std::fs::hard_link(&from, &to).is_ok() {
        return Ok(());
    }
    // A link is impossible to another file system, on one without links, and to some files of other users.
    std::fs::copy(&from, &to).map_err(SnapshotError::io(&from, "copy"))?;
    let copy = std::fs::File::open(&to).map_err(SnapshotError::io(&to, "open"))?;
    copy.sync_all().map_err(SnapshotError::io(&to, "sync"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_written_and_read() {
        let changes = [(&b"b"[..], Some(&b"value"[..])), (b"", Some(b"")), (b"deleted", None)];
        let changes = changes.map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec)));
        let changes = Changes(changes.into_iter().collect());
        let bytes = changes.to_bytes();
        assert_eq!(Changes::parse(&bytes), Some(changes.clone()));
        assert_eq!(changes.count(9), ChangeCount { changes: 3, deleted: 1, room: 9 });
        assert_eq!(Changes::parse(&[]), Some(Changes::default()));
        for end in [1, 5, bytes.len() - 1] {
            assert_eq!(Changes::parse(&bytes[..end]), None, "cut at {end}");
        }
    }
}
