//! Records on disk: a build reads its input once, and its records several times and in any order.

use std::{
    cmp::Reverse,
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    str::FromStr,
};

use hush_protocol::fields::Fields;
use memmap2::Mmap;
use rayon::prelude::*;
use thiserror::Error;

use super::{
    IngestError, Place, Record,
    record::{check_key_size, check_value_size},
};
use crate::cancel::Cancelled;

/// The most records of a table.
pub const MAX_RECORDS: u64 = u32::MAX as u64;

/// Records that one thread hashes at a time.
const DIGEST_RECORDS: usize = 1 << 14;

/// What to do with several records of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// Refuse the input.
    #[default]
    Error,
    /// Keep the first record.
    First,
    /// Keep the last record.
    Last,
}

/// The text names no [`OnDuplicate`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected one of: error, first, last")]
pub struct UnknownOnDuplicate;

impl FromStr for OnDuplicate {
    type Err = UnknownOnDuplicate;

    fn from_str(text: &str) -> Result<Self, UnknownOnDuplicate> {
        match text {
            "error" => Ok(Self::Error),
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            _ => Err(UnknownOnDuplicate),
        }
    }
}

/// What is kept in memory of a record: 32 bytes. On disk, it is the length of its key in 2 bytes, key, and value.
#[derive(Clone, Copy)]
struct Entry {
    /// The first 16 bytes of a hash of the key under a random secret: two keys share them with a probability of
    /// 2^-128, whoever chose the keys, so that they stand for the key. 0 without keys.
    key_hash: [u64; 2],
    /// Where the record starts in the file.
    offset: u64,
    value_size: u32,
    /// The row of the input, from 0.
    row: u32,
}

const _: () = assert!(size_of::<Entry>() == 32);

/// Records that are converted at a time.
const CONVERTED_RECORDS: usize = 4096;

/// Writes records to a temporary file. The file has no name, so it goes when the process ends, however it ends.
pub struct Spool {
    dir: PathBuf,
    file: BufWriter<File>,
    hash_secret: [u8; blake3::KEY_LEN],
    entries: Vec<Entry>,
    has_keys: bool,
    bytes: u64,
}

impl Spool {
    /// An empty spool with its file in `dir`, which needs about the size of the input.
    ///
    /// # Errors
    /// If no file can be created there.
    pub fn create(dir: &Path) -> Result<Self, IngestError> {
        let file = tempfile::tempfile_in(dir).map_err(|source| spool_error(dir, source))?;
        let mut hash_secret = [0; blake3::KEY_LEN];
        getrandom::fill(&mut hash_secret).map_err(|error| spool_error(dir, error.into()))?;
        Ok(Self {
            dir: dir.into(),
            file: BufWriter::with_capacity(1 << 20, file),
            hash_secret,
            entries: Vec::new(),
            has_keys: false,
            bytes: 0,
        })
    }

    /// Appends a record.
    ///
    /// # Errors
    /// If the disk is full or fails, if the key or the value is too long, if there are too many records, or if only
    /// some records have keys. The spool is of no use after an error.
    pub fn push(&mut self, record: &Record) -> Result<(), IngestError> {
        let row = u32::try_from(self.entries.len()).ok().filter(|&row| u64::from(row) < MAX_RECORDS);
        let row = row.ok_or(IngestError::TooManyRecords { limit: MAX_RECORDS })?;
        if row == 0 {
            self.has_keys = record.key.is_some();
        } else if self.has_keys != record.key.is_some() {
            return Err(IngestError::MixedKeys { row: u64::from(row) + 1 });
        }
        let key = record.key.as_deref().unwrap_or_default();
        let place = || Place { path: self.dir.clone(), row: u64::from(row) + 1, line: None };
        check_key_size(key.len(), place)?;
        check_value_size(record.value.len(), u32::MAX as usize, place)?;
        let key_hash = if self.has_keys { self.hash_key(key) } else { [0; 2] };
        let key_size = key.len() as u16; // at most MAX_KEY_SIZE
        let mut write = || {
            self.file.write_all(&key_size.to_le_bytes())?;
            self.file.write_all(key)?;
            self.file.write_all(&record.value)
        };
        write().map_err(|source| spool_error(&self.dir, source))?;
        let value_size = record.value.len() as u32; // checked above
        self.entries.push(Entry { key_hash, offset: self.bytes, value_size, row });
        self.bytes += 2 + key.len() as u64 + u64::from(value_size);
        Ok(())
    }

