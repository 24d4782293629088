//! Records in the order of their keys, as rows of leaves.

use std::cmp::Ordering;

use hush_engine::Progress;
use hush_ingest::{OnDuplicate, SpooledRecords, shown_key};
use hush_protocol::{
    schema::Schema,
    sorted::{found::range_value, leaf::most_row_bytes, order::SortOrder},
};
use rayon::prelude::*;

use super::{
    SortError, SortRequest, is_raw,
    ranges::{InputRange, Overlaps, RangePiece, pieces, range_of},
};

/// Ranges are told to be many rows, if one in so many is interrupted.
const MANY_PIECES: usize = 10;
/// The bytes of a key by which records are sorted first.
const HEAD_BYTES: usize = 16;

/// Records in the order of their keys.
pub(super) struct SortedRecords<'r> {
    records: &'r SpooledRecords,
    encoder: KeyEncoder,
    sequence: Sequence,
}

/// The order of records.
enum Sequence {
    /// The numbers of records, with the beginnings of their keys.
    Keys(Vec<([u8; HEAD_BYTES], u32)>),
    /// The pieces of ranges.
    Ranges(Vec<InputRange>, Vec<RangePiece>),
}

impl<'r> SortedRecords<'r> {
    pub(super) fn new(
        records: &'r SpooledRecords,
        request: &SortRequest,
        on_duplicate: OnDuplicate,
        progress: &dyn Progress,
    ) -> Result<Self, SortError> {
        let columns = records.columns().cloned().unwrap_or_default();
        let order = request.order;
        let encoder = KeyEncoder::of(&columns, order);
        let sequence = match request.is_range {
            false => Sequence::Keys(sorted_keys(records, encoder, on_duplicate)?),
            true => {
                let ranges = sorted_ranges(records, &columns, order, on_duplicate)?;
                let (pieces, Overlaps { pairs, first }) = pieces(&ranges, order);
                if pairs > 0 {
                    let [first, second] = first.map(|index| records.row(ranges[index].record as usize));
                    let begin = if pairs == 1 { "range begins" } else { "ranges begin" };
                    progress.note(&format!(
                        "{pairs} {begin} within one that ends before it, as those of rows {first} and {second} do: the keys of both are \
                         in the one that begins last"
                    ));
                }
                if pieces.len() > ranges.len() + ranges.len() / MANY_PIECES {
                    progress.note(&format!(
                        "{} ranges are {} rows: one that others interrupt has its value in several",
                        ranges.len(),
                        pieces.len()
                    ));
                }
                Sequence::Ranges(ranges, pieces)
            }
        };
        Ok(Self { records, encoder, sequence })
    }

    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        match &self.sequence {
            Sequence::Keys(keys) => keys.len(),
            Sequence::Ranges(_, pieces) => pieces.len(),
        }
    }

    /// Returns the key and the value of a row.
    pub(super) fn row(&self, at: usize) -> (Vec<u8>, Vec<u8>) {
        match &self.sequence {
            Sequence::Keys(keys) => {
                let (key, value) = self.records.record(keys[at].1 as usize);
                (self.encoder.checked(key), value.to_vec())
            }
            Sequence::Ranges(ranges, pieces) => {
                let RangePiece { start, range } = &pieces[at];
                let InputRange { from, to, record } = &ranges[*range as usize];
                let value = range_value(start, from, to, self.records.record(*record as usize).1);
                (start.clone(), value)
            }
        }
    }

    /// Returns an upper bound of the bytes of a row in a leaf.
    pub(super) fn longest_row(&self) -> usize {
        let lengths = |records: usize, bytes: &(dyn Fn(usize) -> usize + Sync)| {
            (0..records).into_par_iter().map(bytes).max().unwrap_or(0)
        };
        match &self.sequence {
            // In the order of the spool, which is that of its pages.
            Sequence::Keys(_) => lengths(self.records.len(), &|record| {
                let (key, value) = self.records.record(record);
                most_row_bytes(&self.encoder.checked(key), value)
            }),
            Sequence::Ranges(_, pieces) => lengths(pieces.len(), &|at| {
                let (key, value) = self.row(at);
                most_row_bytes(&key, &value)
            }),
        }
    }
}

