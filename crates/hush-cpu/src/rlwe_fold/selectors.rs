//! The selectors of a few groups of slots, taken from polynomials and laid out slot by slot.

use std::arch::x86_64::*;

use hush_ops::{contract::RLWE_POLYS, ntt_tiling::GROUP_SLOTS};

use super::vectors::{self, LANES};

/// The number of rows that laid out selectors are padded to a multiple of.
const PADDED_ROWS: usize = 16;
/// The number of rows whose selectors are transposed together: two polynomials of each fill a vector.
const BLOCK_ROWS: usize = LANES / RLWE_POLYS;
/// The number of rows that selectors are prefetched ahead into the L2 cache. (Measured.)
const AHEAD_ROWS: usize = 16;

/// Returns the words of the selectors of one query at one slot, `[row][poly]`: rows are padded to 16 with zeros.
pub(super) fn query_words(rows: usize) -> usize {
    rows.next_multiple_of(PADDED_ROWS) * RLWE_POLYS
}

/// The selectors of some queries at neighbouring groups of slots modulo one limb.
pub(crate) struct SelectorColumns<'a> {
    /// The queries, each `[row][poly][word of a polynomial]`.
    pub(super) queries: &'a [&'a [u32]],
    /// The number of rows (D0).
    pub(super) rows: usize,
    /// The number of words of a polynomial, over all limbs.
    pub(super) poly_words: usize,
    /// The word of every polynomial where the groups begin.
    pub(super) first: usize,
    /// The number of groups.
    pub(super) groups: usize,
}

impl SelectorColumns<'_> {
    /// Returns the words of one slot, `[query][row][poly]`.
    fn slot_words(&self) -> usize {
        self.queries.len() * query_words(self.rows)
    }

    /// Returns the words of all groups.
    pub(super) fn words(&self) -> usize {
        self.groups * GROUP_SLOTS * self.slot_words()
    }

    /// Returns the slots of all groups of polynomial `poly` of the selector of row `row`, query `query`.
    #[inline(always)]
    fn slots(&self, query: usize, row: usize, poly: usize) -> &[u32] {
        let at = (row * RLWE_POLYS + poly) * self.poly_words + self.first;
        &self.queries[query][at..at + self.groups * GROUP_SLOTS]
    }
}

/// Implements [`super::kernel::RlweFoldKernel::transpose`] in portable code.
pub(super) fn transpose(columns: &SelectorColumns<'_>, out: &mut [u32]) {
    assert_eq!(out.len(), columns.words());
    let slot_words = columns.slot_words();
    let query_words = query_words(columns.rows);
    for query in 0..columns.queries.len() {
        for index in 0..query_words {
            let row = index / RLWE_POLYS;
            let poly = index % RLWE_POLYS;
            let at = query * query_words + index;
            if row >= columns.rows {
                (0..columns.groups * GROUP_SLOTS).for_each(|slot| out[slot * slot_words + at] = 0);
                continue;
            }
            for (slot, &word) in columns.slots(query, row, poly).iter().enumerate() {
                out[slot * slot_words + at] = word;
            }
        }
    }
}

/// Implements [`super::kernel::RlweFoldKernel::transpose`] with AVX-512.
///
/// # Safety
/// The CPU must have AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn transpose_avx512(columns: &SelectorColumns<'_>, out: &mut [u32]) {
    assert_eq!(out.len(), columns.words());
    let slot_words = columns.slot_words();
    let query_words = query_words(columns.rows);
    for query in 0..columns.queries.len() {
        for row in (0..query_words / RLWE_POLYS).step_by(BLOCK_ROWS) {
            prefetch_rows(columns, query, row + AHEAD_ROWS);
            let mut lines: [&[u32]; LANES] = [&[]; LANES];
            for (i, line) in lines.iter_mut().enumerate() {
                let row = row + i / RLWE_POLYS;
                if row < columns.rows {
                    *line = columns.slots(query, row, i % RLWE_POLYS);
                }
            }
            let at = query * query_words + row * RLWE_POLYS;
            for group in 0..columns.groups {
                let mut words = [_mm512_setzero_si512(); LANES];
                for (words, line) in words.iter_mut().zip(lines) {
                    if let Some(slots) = line.get(group * GROUP_SLOTS..(group + 1) * GROUP_SLOTS) {
                        // SAFETY: the slots of a group are one vector.
                        *words = unsafe { _mm512_loadu_si512(slots.as_ptr().cast()) };
                    }
                }
                for (slot, words) in vectors::transpose(words).into_iter().enumerate() {
                    let to = out[(group * GROUP_SLOTS + slot) * slot_words + at..][..LANES].as_mut_ptr();
                    // Prefetches the next block of rows: a store to a line in the L2 cache does not wait for it.
                    _mm_prefetch::<_MM_HINT_T1>(to.wrapping_add(LANES).cast());
                    // SAFETY: one vector follows from `to` on.
                    unsafe { _mm512_storeu_si512(to.cast(), words) };
                }
            }
        }
    }
}

/// Prefetches the selectors of the block of rows from `row` on.
#[inline]
#[target_feature(enable = "avx512f")]
fn prefetch_rows(columns: &SelectorColumns<'_>, query: usize, row: usize) {
    for row in row..columns.rows.min(row + BLOCK_ROWS) {
        for poly in 0..RLWE_POLYS {
            for line in columns.slots(query, row, poly).chunks_exact(LANES) {
                _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast());
            }
        }
    }
}