    /// The number of records so far.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Settles duplicate keys and opens the records for reading, in the order of the input.
    ///
    /// # Errors
    /// [`IngestError::DuplicateKey`] for the first row that repeats a key, if duplicates are refused; or if the file
    /// cannot be written or mapped.
    pub fn finish(mut self, on_duplicate: OnDuplicate) -> Result<SpooledRecords, IngestError> {
        let file = self.file.into_inner().map_err(|error| spool_error(&self.dir, error.into_error()))?;
        // SAFETY: the file has no name and this is its only handle, so nobody else changes or shortens it.
        let map = unsafe { Mmap::map(&file) }.map_err(|source| spool_error(&self.dir, source))?;
        if self.has_keys {
            let duplicates = remove_duplicates(&mut self.entries, on_duplicate);
            if let Some([first, second]) = duplicates.filter(|_| on_duplicate == OnDuplicate::Error) {
                return Err(IngestError::DuplicateKey {
                    key: shortened(split_record(&map, &second).0),
                    first_row: u64::from(first.row) + 1,
                    second_row: u64::from(second.row) + 1,
                });
            }
        }
        Ok(SpooledRecords::new(map, self.entries, self.has_keys))
    }

    fn hash_key(&self, key: &[u8]) -> [u64; 2] {
        let hash = *blake3::keyed_hash(&self.hash_secret, key).as_bytes();
        [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|i| hash[at + i])))
    }
}

/// Keeps one entry per key, the first or the last, and the order of rows. Returns the earliest entry that repeats a
/// key, after the entry whose key it repeats.
fn remove_duplicates(entries: &mut Vec<Entry>, on_duplicate: OnDuplicate) -> Option<[Entry; 2]> {
    if on_duplicate == OnDuplicate::Last {
        entries.par_sort_unstable_by_key(|entry| (entry.key_hash, Reverse(entry.row)));
    } else {
        entries.par_sort_unstable_by_key(|entry| (entry.key_hash, entry.row));
    }
    let mut earliest: Option<[Entry; 2]> = None;
    entries.dedup_by(|next, kept| {
        let same = next.key_hash == kept.key_hash;
        if same && earliest.is_none_or(|[_, second]| next.row < second.row) {
            earliest = Some([*kept, *next]);
        }
        same
    });
    entries.par_sort_unstable_by_key(|entry| entry.row);
    earliest
}

/// The key and the value of a record in the file.
fn split_record<'m>(map: &'m [u8], entry: &Entry) -> (&'m [u8], &'m [u8]) {
    let record = &map[entry.offset as usize..];
    let key_size = usize::from(u16::from_le_bytes([record[0], record[1]]));
    let (key, rest) = record[2..].split_at(key_size);
    (key, &rest[..entry.value_size as usize])
}

/// A key for a message: what is not UTF-8 replaced, control characters escaped, at most 80 characters.
fn shortened(key: &[u8]) -> String {
    const SHOWN: usize = 80;
    let text = String::from_utf8_lossy(key);
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

fn spool_error(dir: &Path, source: io::Error) -> IngestError {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            IngestError::DiskFull { dir: dir.into() }
        }
        _ => IngestError::Spool { dir: dir.into(), source },
    }
}

/// Records for reading, in the order of the input and with distinct keys.
pub struct SpooledRecords {
    map: Mmap,
    entries: Vec<Entry>,
    has_keys: bool,
    min_value_len: usize,
    max_value_len: usize,
    value_bytes: u64,
    fields: Option<Fields>,
}

impl SpooledRecords {
    fn new(map: Mmap, entries: Vec<Entry>, has_keys: bool) -> Self {
        let sizes = || entries.iter().map(|entry| entry.value_size);
        let min_value_len = sizes().min().unwrap_or(0) as usize;
        let max_value_len = sizes().max().unwrap_or(0) as usize;
        let value_bytes = sizes().map(u64::from).sum();
        Self { map, entries, has_keys, min_value_len, max_value_len, value_bytes, fields: None }
    }

