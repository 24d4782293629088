//! The layout of selectors with AVX-512.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;

use hush_ops::{contract::RLWE_POLYS, ntt_tiling::GROUP_SLOTS};

use super::{
    selectors::{SelectorColumns, query_words},
    vectors::{self, LANES},
};

/// The number of rows whose selectors are transposed together: two polynomials of each fill a vector.
const BLOCK_ROWS: usize = LANES / RLWE_POLYS;
/// The number of rows that selectors are prefetched ahead into the L2 cache. (Measured.)
const AHEAD_ROWS: usize = 16;

/// Implements [`super::kernel::RlweFoldKernel::transpose`] with AVX-512.
///
/// # Safety
/// The CPU must have AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn transpose(columns: &SelectorColumns<'_>, out: &mut [u32]) {
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
