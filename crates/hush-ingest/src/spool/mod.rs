//! The spool, in which a build stores its input to read the records several times and in any order.
//!
//! Records go to one file in the order of the input. The records of a large table with keys go to many files, its *partitions*, by
//! the hash under which the table is laid out. The builder of the blocks of the table, one after another, then reads the files one
//! after another whatever the order of the input, and needs no more of them in memory.

pub(crate) mod compress;
pub(crate) mod lists;
pub(crate) mod spooled;

use std::{
    fs::File,
    io::{self, BufWriter},
    path::{Path, PathBuf},
    str::FromStr,
};

use hush_protocol::keyword::KeyDigest;
use memmap2::Mmap;
use rayon::prelude::*;
use thiserror::Error;

use crate::{
    IngestError, Place, Record,
    record::projection::{check_key_size, check_value_size, shown_key},
    spool::spooled::{Frame, SpoolPart, SpooledRecords},
};

/// The most records of a table.
pub const MAX_RECORDS: u64 = u32::MAX as u64;

/// The most records with keys in one file; more records are partitioned.
const ONE_FILE: usize = if cfg!(test) { 64 } else { 1 << 22 };
/// The number of partitions.
const PARTITIONS: usize = 256;
/// The number of bytes that are added to the digest at a time.
const DIGEST_BYTES: usize = 1 << 17;
/// The number of bytes that are written to a file at a time: to the only one, and to a partition.
const BUFFER_BYTES: usize = 1 << 20;
const PARTITION_BUFFER_BYTES: usize = 1 << 16;

/// The treatment of several records with the same key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// Refuse the input.
    #[default]
    Error,
    /// Keep the first record.
    First,
    /// Keep the last record.
    Last,
    /// Keep all records, one behind the other, for [`SpooledRecords::lists`] to join.
    All,
}

/// The error for a text that names no [`OnDuplicate`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected one of: error, first, last, all")]
pub struct UnknownOnDuplicate;

impl FromStr for OnDuplicate {
    type Err = UnknownOnDuplicate;

    fn from_str(text: &str) -> Result<Self, UnknownOnDuplicate> {
        match text {
            "error" => Ok(Self::Error),
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            "all" => Ok(Self::All),
            _ => Err(UnknownOnDuplicate),
        }
    }
}

/// A writer of records to temporary files. The files have no names, so they vanish when the process ends in any way.
pub struct Spool {
    dir: PathBuf,
    /// The files: one, or [`PARTITIONS`].
    files: Vec<BufWriter<File>>,
    seed: [u8; blake3::KEY_LEN],
    has_keys: bool,
    records: u32,
    digest: blake3::Hasher,
    /// The bytes not yet added to the digest. Adding many at once is faster.
    undigested: Vec<u8>,
}

impl Spool {
    /// Creates an empty spool with its files in `dir`, which needs about as much disk as the input. Fails with an [`IngestError`]
    /// of the spool if the system has no randomness, or no file can be created in `dir`.
    pub fn create(dir: &Path) -> Result<Self, IngestError> {
        let mut seed = [0; blake3::KEY_LEN];
        getrandom::fill(&mut seed).map_err(|error| spool_error(dir, error.into()))?;
        Self::with_seed(dir, seed)
    }