    /// The same records in a file in `dir`, with the values that `convert` makes of theirs, on all threads. `advance` is told of so
    /// many bytes of values that are done.
    ///
    /// # Errors
    /// If the disk is full or fails; [`IngestError::Compress`] where `convert` fails; [`IngestError::Cancelled`] if `advance` does.
    pub fn converted<S>(
        &self,
        dir: &Path,
        start: impl Fn() -> S + Sync,
        convert: impl Fn(&mut S, &[u8]) -> io::Result<Vec<u8>> + Sync,
        advance: impl Fn(u64) -> Result<(), Cancelled>,
    ) -> Result<Self, IngestError> {
        let failed = |source| spool_error(dir, source);
        let mut file = BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(dir).map_err(failed)?);
        let (mut entries, mut bytes) = (Vec::with_capacity(self.entries.len()), 0);
        for some in self.entries.chunks(CONVERTED_RECORDS) {
            let values: Vec<Vec<u8>> = some
                .par_iter()
                .map_init(&start, |state, entry| convert(state, split_record(&self.map, entry).1))
                .collect::<io::Result<_>>()
                .map_err(IngestError::Compress)?;
            for (entry, value) in some.iter().zip(values) {
                let (key, old) = split_record(&self.map, entry);
                let key_size = key.len() as u16; // it was one before
                let key_size = key_size.to_le_bytes();
                let mut parts = [&key_size[..], key, &value].into_iter();
                parts.try_for_each(|part| file.write_all(part)).map_err(failed)?;
                entries.push(Entry { offset: bytes, value_size: value.len() as u32, ..*entry });
                bytes += 2 + key.len() as u64 + value.len() as u64;
                advance(old.len() as u64).map_err(IngestError::Cancelled)?;
            }
        }
        let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        // SAFETY: the file has no name and this is its only handle, so nobody else changes or shortens it.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        Ok(Self::new(map, entries, self.has_keys).with_fields(self.fields.clone()))
    }

    /// The same, whose values are of these fields.
    pub fn with_fields(self, fields: Option<Fields>) -> Self {
        Self { fields, ..self }
    }

    /// The fields of a value, if it is of several columns.
    pub fn fields(&self) -> Option<&Fields> {
        self.fields.as_ref()
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the records have keys.
    pub fn has_keys(&self) -> bool {
        self.has_keys
    }

    /// The key and the value of record `index`; the key is empty if the records have none.
    ///
    /// # Panics
    /// If `index` is not less than [`SpooledRecords::len`].
    pub fn record(&self, index: usize) -> (&[u8], &[u8]) {
        split_record(&self.map, &self.entries[index])
    }

    /// The row of the input, from 1, that record `index` came from.
    ///
    /// # Panics
    /// If `index` is not less than [`SpooledRecords::len`].
    pub fn row(&self, index: usize) -> u64 {
        u64::from(self.entries[index].row) + 1
    }

    /// Digest of all records and their order: keys, values and their fields, not where in the input they were. On all threads,
    /// which call `check` every now and then.
    ///
    /// # Errors
    /// What `check` returns.
    pub fn digest(&self, check: impl Fn() -> Result<(), Cancelled> + Sync) -> Result<[u8; 32], Cancelled> {
        let of_some = |entries: &[Entry]| {
            check()?;
            let mut hasher = blake3::Hasher::new();
            for entry in entries {
                let (key, value) = split_record(&self.map, entry);
                for part in [key, value] {
                    hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
                }
            }
            Ok(*hasher.finalize().as_bytes())
        };
        let digests: Vec<_> =
            self.entries.par_chunks(DIGEST_RECORDS).map(of_some).collect::<Result<_, _>>()?;
        let mut all = blake3::Hasher::new();
        all.update(&[u8::from(self.has_keys)]);
        for name in self.fields.iter().flat_map(Fields::names) {
            all.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        }
        all.update(digests.as_flattened());
        Ok(*all.finalize().as_bytes())
    }

    /// Bytes of the shortest value; 0 if there is no record.
    pub fn min_value_len(&self) -> usize {
        self.min_value_len
    }

    /// Bytes of the longest value; 0 if there is no record.
    pub fn max_value_len(&self) -> usize {
        self.max_value_len
    }

    /// Bytes of every value, in the order of the records.
    pub fn value_lens(&self) -> impl Iterator<Item = u32> {
        self.entries.iter().map(|entry| entry.value_size)
    }

    /// Bytes of all values.
    pub fn value_bytes(&self) -> u64 {
        self.value_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_other_failures() {
        let dir = Path::new("/spool");
        // ENOSPC and EDQUOT of Linux.
        for code in [28, 122] {
            let error = spool_error(dir, io::Error::from_raw_os_error(code));
            assert!(matches!(&error, IngestError::DiskFull { dir } if dir == Path::new("/spool")), "{error}");
            assert!(error.to_string().starts_with("/spool: the disk is full"));
        }
        let other = spool_error(dir, io::Error::from_raw_os_error(5));
        assert!(matches!(other, IngestError::Spool { .. }));
    }

    #[test]
    fn keys_in_messages_are_short_and_printable() {
        assert_eq!(shortened(b"a\x1fb\n\xff"), "a\\u{1f}b\\n\u{fffd}");
        assert_eq!(shortened("é".repeat(100).as_bytes()), format!("{}...", "é".repeat(80)));
        assert_eq!(shortened("é".repeat(80).as_bytes()), "é".repeat(80));
    }
}
