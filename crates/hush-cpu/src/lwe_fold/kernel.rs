//! What a level brings to the fold.

use hush_ops::tiling::TILE_BYTES;

use super::layout::QueryChunk;

/// One block of the database and what it is multiplied with.
pub(crate) struct Block<'a> {
    /// `tiles` tiles of 32 rows x 64 columns.
    pub(super) db: &'a [u8],
    /// Number of tiles, 1..=8.
    pub(super) tiles: usize,
    /// The prepared queries of the block's columns: `tiles * query_bytes(batch)` bytes.
    pub(super) query: &'a [u8],
    /// Number of queries.
    pub(super) batch: usize,
    /// The partial sums of the panel, to be added to.
    pub(super) sums: &'a mut [i32],
    /// What to prefetch.
    pub(super) ahead: Ahead,
}

impl Block<'_> {
    /// The two tiles (4 KiB, a page if the database is aligned) that are read after the tiles `first` and
    /// `first + 1`; only to be prefetched.
    pub(super) fn page_after(&self, first: usize) -> *const u8 {
        let next = first + 2;
        if next < self.tiles { self.db[next * TILE_BYTES..].as_ptr() } else { self.ahead.db }
    }
}

/// What comes after a block. The pointers are only ever prefetched, so they may point past the end.
pub(crate) struct Ahead {
    /// The next block of the database.
    pub(super) db: *const u8,
    /// The queries of the next chunk.
    pub(super) query: *const u8,
    /// Position of this panel in its run: the query chunk is prefetched in as many shares as there are panels.
    pub(super) panel: usize,
    /// Panels in the run.
    pub(super) panels: usize,
}

/// How a level folds: its layouts of queries and partial sums, and its block product.
pub(crate) struct FoldKernel {
    /// Bytes of `batch` prepared queries for one tile (64 columns); a multiple of 64.
    pub(super) query_bytes: fn(usize) -> usize,
    /// Partial sums of one panel for `batch` queries.
    pub(super) sum_words: fn(usize) -> usize,
    /// Lays `batch` queries out for the tiles of one chunk; fills all of the output.
    pub(super) prepare: fn(&QueryChunk<'_>, usize, usize, &mut [u8]),
    /// Called on a thread before its blocks, with the batch.
    pub(super) begin: unsafe fn(usize),
    /// Adds the product of a block to the partial sums.
    pub(super) block: unsafe fn(Block<'_>),
    /// Called on a thread after its blocks.
    pub(super) end: unsafe fn(),
    /// Turns the partial sums of a panel into words: row `i` for query `b` goes to `out[i * batch + b]`.
    pub(super) finish: fn(&[i32], usize, &mut [u32]),
}

/// A `begin` with nothing to do.
pub(super) fn begin_nothing(_batch: usize) {}

/// An `end` with nothing to do.
pub(super) fn end_nothing() {}