    /// Creates an empty spool for a table that is laid out under this seed, which was drawn at random. Fails if no file can be
    /// created in `dir`.
    pub fn with_seed(dir: &Path, seed: [u8; blake3::KEY_LEN]) -> Result<Self, IngestError> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, new_file(dir)?);
        let dir = dir.into();
        let digest = blake3::Hasher::new();
        let has_keys = false;
        let records = 0;
        let undigested = Vec::with_capacity(2 * DIGEST_BYTES);
        Ok(Self { dir, files: vec![file], seed, has_keys, records, digest, undigested })
    }

    /// Appends a record.
    ///
    /// # Errors
    /// The disk is full or fails, the key or the value is too long, there are too many records, or only some records have keys. The
    /// spool is unusable after an error.
    pub fn push(&mut self, record: &Record) -> Result<(), IngestError> {
        let row = self.records;
        if u64::from(row) >= MAX_RECORDS {
            return Err(IngestError::TooManyRecords { limit: MAX_RECORDS });
        }
        if row == 0 {
            self.has_keys = record.key.is_some();
        } else if self.has_keys != record.key.is_some() {
            return Err(IngestError::MixedKeys { row: u64::from(row) + 1 });
        }
        let key = record.key.as_deref().unwrap_or_default();
        let value = &record.value[..];
        let place = || Place { path: self.dir.clone(), row: u64::from(row) + 1, line: None };
        check_key_size(key.len(), place)?;
        check_value_size(value.len(), u32::MAX as usize, place)?;
        if self.has_keys && row as usize == ONE_FILE {
            self.partition()?;
        }
        let frame = Frame { row, key, value };
        let lengths = [key.len() as u32, value.len() as u32].map(u32::to_le_bytes);
        for part in [lengths.as_flattened(), key, value] {
            self.undigested.extend_from_slice(part);
        }
        if self.undigested.len() >= DIGEST_BYTES {
            self.digest.update(&self.undigested);
            self.undigested.clear();
        }
        self.write(&frame)?;
        self.records += 1;
        Ok(())
    }

    fn write(&mut self, frame: &Frame<'_>) -> Result<(), IngestError> {
        let partition = match self.files.len() {
            1 => 0,
            all => digest(&self.seed, frame.key).first_block(all),
        };
        frame.write(&mut self.files[partition]).map_err(|source| spool_error(&self.dir, source))
    }

    /// Distributes the records of the only file to partitions.
    fn partition(&mut self) -> Result<(), IngestError> {
        let failed = |source| spool_error(&self.dir, source);
        let partitions = (0..PARTITIONS)
            .map(|_| Ok(BufWriter::with_capacity(PARTITION_BUFFER_BYTES, new_file(&self.dir)?)))
            .collect::<Result<_, IngestError>>()?;
        let [one] = <[_; 1]>::try_from(std::mem::replace(&mut self.files, partitions))
            .unwrap_or_else(|_| unreachable!("it is done once"));
        let file = one.into_inner().map_err(|error| failed(error.into_error()))?;
        let map = map(&file).map_err(failed)?;
        let mut at = 0;
        while at < map.len() {
            let frame = Frame::read(&map[at..]);
            at += frame.bytes();
            self.write(&frame)?;
        }
        Ok(())
    }

    /// Returns the number of records so far.
    pub fn len(&self) -> usize {
        self.records as usize
    }

    /// Returns whether the records have keys.
    pub fn has_keys(&self) -> bool {
        self.has_keys
    }

    /// Returns whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Settles duplicate keys and opens the records for reading. They are in the order of the input, or of partitions, each in the
    /// order of the input; records of one key that are all kept follow the first of them.
    ///
    /// # Errors
    /// [`IngestError::DuplicateKey`] for the first row that repeats a key, if refused. A file cannot be written or mapped.
    pub fn finish(self, on_duplicate: OnDuplicate) -> Result<SpooledRecords, IngestError> {
        let Self { dir, files, seed, has_keys, mut digest, undigested, .. } = self;
        let settled = files.into_par_iter().map(|file: BufWriter<File>| -> Result<_, IngestError> {
            let file = file.into_inner().map_err(|error| spool_error(&dir, error.into_error()))?;
            let map = map(&file).map_err(|source| spool_error(&dir, source))?;
            Ok(settled(map, has_keys.then_some(&seed), on_duplicate))
        });
        let settled: Vec<Settled> = settled.collect::<Result<_, _>>()?;
        let earliest =
            settled.iter().filter_map(|settled| settled.duplicate.as_ref()).min_by_key(|(_, rows)| rows[1]);
        if let (Some((key, [first, second])), OnDuplicate::Error) = (earliest, on_duplicate) {
            let first_row = u64::from(*first) + 1;
            let second_row = u64::from(*second) + 1;
            return Err(IngestError::DuplicateKey { key: shown_key(key), first_row, second_row });
        }
        digest.update(&undigested).update(&[u8::from(has_keys), on_duplicate as u8]);
        let parts = settled.into_iter().map(|settled| settled.part).collect();
        Ok(SpooledRecords::new(parts, has_keys, seed, *digest.finalize().as_bytes()))
    }
}

/// The records of a file without duplicates. `duplicate` has the earliest repeated key with the two rows, the repeating row last.
struct Settled {
    part: SpoolPart,
    duplicate: Option<(Vec<u8>, [u32; 2])>,
}

/// A record of a file with keys.
struct SpoolEntry {
    /// The first 16 bytes of the hash of the key, which stand for the key. Two keys share them with a probability of 2^-128,
    /// whoever chose the keys, since the seed was drawn later.
    key_hash: [u8; 16],
    row: u32,
    offset: u64,
}

/// Keeps one record per key, the first or the last, in the order of rows.
fn settled(map: Mmap, seed: Option<&[u8; 32]>, on_duplicate: OnDuplicate) -> Settled {
    let mut offsets = Vec::new();
    let mut entries = Vec::new();
    let mut at = 0;
    while at < map.len() {
        let frame = Frame::read(&map[at..]);
        match seed {
            None => offsets.push(at as u64),
            Some(seed) => {
                let key_hash = digest(seed, frame.key).first_half();
                entries.push(SpoolEntry { key_hash, row: frame.row, offset: at as u64 });
            }
        }
        at += frame.bytes();
    }
    let mut duplicate = None;
    if seed.is_some() {
        // Among equal keys, the first in this order is kept.
        let order =
            |entry: &SpoolEntry| if on_duplicate == OnDuplicate::Last { !entry.row } else { entry.row };
        entries.par_sort_unstable_by_key(|entry| (entry.key_hash, order(entry)));
        if on_duplicate == OnDuplicate::All {
            return Settled { part: SpoolPart::new(map, all_kept(entries)), duplicate };
        }
        let mut earliest: Option<[(u32, u64); 2]> = None;
        entries.dedup_by(|next, kept| {
            let same = next.key_hash == kept.key_hash;
            if same && earliest.is_none_or(|[_, (second, _)]| next.row < second) {
                earliest = Some([(kept.row, kept.offset), (next.row, next.offset)]);
            }
            same
        });
        entries.par_sort_unstable_by_key(|entry| entry.row);
        offsets = entries.iter().map(|entry| entry.offset).collect();
        duplicate = earliest.map(|[(first, at), (second, _)]| {
            (Frame::read(&map[at as usize..]).key.to_vec(), [first, second])
        });
    }
    let part = SpoolPart::new(map, offsets);
    part.release();
    Settled { part, duplicate }
}

