//! The prefetch of the kernels that go through the database page by page.
#![cfg(target_arch = "x86_64")]

use hush_ops::tiling::TILE_BYTES;

use super::kernel::Block;
use crate::{features::Cores, kernels::prefetch};

/// The number of tiles of a page of memory (4 KiB).
pub(super) const PAGE_TILES: usize = 2;
/// The number of bytes of a cache line.
pub(super) const LINE: usize = 64;

impl Block<'_> {
    /// Returns the lines to prefetch while tiles `first` and `first + 1` (4 KiB, a page if the database is aligned) are multiplied.
    pub(super) fn page_ahead(&self, first: usize) -> PageAhead {
        let Fetch { pages, lines } = Fetch::of(self.ahead.cores);
        let next = first + PAGE_TILES * pages;
        let from = match self.db.get(next * TILE_BYTES..) {
            Some(rest) if !rest.is_empty() => rest.as_ptr(),
            _ => self.ahead.db.wrapping_add((next - self.tiles) / PAGE_TILES * PAGE_TILES * TILE_BYTES),
        };
        PageAhead { from, lines }
    }
}

/// Lines to prefetch. The pointer may point anywhere.
#[derive(Clone, Copy)]
pub(super) struct PageAhead {
    from: *const u8,
    lines: usize,
}

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
#[derive(Clone, Copy)]
struct Fetch {
    /// The distance in pages from the multiplied page to the prefetched one.
    pages: usize,
    /// The number of its lines that are prefetched, from its start.
    lines: usize,
}

impl Fetch {
    /// Returns the values that were measured to be best on `cores`.
    fn of(cores: Cores) -> Self {
        match cores {
            // The hardware fetches the second half of a page by itself once the first half is read. (Cascade Lake, B = 1:
            // 0.93 of stream; 0.75 with all of the next block prefetched, 0.6 with nothing.)
            Cores::Intel => Self { pages: 1, lines: PAGE_TILES * TILE_BYTES / LINE / 2 },
            // The hardware does not do so. (Zen 5, B = 1: 0.92 of stream; 0.69 with 2 KiB in place of 8, 0.44 as above.)
            Cores::Amd => Self { pages: 2, lines: PAGE_TILES * TILE_BYTES / LINE },
        }
    }
}
