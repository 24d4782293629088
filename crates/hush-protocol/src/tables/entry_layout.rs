//! The blocks of a table that share a plaintext, for protocols whose answers are packed.
//!
//! ```text
//!                 column 0 .. D0-1
//!   block 0     │ slot slot ..  │ ┐                              short slots: `lanes` blocks an entry, one plane
//!   block 1     │ slot slot ..  │ ┘ entry 0: one plaintext       long slots:  one block an entry, `planes` planes
//!   block 2     │ slot slot ..  │ ┐
//!   ..          │               │ ┘ entry 1
//! ```
//!
//! The database has the arrangement of `simple`: a block is a band of `slot_bytes` rows. Up to N rows of an entry are
//! packed into one RLWE plaintext, one byte for each coefficient.

use hush_math::constant_time::divide;
use hush_ops::pack_shape::PackShape;

use crate::{response::choose_lane, table::TableShape};
use zeroize::Zeroizing;

/// The entries of a table over plaintexts of N coefficients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryLayout {
    degree: usize,
    shape: TableShape,
    lanes: usize,
}

impl EntryLayout {
    pub(crate) fn new(degree: usize, shape: TableShape) -> Self {
        Self { degree, shape, lanes: most_lanes(degree, shape.slot_bytes) }
    }

    /// Creates the layout with a given number of entries.
    pub(crate) fn with_entries(degree: usize, shape: TableShape, entries: usize) -> Self {
        Self { degree, shape, lanes: shape.blocks.div_ceil(entries) }
    }

    /// Returns the number of blocks in an entry.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// Returns the entry and the lane of a block.
    pub(crate) fn place(&self, block: usize) -> (usize, usize) {
        divide(block as u64, self.lanes() as u64)
    }

    /// Returns the rows that are packed together.
    pub(crate) fn pack_shape(&self) -> PackShape {
        let rows = self.shape.blocks * self.shape.slot_bytes;
        let entry_rows = self.lanes() * self.shape.slot_bytes;
        PackShape::new(self.degree, rows, entry_rows).expect("all are positive")
    }

    /// Returns the bytes of entry `entry` from the bytes of all entries. Runs on the client.
    pub(crate) fn choose_entry(&self, bytes: &[u32], entry: usize) -> Zeroizing<Vec<u32>> {
        let shape = self.pack_shape();
        choose_lane(bytes, shape.planes() * self.degree, shape.entries(), entry)
    }

    /// Returns the slot of a lane from the bytes of its entry. Runs on the client.
    pub(crate) fn slot_of_lane(&self, bytes: &[u32], lane: usize) -> Zeroizing<Vec<u8>> {
        let slot = choose_lane(bytes, self.shape.slot_bytes, self.lanes(), lane);
        Zeroizing::new(slot.iter().map(|&byte| byte as u8).collect())
    }
}

/// Returns the number of slots that fit in one plaintext, or 1 for slots that need several plaintexts.
pub(crate) fn most_lanes(degree: usize, slot_bytes: usize) -> usize {
    (degree / slot_bytes).max(1)
}
