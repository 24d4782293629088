//! The shape of a table, and the limits of all tables.

use hush_he::params::Widths;
use hush_ops::tiling::Tiling;

use crate::ProtocolError;

/// Most columns (D0): a query of this many words is 256 MiB, beyond any sensible one.
pub const MAX_COLUMNS: usize = 1 << 26;
/// Most database rows.
pub const MAX_DB_ROWS: usize = 1 << 31;
/// Longest slot: a value of 1 MiB with fingerprint and length.
pub const MAX_SLOT_BYTES: usize = (1 << 20) + 64;
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

impl TableShape {
    /// The tiling of the byte database of a table that is folded over LWE: a block is a band of `slot_bytes` rows.
    pub fn byte_tiling(&self) -> Tiling {
        Tiling::new(self.blocks * self.slot_bytes, self.columns)
    }
}

/// The fewest bits of a query word that keep [`Widths::MIN_SIGMAS`]; 32 if none do.
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

/// `Ok` if `actual` is 1 to `max`.
pub(crate) fn check_limit(what: &'static str, actual: usize, max: usize) -> Result<(), ProtocolError> {
    if (1..=max).contains(&actual) {
        return Ok(());
    }
    Err(ProtocolError::Limit { what, actual: actual as u64, allowed: format!("1 to {max}") })
}

/// A descriptor is refused for `reason`.
pub(crate) fn invalid_descriptor(reason: &str) -> ProtocolError {
    ProtocolError::Descriptor(reason.into())
}
