//! The interface between the fold and the kernels of a level.

use hush_ops::tiling::TILE_BYTES;

use super::layout::QueryChunk;
use crate::{features::Cores, kernels::prefetch};

/// The number of tiles of a page of memory (4 KiB).
pub(super) const PAGE_TILES: usize = 2;
/// The number of bytes of a cache line.
pub(super) const LINE: usize = 64;

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

#[allow(dead_code, reason = "the kernels of some architectures do not look so far ahead")]
impl Block<'_> {
    /// Returns the lines to prefetch while tiles `first` and `first + 1` (4 KiB, a page if the database is aligned) are multiplied.
    pub(super) fn page_ahead(&self, first: usize) -> PageAhead {
        let Fetch { pages, lines } = self.ahead.fetch;
        let next = first + PAGE_TILES * pages;
        let from = match self.db.get(next * TILE_BYTES..) {
            Some(rest) if !rest.is_empty() => rest.as_ptr(),
            _ => self.ahead.db.wrapping_add((next - self.tiles) / PAGE_TILES * PAGE_TILES * TILE_BYTES),
        };
        PageAhead { from, lines }
    }
}

/// Lines to prefetch. The pointer may point anywhere.
#[allow(dead_code, reason = "the kernels of some architectures do not look so far ahead")]
#[derive(Clone, Copy)]
pub(super) struct PageAhead {
    from: *const u8,
    lines: usize,
}

#[allow(dead_code, reason = "the kernels of some architectures do not look so far ahead")]
impl PageAhead {
    /// Returns part `index` of `parts` of these lines.
    pub(super) fn part(self, index: usize, parts: usize) -> Self {
        let share = self.lines.div_ceil(parts);
        let first = self.lines.min(index * share);
        Self { from: self.from.wrapping_add(first * LINE), lines: share.min(self.lines - first) }
    }

    /// Prefetches the next `lines` lines, or the rest if there are fewer, into the L1 cache.
    #[inline(always)]
    pub(super) fn fetch(&mut self, lines: usize) {
        for _ in 0..lines.min(self.lines) {
            prefetch(self.from);
            self.from = self.from.wrapping_add(LINE);
            self.lines -= 1;
        }
    }

    /// Returns the number of lines a step that fetches all lines in `steps` steps.
    pub(super) fn lines_in(self, steps: usize) -> usize {
        self.lines.div_ceil(steps)
    }
}

/// The prefetch distance and amount of the kernels that go through the database page by page.
#[allow(dead_code, reason = "the kernels of some architectures do not look so far ahead")]
#[derive(Clone, Copy)]
pub(crate) struct Fetch {
    /// The distance in pages from the multiplied page to the prefetched one.
    pub(super) pages: usize,
    /// The number of its lines that are prefetched, from its start.
    pub(super) lines: usize,
}

impl Fetch {
    /// Returns the values that were measured to be best on `cores`.
    pub(super) fn of(cores: Cores) -> Self {
        match cores {
            // The hardware fetches the second half of a page by itself once the first half is read. (Cascade Lake, B = 1:
            // 0.93 of stream; 0.75 with all of the next block prefetched, 0.6 with nothing.)
            Cores::Intel => Self { pages: 1, lines: PAGE_TILES * TILE_BYTES / LINE / 2 },
            // The hardware does not do so. (Zen 5, B = 1: 0.92 of stream; 0.69 with 2 KiB in place of 8, 0.44 as above.)
            Cores::Amd => Self { pages: 2, lines: PAGE_TILES * TILE_BYTES / LINE },
        }
    }
}

/// The operands after a block. The pointers are only ever prefetched, so they may point past the end.
#[allow(dead_code, reason = "the kernels of some architectures do not look so far ahead")]
pub(crate) struct Ahead {
    /// The next block of the database.
    pub(super) db: *const u8,
    /// The distance and amount of the prefetch, for kernels that go page by page.
    pub(super) fetch: Fetch,
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

/// Does nothing, as the `begin` of a kernel.
pub(super) fn begin_nothing(_batch: usize) {}

/// Does nothing, as the `end` of a kernel.
pub(super) fn end_nothing() {}
