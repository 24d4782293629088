//! The shape of a table, and the limits of all tables.

use hush_he::params::{MAX_LOG2_FAILURE, Widths};
use hush_ops::tiling::Tiling;

use crate::{ProtocolError, facts::SegmentRule};

/// The most columns (D0). A query with this many words has 256 MiB, more than any sensible one.
pub const MAX_COLUMNS: usize = 1 << 26;
/// The most database rows.
pub const MAX_DB_ROWS: usize = 1 << 31;
/// The longest slot, in bytes: a value of 16 MiB with fingerprint and length.
pub const MAX_SLOT_BYTES: usize = (16 << 20) + 64;
/// The look-ups that a client is assumed to make before the table changes. Shapes and word widths are chosen for it.
pub const LOOKUPS_PER_EPOCH: f64 = 100.0;
/// The longest hint of DoublePIR, in bytes. It grows by several MiB with every byte of a slot.
pub const MAX_DOUBLE_HINT_BYTES: usize = 1 << 30;

/// The most bytes of a file that a server derives from a table: a lifted hint, the second database of `exppack-d`, pack columns.
pub const MAX_KEPT_BYTES: u64 = 1 << 40;
/// The most bytes of a packed answer, which a client holds in memory.
pub(crate) const MAX_ANSWER_BYTES: usize = 256 << 20;

/// The shape of a table: `blocks` blocks of `columns` (D0) slots each. A look-up adds up a few of the slots.
///
/// Over LWE, packed or not, a block is a band of `slot_bytes` database rows. Over rings it is a position within the
/// plaintext of every row of the first dimension ([`crate::ring_table::RingTable`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableShape {
    /// The number of slots in a block, which is the first dimension D0.
    pub columns: usize,
    /// The number of blocks.
    pub blocks: usize,
    /// The number of bytes of a slot.
    pub slot_bytes: usize,
}

/// The shape of a segment beside the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentShape {
    /// The shape. The number of blocks is a multiple of `entries`.
    pub shape: TableShape,
    /// The number of entries.
    pub entries: usize,
}

impl SegmentShape {
    /// Returns the number of blocks of an entry.
    pub fn lanes(&self) -> usize {
        self.shape.blocks / self.entries.max(1)
    }

    /// Refuses a segment that cannot be asked with the queries of its base, whose rule is `rule` and whose entries have up
    /// to `lanes` blocks.
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
    /// Returns the tiling of the byte database of a table that is folded over LWE. A block is a band of `slot_bytes` rows.
    pub fn byte_tiling(&self) -> Tiling {
        Tiling::new(self.blocks * self.slot_bytes, self.columns)
    }
}

/// Returns the fewest bits of a query word that keep [`Widths::MIN_SIGMAS`], or 32 if none do. `sigmas` maps bits to the margin.
pub(crate) fn fewest_query_bits(sigmas: impl Fn(u32) -> f64) -> u32 {
    (16..=32).find(|&bits| sigmas(bits) >= Widths::MIN_SIGMAS).unwrap_or(32)
}

/// Refuses data of more than [`MAX_KEPT_BYTES`] bytes that a server would derive and keep.
pub(crate) fn check_kept(what: &'static str, actual: u64) -> Result<(), ProtocolError> {
    if actual <= MAX_KEPT_BYTES {
        return Ok(());
    }
    Err(ProtocolError::Limit { what, actual, allowed: format!("up to {MAX_KEPT_BYTES}") })
}

/// Refuses a table whose answers fail with a probability above `2^MAX_LOG2_FAILURE`.
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

/// Refuses an `actual` that is not in `1..=max`.
pub(crate) fn check_limit(what: &'static str, actual: usize, max: usize) -> Result<(), ProtocolError> {
    if (1..=max).contains(&actual) {
        return Ok(());
    }
    Err(ProtocolError::Limit { what, actual: actual as u64, allowed: format!("1 to {max}") })
}

/// Returns the error that refuses a descriptor for `reason`.
pub(crate) fn invalid_descriptor(reason: &str) -> ProtocolError {
    ProtocolError::Descriptor(reason.into())
}

/// Returns the powers of two below `entries`, followed by `entries`: the numbers of entries that a segment may have.
pub(crate) fn powers_below(entries: usize) -> Vec<usize> {
    let powers = (0..usize::BITS).map(|bit| 1 << bit).take_while(|&power| power < entries);
    powers.chain([entries.max(1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_a_divisor_of_the_columns_and_so_many_blocks() {
        let rule = SegmentRule { columns: 1024, column_unit: 128, entries: vec![2, 8] };
        let check = |columns, blocks, entries| {
            let shape = TableShape { columns, blocks, slot_bytes: 1 };
            SegmentShape { shape, entries }.check(&rule, 4)
        };
        for (columns, blocks, entries) in [(1024, 2, 2), (128, 8, 2), (512, 32, 8), (256, 8, 8)] {
            assert!(check(columns, blocks, entries).is_ok(), "{columns} {blocks} {entries}");
        }
        for (columns, blocks, entries) in [
            (0, 2, 2),
            (64, 2, 2),
            (384, 2, 2),
            (2048, 2, 2),
            (128, 4, 4),
            (128, 0, 2),
            (128, 3, 2),
            (128, 10, 2),
            (128, 40, 8),
        ] {
            assert!(check(columns, blocks, entries).is_err(), "{columns} {blocks} {entries}");
        }
        let shape = TableShape { columns: 128, blocks: 24, slot_bytes: 1 };
        assert_eq!(SegmentShape { shape, entries: 8 }.lanes(), 3);
    }
}
