//! The interface between the fold of ring elements and the kernels of a level.

use hush_math::modulus::Modulus;
use hush_ops::{
    contract::RLWE_POLYS,
    ntt_tiling::{GROUP_SLOTS, MAX_TILE_WIDTH},
};

use super::selectors::{self, SelectorColumns};

/// The number of words of the residues of one column tile at one group of slots, for one polynomial of one query.
pub(super) const BLOCK_WORDS: usize = MAX_TILE_WIDTH * GROUP_SLOTS;
/// The most queries of one pass over the database: 16 polynomials are the rows of an AMX tile.
pub(super) const MAX_BATCH: usize = 8;

/// A group of slots of the database and its operands.
pub(crate) struct Group<'a> {
    /// `[tile][slot of the group][row][column of the tile]`, beginning at a cache line. More of the database may
    /// follow, which is prefetched.
    pub(super) db: &'a [u32],
    /// The number of rows (D0), at least one.
    pub(super) rows: usize,
    /// The number of columns of a tile: 1, 2, 4, 8 or 16.
    pub(super) tile_width: usize,
    /// `[slot of the group][query][row][poly]`, rows padded as in [`selectors::query_words`].
    pub(super) selectors: &'a [u32],
    /// The number of queries, `1..=`[`MAX_BATCH`].
    pub(super) batch: usize,
    pub(super) modulus: &'a Modulus,
    /// Scratch memory of [`RlweFoldKernel::scratch_words`] words, beginning at a cache line.
    #[allow(dead_code, reason = "the kernels of some architectures need none")]
    pub(super) scratch: &'a mut [u32],
    /// The destination of the canonical results: `[tile][query][poly][column, of 16][slot of the group]`. Columns that the tile
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

/// The functions of a level's fold.
pub(crate) struct RlweFoldKernel {
    /// Lays out the selectors of neighbouring groups, `[group]` as in [`Group::selectors`]. Fills all of the output.
    pub(super) transpose: unsafe fn(&SelectorColumns<'_>, &mut [u32]),
    /// Returns the words of scratch memory for a group, from rows and batch.
    pub(super) scratch_words: fn(usize, usize) -> usize,
    /// Multiplies a group.
    pub(super) fold: unsafe fn(Group<'_>),
}

/// Returns 0, for a kernel that needs no scratch memory.
pub(super) fn no_scratch(_rows: usize, _batch: usize) -> usize {
    0
}
