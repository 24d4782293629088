//! The spooled records, for reading.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use hush_protocol::schema::Schema;
use hush_store::cancel::Cancelled;
use memmap2::{Mmap, UncheckedAdvice};
use rayon::prelude::*;

use crate::{
    IngestError,
    spool::{map, new_file, spool_error},
};

/// The number of records that are converted at a time.
const CONVERTED_RECORDS: usize = 4096;

/// A record in a file: its row in 4 bytes, the length of its key in 2, the length of its value in 4; the key, the value.
pub(crate) struct Frame<'m> {
    /// The row of the input, from 0.
    pub(crate) row: u32,
    pub(crate) key: &'m [u8],
    pub(crate) value: &'m [u8],
}

/// The number of bytes in front of the key.
const HEAD_BYTES: usize = 10;

impl<'m> Frame<'m> {
    pub(crate) fn write(&self, file: &mut BufWriter<File>) -> io::Result<()> {
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&self.row.to_le_bytes());
        // The cast is safe, since a key has at most MAX_KEY_SIZE bytes.
        head[4..6].copy_from_slice(&(self.key.len() as u16).to_le_bytes());
        head[6..].copy_from_slice(&(self.value.len() as u32).to_le_bytes());
        [&head[..], self.key, self.value].into_iter().try_for_each(|part| file.write_all(part))
    }

    /// Reads the record at the start of `from`.
    pub(crate) fn read(from: &'m [u8]) -> Self {
        let ([a, b, c, d, e, f, value_size @ ..], rest) =
            from.split_first_chunk::<HEAD_BYTES>().expect("a whole record");
        let (key, rest) = rest.split_at(usize::from(u16::from_le_bytes([*e, *f])));
        let value = &rest[..u32::from_le_bytes(*value_size) as usize];
        Self { row: u32::from_le_bytes([*a, *b, *c, *d]), key, value }
    }

    /// Returns the length of the whole record in bytes.
    pub(crate) fn bytes(&self) -> usize {
        HEAD_BYTES + self.key.len() + self.value.len()
    }
}

/// The records of one file.
pub(crate) struct SpoolPart {
    map: Mmap,
    /// The offset of each record in the file.
    offsets: Vec<u64>,
}

impl SpoolPart {
    pub(crate) fn new(map: Mmap, offsets: Vec<u64>) -> Self {
        Self { map, offsets }
    }

    fn frame(&self, index: usize) -> Frame<'_> {
        Frame::read(&self.map[self.offsets[index] as usize..])
    }

    pub(crate) fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        self.offsets.iter().map(|&offset| Frame::read(&self.map[offset as usize..]))
    }

    /// Returns the length of every value in bytes. At the end the pages of the file are released.
    fn value_lens(&self) -> impl Iterator<Item = u32> {
        let release = std::iter::from_fn(|| {
            self.release();
            None
        });
        self.frames().map(|frame| frame.value.len() as u32).chain(release)
    }

    /// Releases the pages of the file from this process; the system caches them as long as it has room.
    pub(crate) fn release(&self) {
        // SAFETY: nobody writes to the mapped file, so its pages are the same when read again. A failure of this advice loses
        // nothing.
        let _ = unsafe { self.map.unchecked_advise(UncheckedAdvice::DontNeed) };
    }
}

/// The records for reading, with distinct keys: in the order of the input, or by the partitions of their keys.
pub struct SpooledRecords {
    parts: Vec<SpoolPart>,
    /// The number of records before each part.
    starts: Vec<usize>,
    has_keys: bool,
    seed: [u8; 32],
    digest: [u8; 32],
    min_value_len: usize,
    max_value_len: usize,
    value_bytes: u64,
    columns: Option<Schema>,
    position: Option<u64>,
}

impl SpooledRecords {
    pub(crate) fn new(parts: Vec<SpoolPart>, has_keys: bool, seed: [u8; 32], digest: [u8; 32]) -> Self {
        let starts = parts.iter().scan(0, |start, part| {
            let own = *start;
            *start += part.offsets.len();
            Some(own)
        });
        let starts = starts.collect();
        let lengths = parts.par_iter().map(|part: &SpoolPart| {
            part.value_lens().fold((u32::MAX, 0, 0), |(min, max, sum), length| {
                (length.min(min), length.max(max), sum + u64::from(length))
            })
        });
        let (min, max, value_bytes) = lengths
            .reduce(|| (u32::MAX, 0, 0), |a: (u32, u32, u64), b| (a.0.min(b.0), a.1.max(b.1), a.2 + b.2));
        let is_empty = parts.iter().all(|part| part.offsets.is_empty());
        let min_value_len = if is_empty { 0 } else { min as usize };
        let max_value_len = max as usize;
        Self {
            parts,
            starts,
            has_keys,
            seed,
            digest,
            min_value_len,
            max_value_len,
            value_bytes,
            columns: None,
            position: None,
        }
    }