/// Returns the offsets of all records, which are sorted by keys and rows: those of one key follow its first row.
fn all_kept(entries: Vec<SpoolEntry>) -> Vec<u64> {
    let mut first_row = 0;
    let mut placed: Vec<_> = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            let is_first = index == 0 || entries[index - 1].key_hash != entry.key_hash;
            first_row = if is_first { entry.row } else { first_row };
            ([first_row, entry.row], entry.offset)
        })
        .collect();
    placed.par_sort_unstable();
    placed.into_iter().map(|(_, offset)| offset).collect()
}

fn digest(seed: &[u8; 32], key: &[u8]) -> KeyDigest {
    KeyDigest::new(seed, key).expect("its length was checked")
}

pub(crate) fn new_file(dir: &Path) -> Result<File, IngestError> {
    tempfile::tempfile_in(dir).map_err(|source| spool_error(dir, source))
}

pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the file has no name and this is its only handle, so nobody else changes or shortens it.
    unsafe { Mmap::map(file) }
}

pub(crate) fn spool_error(dir: &Path, source: io::Error) -> IngestError {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            IngestError::DiskFull { dir: dir.into() }
        }
        _ => IngestError::Spool { dir: dir.into(), source },
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

    /// Spools records of a table, partitioned or not. Returns them in the order of their rows.
    fn spooled(rows: usize, on_duplicate: OnDuplicate) -> Result<Vec<(u64, String, String)>, IngestError> {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::create(folder.path()).unwrap();
        for row in 0..rows {
            let key = format!("key {}", row % 150);
            let value = format!("value {row}");
            spool.push(&Record { key: Some(key.into()), value: value.into() })?;
        }
        assert_eq!(spool.files.len(), if rows > ONE_FILE { PARTITIONS } else { 1 });
        let records = spool.finish(on_duplicate)?;
        assert_eq!(records.value_lens().map(u64::from).sum::<u64>(), records.value_bytes());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let mut all: Vec<_> = (0..records.len())
            .map(|index| (records.row(index), text(records.record(index).0), text(records.record(index).1)))
            .collect();
        // Partitions are in the order of the blocks, whatever the number of blocks.
        let blocks = |blocks: usize| {
            (0..records.len())
                .map(|index| digest(records.seed(), records.record(index).0).first_block(blocks))
                .collect::<Vec<_>>()
        };
        assert!(rows <= ONE_FILE || blocks(PARTITIONS / 2).is_sorted());
        all.sort();
        Ok(all)
    }

    #[test]
    fn partitions_have_the_records_of_one_file() {
        for rows in [1, ONE_FILE, ONE_FILE + 1, 150] {
            let records = spooled(rows, OnDuplicate::Error).unwrap();
            let expected =
                (0..rows).map(|row| (row as u64 + 1, format!("key {row}"), format!("value {row}")));
            assert!(records.into_iter().eq(expected), "{rows} rows");
        }
        let of = |row: usize| (row as u64 + 1, format!("key {}", row % 150), format!("value {row}"));
        assert!(spooled(200, OnDuplicate::First).unwrap().into_iter().eq((0..150).map(of)));
        assert!(spooled(200, OnDuplicate::Last).unwrap().into_iter().eq((50..200).map(of)));
        // The rows of a key follow each other.
        let all = spooled(200, OnDuplicate::All).unwrap();
        assert!(all.into_iter().eq((0..200).map(of)));
        let error = spooled(200, OnDuplicate::Error).unwrap_err();
        assert!(matches!(error, IngestError::DuplicateKey { first_row: 1, second_row: 151, .. }), "{error}");
    }

    #[test]
    fn keys_in_messages_are_short_and_printable() {
        assert_eq!(shown_key(b"a\x1fb\n\xff"), "a\\u{1f}b\\n\u{fffd}");
        assert_eq!(shown_key("é".repeat(100).as_bytes()), format!("{}...", "é".repeat(80)));
        assert_eq!(shown_key("é".repeat(80).as_bytes()), "é".repeat(80));
    }
}
