//! The kernel of the fold of ring elements at one level.

use hush_math::modulus::Modulus;
use hush_ops::{
    contract::RLWE_POLYS,
    ntt_tiling::{GROUP_SLOTS, MAX_TILE_WIDTH},
};

use super::selectors::{self, SelectorColumns};

/// Room for the residues of one column tile at one group of slots, for one polynomial of one query.
pub(super) const BLOCK_WORDS: usize = MAX_TILE_WIDTH * GROUP_SLOTS;
/// Most queries of one pass over the database: 16 polynomials are the rows of an AMX tile.
pub(super) const MAX_BATCH: usize = 8;

/// A group of slots of the database and the selectors that it is multiplied with.
pub(crate) struct Group<'a> {
    /// `[tile][slot of the group][row][column of the tile]`, beginning at a cache line. More of the database may
    /// follow it: it is prefetched.
    pub(super) db: &'a [u32],
    /// Rows (D0), at least one.
    pub(super) rows: usize,
    /// Columns of a tile: 1, 2, 4, 8 or 16.
    pub(super) tile_width: usize,
    /// `[slot of the group][query][row][poly]`, rows padded as [`selectors::query_words`] says.
    pub(super) selectors: &'a [u32],
    /// Number of queries, `1..=`[`MAX_BATCH`].
    pub(super) batch: usize,
    pub(super) modulus: &'a Modulus,
    /// The scratch words, as many as the kernel asked for, beginning at a cache line.
    pub(super) scratch: &'a mut [u32],
    /// Where the canonical results go: `[tile][query][poly][column, of 16][slot of the group]`; columns that the tile
    /// does not have are undefined.
    pub(super) out: &'a mut [u32],
}

impl Group<'_> {
    /// Returns the words of one slot of a tile of the database.
    pub(super) fn piece_words(&self) -> usize {
        self.rows * self.tile_width
    }

    /// Returns the words of the selectors of one slot.
    pub(super) fn slot_words(&self) -> usize {
        self.batch * selectors::query_words(self.rows)
    }

    /// Returns the words of the results of one tile.
    pub(super) fn tile_out_words(&self) -> usize {
        self.batch * RLWE_POLYS * BLOCK_WORDS
    }

    /// Panics if lengths do not fit together.
    pub(super) fn check(&self) {
        let tiles = self.db.len() / (GROUP_SLOTS * self.piece_words());
        assert!(
            (1..=MAX_BATCH).contains(&self.batch)
                && self.db.len() == tiles * GROUP_SLOTS * self.piece_words()
                && self.selectors.len() == GROUP_SLOTS * self.slot_words()
                && self.out.len() == tiles * self.tile_out_words()
        );
    }
}

/// How a level folds.
pub(crate) struct RlweFoldKernel {
    /// Lays the selectors of neighbouring groups out, `[group]` as in [`Group::selectors`]; fills all of the output.
    pub(super) transpose: unsafe fn(&SelectorColumns<'_>, &mut [u32]),
    /// Words of scratch memory for a group, from rows and batch.
    pub(super) scratch_words: fn(usize, usize) -> usize,
    /// Multiplies a group.
    pub(super) fold: unsafe fn(Group<'_>),
}

/// Returns the scratch memory of a kernel that needs none.
pub(super) fn no_scratch(_rows: usize, _batch: usize) -> usize {
    0
}