    /// Copies the records to files in `dir`, with the values converted by `convert` on all threads. `advance` is called with the
    /// number of bytes of each converted value.
    ///
    /// # Errors
    /// The disk is full or fails; [`IngestError::Compress`] if `convert` fails; [`IngestError::Cancelled`] if `advance` does.
    pub fn converted<S>(
        &self,
        dir: &Path,
        start: impl Fn() -> S + Sync,
        convert: impl Fn(&mut S, &[u8]) -> io::Result<Vec<u8>> + Sync,
        advance: impl Fn(u64) -> Result<(), Cancelled>,
    ) -> Result<Self, IngestError> {
        let failed = |source| spool_error(dir, source);
        let mut parts = Vec::new();
        for part in &self.parts {
            let mut file = BufWriter::with_capacity(1 << 20, new_file(dir)?);
            let mut offsets = Vec::with_capacity(part.offsets.len());
            let mut bytes = 0;
            for some in part.offsets.chunks(CONVERTED_RECORDS) {
                let frame = |offset: &u64| Frame::read(&part.map[*offset as usize..]);
                let values: Vec<Vec<u8>> = some
                    .par_iter()
                    .map_init(&start, |state, offset| convert(state, frame(offset).value))
                    .collect::<io::Result<_>>()
                    .map_err(IngestError::Compress)?;
                for (old, value) in some.iter().map(frame).zip(&values) {
                    let new = Frame { value, ..old };
                    new.write(&mut file).map_err(failed)?;
                    offsets.push(bytes);
                    bytes += new.bytes() as u64;
                    advance(old.value.len() as u64).map_err(IngestError::Cancelled)?;
                }
            }
            part.release();
            let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
            parts.push(SpoolPart::new(map(&file).map_err(failed)?, offsets));
        }
        Ok(self.with_parts(parts))
    }

    pub(crate) fn parts(&self) -> &[SpoolPart] {
        &self.parts
    }

    /// Returns other records of the same keys, in the same order.
    pub(crate) fn with_parts(&self, parts: Vec<SpoolPart>) -> Self {
        let columns = self.columns.clone();
        Self::new(parts, self.has_keys, self.seed, self.digest).with_columns(columns).at(self.position)
    }

    /// Sets the columns of the records.
    pub fn with_columns(self, columns: Option<Schema>) -> Self {
        Self { columns, ..self }
    }

    /// Sets the position of a database behind which changes may be missing.
    pub fn at(self, position: Option<u64>) -> Self {
        Self { position, ..self }
    }

    /// Returns the position of a database behind which changes may be missing, if they are from one.
    pub fn position(&self) -> Option<u64> {
        self.position
    }

    /// Returns the columns of the records.
    pub fn columns(&self) -> Option<&Schema> {
        self.columns.as_ref()
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.starts.last().map_or(0, |start| start + self.parts[self.parts.len() - 1].offsets.len())
    }

    /// Returns whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the records have keys.
    pub fn has_keys(&self) -> bool {
        self.has_keys
    }

    /// Returns the seed of the hash of keys by which the records are partitioned, drawn before they were read.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    fn frame(&self, index: usize) -> Frame<'_> {
        let part = self.starts.partition_point(|&start| start <= index) - 1;
        self.parts[part].frame(index - self.starts[part])
    }

    /// Returns the key and the value of record `index`; the key is empty if the records have none.
    ///
    /// # Panics
    /// If `index` is not less than [`SpooledRecords::len`].
    pub fn record(&self, index: usize) -> (&[u8], &[u8]) {
        let Frame { key, value, .. } = self.frame(index);
        (key, value)
    }

    /// Returns the row of the input, from 1, of record `index`.
    ///
    /// # Panics
    /// If `index` is not less than [`SpooledRecords::len`].
    pub fn row(&self, index: usize) -> u64 {
        u64::from(self.frame(index).row) + 1
    }

    /// Releases the pages of the records from this process; the system caches them as long as it has room.
    pub fn release(&self) {
        self.parts.iter().for_each(SpoolPart::release);
    }

    /// Returns a digest of the records in order and of the treatment of duplicates. It covers keys, values and columns, but not the
    /// places in the input.
    pub fn digest(&self) -> [u8; 32] {
        let mut all = blake3::Hasher::new();
        all.update(&self.digest);
        all.update(&serde_json::to_vec(&self.columns).expect("columns are plain data"));
        *all.finalize().as_bytes()
    }

    /// Returns the length of the shortest value in bytes; 0 if there is no record.
    pub fn min_value_len(&self) -> usize {
        self.min_value_len
    }

    /// Returns the length of the longest value in bytes; 0 if there is no record.
    pub fn max_value_len(&self) -> usize {
        self.max_value_len
    }

    /// Returns the length of every value in bytes, in the order of the records.
    pub fn value_lens(&self) -> impl Iterator<Item = u32> {
        self.parts.iter().flat_map(SpoolPart::value_lens)
    }

    /// Returns the number of bytes of all keys and values, as they were read.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| (part.map.len() - HEAD_BYTES * part.offsets.len()) as u64).sum()
    }

    /// Returns the number of bytes of all values.
    pub fn value_bytes(&self) -> u64 {
        self.value_bytes
    }
}