/// The conversion of keys of records to keys as they are sorted.
#[derive(Clone, Copy)]
struct KeyEncoder {
    order: SortOrder,
    /// Whether keys are bytes that the order writes in hexadecimal.
    is_raw: bool,
}

impl KeyEncoder {
    fn of(columns: &Schema, order: SortOrder) -> Self {
        Self { order, is_raw: is_raw(columns, order) }
    }

    fn encode(self, key: &[u8]) -> Option<Vec<u8>> {
        match self.is_raw {
            true => Some(key.to_vec()),
            false => self.order.encode(key).map(|mut key| std::mem::take(&mut *key)),
        }
    }

    /// Converts a key that was checked.
    fn checked(self, key: &[u8]) -> Vec<u8> {
        self.encode(key).expect("it was checked")
    }
}

fn head(key: &[u8]) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    let length = key.len().min(HEAD_BYTES);
    head[..length].copy_from_slice(&key[..length]);
    head
}

/// Returns records in the order of their keys.
fn sorted_keys(
    records: &SpooledRecords,
    encoder: KeyEncoder,
    on_duplicate: OnDuplicate,
) -> Result<Vec<([u8; HEAD_BYTES], u32)>, SortError> {
    let key = |record: u32| records.record(record as usize).0;
    let heads = (0..records.len() as u32).into_par_iter().map(|record| match encoder.encode(key(record)) {
        Some(own) => Ok((head(&own), record)),
        None => Err(SortError::Key {
            row: records.row(record as usize),
            key: shown_key(key(record)),
            form: encoder.order.example(),
        }),
    });
    let mut keys = heads.collect::<Result<Vec<_>, _>>()?;
    let compare = |(a_head, a): &([u8; HEAD_BYTES], u32), (b_head, b): &([u8; HEAD_BYTES], u32)| {
        a_head.cmp(b_head).then_with(|| encoder.checked(key(*a)).cmp(&encoder.checked(key(*b))))
    };
    let row = |record: u32| records.row(record as usize);
    keys.par_sort_unstable_by(|a, b| compare(a, b).then_with(|| row(a.1).cmp(&row(b.1))));
    distinct(
        keys,
        |a, b| compare(a, b) == Ordering::Equal,
        on_duplicate,
        |a, b| SortError::SameKey { first: row(a.1), second: row(b.1), key: shown_key(key(a.1)) },
    )
}

/// Returns ranges in the order of their beginnings, the longer first.
fn sorted_ranges(
    records: &SpooledRecords,
    columns: &Schema,
    order: SortOrder,
    on_duplicate: OnDuplicate,
) -> Result<Vec<InputRange>, SortError> {
    let row = |record: u32| records.row(record as usize);
    let ranges = (0..records.len() as u32).into_par_iter().map(|record| {
        let parts = columns.key_parts(records.record(record as usize).0);
        range_of(&parts, order, record, row(record))
    });
    let mut ranges = ranges.collect::<Result<Vec<_>, _>>()?;
    ranges.par_sort_unstable_by(|a, b| {
        a.from.cmp(&b.from).then_with(|| b.to.cmp(&a.to)).then_with(|| row(a.record).cmp(&row(b.record)))
    });
    distinct(
        ranges,
        |a, b| a.from == b.from && a.to == b.to,
        on_duplicate,
        |a, b| SortError::SameKey {
            first: row(a.record),
            second: row(b.record),
            key: order.decode(&a.from).unwrap_or_default(),
        },
    )
}

/// Keeps one of each run of equal elements, which are in the order of their rows: the first, the last, or none but an error.
fn distinct<T>(
    all: Vec<T>,
    is_same: impl Fn(&T, &T) -> bool,
    on_duplicate: OnDuplicate,
    error: impl Fn(&T, &T) -> SortError,
) -> Result<Vec<T>, SortError> {
    let mut kept: Vec<T> = Vec::with_capacity(all.len());
    for own in all {
        match kept.last_mut() {
            Some(last) if is_same(last, &own) => match on_duplicate {
                OnDuplicate::Error | OnDuplicate::All => return Err(error(last, &own)),
                OnDuplicate::First => {}
                OnDuplicate::Last => *last = own,
            },
            _ => kept.push(own),
        }
    }
    Ok(kept)
}
