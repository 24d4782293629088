//! What a level brings to the fold of ring elements.

use hush_math::modulus::Modulus;
use hush_ops::ntt_tiling::{GROUP_SLOTS, TILE_COLUMNS};

use super::layout::GroupSelectors;
use crate::features::Level;

/// Residues of one column tile at one group of slots, for one polynomial of one query.
pub(super) const BLOCK_WORDS: usize = TILE_COLUMNS * GROUP_SLOTS;
/// Most queries of one pass over the database: 16 polynomials are the rows of an AMX tile.
pub(super) const MAX_BATCH: usize = 8;

/// One chunk of the database (a column tile at a group of slots) and what it is multiplied with.
pub(crate) struct Chunk<'a> {
    /// `[slot of the group][row][16 columns]`, beginning at a cache line. More of the database may follow it: it is
    /// prefetched.
    pub(super) db: &'a [u32],
    /// Rows (D0), at least one.
    pub(super) rows: usize,
    /// The prepared selectors of the group.
    pub(super) prepared: &'a [u32],
    /// Number of queries, `1..=`[`MAX_BATCH`].
    pub(super) batch: usize,
    pub(super) modulus: &'a Modulus,
    /// Where the canonical results go: `[query][poly][16 columns][slot of the group]`.
    pub(super) out: &'a mut [u32],
}

/// How a level folds: its layout of the selectors, and its product of a chunk.
pub(crate) struct RlweFoldKernel {
    /// Words of the prepared selectors of one group of slots, from rows and batch; a multiple of 16.
    pub(super) prepared_words: fn(usize, usize) -> usize,
    /// Lays the selectors of a group out; fills all of the output, which begins at a cache line.
    pub(super) prepare: unsafe fn(&GroupSelectors<'_>, &Modulus, &mut [u32]),
    /// Called on a thread before its chunks, with the batch.
    pub(super) begin: unsafe fn(usize),
    /// Multiplies a chunk.
    pub(super) chunk: unsafe fn(Chunk<'_>),
    /// Called on a thread after its chunks.
    pub(super) end: unsafe fn(),
}

/// The kernels of one level.
pub(crate) struct RlweFoldKernels {
    /// For up to `few_max` queries.
    few: RlweFoldKernel,
    few_max: usize,
    /// For more.
    many: RlweFoldKernel,
}

impl RlweFoldKernels {
    /// The kernels of `level`. To run them is unsafe on a machine without that level.
    pub(crate) fn of(level: Level) -> Self {
        let (few, few_max, many) = match level {
            Level::Scalar => (super::lanes::SCALAR, 0, super::lanes::SCALAR),
            Level::Avx2 => (super::lanes::AVX2, 0, super::lanes::AVX2),
            Level::Avx512 => (super::lanes::AVX512, 0, super::lanes::AVX512),
            Level::Avx512Ifma => (super::ifma::KERNEL, 0, super::ifma::KERNEL),
            Level::Amx => (super::ifma::KERNEL, 2, super::amx::KERNEL),
        };
        Self { few, few_max, many }
    }

    /// The kernel for a pass of `batch` queries.
    pub(super) fn for_batch(&self, batch: usize) -> &RlweFoldKernel {
        if batch <= self.few_max { &self.few } else { &self.many }
    }
}

/// A `begin` with nothing to do.
pub(super) fn begin_nothing(_batch: usize) {}

/// An `end` with nothing to do.
pub(super) fn end_nothing() {}
