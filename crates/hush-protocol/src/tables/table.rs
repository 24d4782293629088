//! The shape of a table, and the limits of all tables.

use hush_he::params::{MAX_LOG2_FAILURE, Widths};
use hush_ops::tiling::Tiling;

use crate::{ProtocolError, facts::SegmentRule};

/// Most columns (D0): a query of this many words is 256 MiB, beyond any sensible one.
pub const MAX_COLUMNS: usize = 1 << 26;
/// Most database rows.
pub const MAX_DB_ROWS: usize = 1 << 31;
/// Longest slot: a value of 16 MiB with fingerprint and length.
pub const MAX_SLOT_BYTES: usize = (16 << 20) + 64;
/// Look-ups that a client is taken to make before the table changes: what shapes and widths are weighed by.
pub const LOOKUPS_PER_EPOCH: f64 = 100.0;
/// Most bytes of DoublePIR's hint, which grows by several MiB with every byte of a slot.
pub const MAX_DOUBLE_HINT_BYTES: usize = 1 << 30;

/// Most bytes of what a server computes from a table and keeps beside it in one file: a lifted hint, the second database of
/// `exppack-d`, pack columns.
pub const MAX_KEPT_BYTES: u64 = 1 << 40;
/// Most bytes of an answer that is packed, which a client holds in memory.
pub(crate) const MAX_ANSWER_BYTES: usize = 256 << 20;

/// The shape of a table: `blocks` blocks, `columns` (D0) slots in each, of which a look-up adds up a few.
///
/// Over LWE, packed or not, a block is a band of `slot_bytes` database rows. Over rings it is a place in a plaintext of every row
/// of the first dimension ([`crate::ring_table::RingTable`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableShape {
    /// Slots in a block, the first dimension D0.
    pub columns: usize,
    /// Blocks.
    pub blocks: usize,
    /// Bytes of a slot.
    pub slot_bytes: usize,
}

/// The shape of a segment beside the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentShape {
    /// The shape; the blocks are `entries` times some lanes.
    pub shape: TableShape,
    /// Entries.
    pub entries: usize,
}

impl SegmentShape {
    /// Blocks of an entry.
    pub fn lanes(&self) -> usize {
        self.shape.blocks / self.entries.max(1)
    }

    /// `Ok` if a segment of it can be asked with the queries of a base of this rule, where an entry has up to `lanes` lanes.
    pub(crate) fn check(&self, rule: &SegmentRule, lanes: usize) -> Result<(), ProtocolError> {
        let Self { shape, entries } = *self;
        let SegmentRule { columns: all, column_unit: unit, .. } = *rule;
        let divides = shape.columns > 0
            && all.is_multiple_of(shape.columns)
            && (shape.columns == all || shape.columns.is_multiple_of(unit));
        if !divides {
            return Err(ProtocolError::Limit {
                what: "columns of a segment",
                actual: shape.columns as u64,
                allowed: format!("a divisor of {all}, and a multiple of {unit}"),
            });
        }
        if !rule.entries.contains(&entries) {
            return Err(ProtocolError::Limit {
                what: "entries of a segment",
                actual: entries as u64,
                allowed: format!("one of {:?}", rule.entries),
            });
        }
        if shape.blocks == 0 || !shape.blocks.is_multiple_of(entries) || self.lanes() > lanes {
            return Err(ProtocolError::Limit {
                what: "blocks of a segment",
                actual: shape.blocks as u64,
                allowed: format!("1 to {lanes} for each of {entries} entries"),
            });
        }
        Ok(())
    }
}

impl TableShape {
    /// Returns the tiling of the byte database of a table that is folded over LWE: a block is a band of `slot_bytes` rows.
    pub fn byte_tiling(&self) -> Tiling {
        Tiling::new(self.blocks * self.slot_bytes, self.columns)
    }
}

/// Returns the fewest bits of a query word that keep [`Widths::MIN_SIGMAS`]; 32 if none do.
pub(crate) fn fewest_query_bits(sigmas: impl Fn(u32) -> f64) -> u32 {
    (16..=32).find(|&bits| sigmas(bits) >= Widths::MIN_SIGMAS).unwrap_or(32)
}

/// `Ok` if what a server keeps is at most [`MAX_KEPT_BYTES`] long.
pub(crate) fn check_kept(what: &'static str, actual: u64) -> Result<(), ProtocolError> {
    if actual <= MAX_KEPT_BYTES {
        return Ok(());
    }
    Err(ProtocolError::Limit { what, actual, allowed: format!("up to {MAX_KEPT_BYTES}") })
}

/// `Ok` if an answer of a table of this shape fails with probability `2^MAX_LOG2_FAILURE` at most.
pub(crate) fn check_failure(
    log2_failure: f64,
    shape: TableShape,
    preset: &'static str,
) -> Result<(), ProtocolError> {
    if log2_failure <= MAX_LOG2_FAILURE {
        return Ok(());
    }
    let TableShape { columns, blocks, .. } = shape;
    Err(ProtocolError::TooNoisy { log2_failure, columns, blocks, preset })
}

/// `Ok` if `actual` is 1 to `max`.
pub(crate) fn check_limit(what: &'static str, actual: usize, max: usize) -> Result<(), ProtocolError> {
    if (1..=max).contains(&actual) {
        return Ok(());
    }
    Err(ProtocolError::Limit { what, actual: actual as u64, allowed: format!("1 to {max}") })
}

/// Returns the refusal of a descriptor, for `reason`.
pub(crate) fn invalid_descriptor(reason: &str) -> ProtocolError {
    ProtocolError::Descriptor(reason.into())
}

/// Returns the powers of two below `entries`, and `entries`: of these the low bits of an entry choose.
pub(crate) fn powers_below(entries: usize) -> Vec<usize> {
    let powers = (0..usize::BITS).map(|bit| 1 << bit).take_while(|&power| power < entries);
    powers.chain([entries.max(1)]).collect()
}
