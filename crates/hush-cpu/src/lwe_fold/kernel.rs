//! The interface between the fold and the kernels of a level.

use super::layout::{self, QueryChunk};
use crate::features::Cores;

/// A block of the database and its operands.
pub(crate) struct Block<'a> {
    /// `tiles` tiles of 32 rows x 64 columns.
    pub(super) db: &'a [u8],
    /// Number of tiles, 1..=8.
    pub(super) tiles: usize,
    /// The prepared queries of the block's columns: `tiles * query_bytes(batch)` bytes.
    pub(super) query: &'a [u8],
    /// Number of queries.
    pub(super) batch: usize,
    /// The partial sums of the panel, which the product is added to.
    pub(super) sums: &'a mut [i32],
    /// The addresses to prefetch.
    pub(super) ahead: Ahead,
}

/// The operands after a block. The pointers are only ever prefetched, so they may point past the end.
#[allow(dead_code, reason = "kernels for ARM prefetch the next block alone")]
pub(crate) struct Ahead {
    /// The next block of the database.
    pub(super) db: *const u8,
    /// The maker of the cores, which fetch more or less by themselves.
    pub(super) cores: Cores,
    /// The queries of the next chunk.
    pub(super) query: *const u8,
    /// Position of this panel in its run: the query chunk is prefetched in as many shares as there are panels.
    pub(super) panel: usize,
    /// Panels in the run.
    pub(super) panels: usize,
}

/// The functions of a level's fold: its layouts of queries and partial sums, and its block product.
pub(crate) struct FoldKernel {
    /// Returns the bytes of `batch` prepared queries for one tile (64 columns); a multiple of 64.
    pub(super) query_bytes: fn(usize) -> usize,
    /// Returns the partial sums of one panel for `batch` queries.
    pub(super) sum_words: fn(usize) -> usize,
    /// Lays `batch` queries out for the tiles of one chunk. Fills all of the output.
    pub(super) prepare: fn(&QueryChunk<'_>, usize, usize, &mut [u8]),
    /// Prepares a thread for its blocks. Takes the batch.
    pub(super) begin: unsafe fn(usize),
    /// Adds the product of a block to the partial sums.
    pub(super) block: unsafe fn(Block<'_>),
    /// Ends the work of a thread after its blocks.
    pub(super) end: unsafe fn(),
    /// Turns the partial sums of a panel into words. Row `i` for query `b` goes to `out[i * batch + b]`.
    pub(super) finish: fn(&[i32], usize, &mut [u32]),
}

impl FoldKernel {
    /// Returns a kernel that takes queries in a flat layout, 256 bytes a tile each, and adds words: one for every row and query.
    pub(super) const fn of_words(
        prepare: fn(&QueryChunk<'_>, usize, usize, &mut [u8]),
        block: unsafe fn(Block<'_>),
    ) -> Self {
        Self {
            query_bytes: layout::flat_query_bytes,
            sum_words: layout::word_sum_words,
            prepare,
            begin: begin_nothing,
            block,
            end: end_nothing,
            finish: layout::finish_words,
        }
    }
}

/// Does nothing, as the `begin` of a kernel.
pub(super) fn begin_nothing(_batch: usize) {}

/// Does nothing, as the `end` of a kernel.
pub(super) fn end_nothing() {}
