//! The product of a chunk without 52-bit arithmetic: 64-bit products of 32-bit lanes, whose sums are split into two
//! words before they overflow.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use hush_math::modulus::Modulus;
use hush_ops::{
    ntt_tiling::{GROUP_SLOTS, TILE_COLUMNS},
    reference::rlwe_fold::RLWE_POLYS,
};

use super::{
    kernel::{BLOCK_WORDS, Chunk, RlweFoldKernel, begin_nothing, end_nothing},
    layout::GroupSelectors,
};
use crate::lanes::{Avx2, Avx512, Lanes, Scalar};

/// Portable code.
pub(super) const SCALAR: RlweFoldKernel = kernel(scalar);
/// AVX2.
pub(super) const AVX2: RlweFoldKernel = kernel(avx2);
/// AVX-512 F.
pub(super) const AVX512: RlweFoldKernel = kernel(avx512);

/// How far ahead of the database is prefetched.
const AHEAD_BYTES: usize = 4096;

const fn kernel(chunk: unsafe fn(Chunk<'_>)) -> RlweFoldKernel {
    RlweFoldKernel { prepared_words, prepare, begin: begin_nothing, chunk, end: end_nothing }
}

fn scalar(chunk: Chunk<'_>) {
    // SAFETY: portable code.
    unsafe { multiply::<Scalar>(chunk) };
}

/// # Safety
/// The CPU must have AVX2.
#[target_feature(enable = "avx2")]
unsafe fn avx2(chunk: Chunk<'_>) {
    // SAFETY: the caller has AVX2.
    unsafe { multiply::<Avx2>(chunk) };
}

/// # Safety
/// The CPU must have AVX-512 F.
#[target_feature(enable = "avx512f")]
unsafe fn avx512(chunk: Chunk<'_>) {
    // SAFETY: the caller has AVX-512 F.
    unsafe { multiply::<Avx512>(chunk) };
}

fn prepared_words(rows: usize, batch: usize) -> usize {
    GROUP_SLOTS * batch * rows * RLWE_POLYS
}

/// `[slot of the group][query][row][poly]`.
fn prepare(selectors: &GroupSelectors<'_>, _modulus: &Modulus, out: &mut [u32]) {
    let batch = selectors.batch;
    let slot_words = out.len() / GROUP_SLOTS;
    for query in 0..batch {
        for row in 0..selectors.rows {
            for poly in 0..RLWE_POLYS {
                let at = (query * selectors.rows + row) * RLWE_POLYS + poly;
                for (slot, &word) in selectors.slots(query, row, poly).iter().enumerate() {
                    out[slot * slot_words + at] = word;
                }
            }
        }
    }
}

/// # Safety
/// The CPU must have the instruction set of `L`.
#[inline(always)]
unsafe fn multiply<L: Lanes>(chunk: Chunk<'_>) {
    let largest = u64::from(chunk.modulus.value() - 1);
    let run = (u64::MAX / (largest * largest)).min(chunk.rows as u64) as usize;
    let pieces = chunk.db.chunks_exact(chunk.rows * TILE_COLUMNS);
    let query_words = chunk.rows * RLWE_POLYS;
    let selectors = chunk.prepared.chunks_exact(chunk.batch * query_words);
    for (slot, (piece, selectors)) in pieces.zip(selectors).enumerate() {
        for (query, selectors) in selectors.chunks_exact(query_words).enumerate() {
            // SAFETY: the caller has the instruction set.
            let sums = unsafe { multiply_slot::<L>(piece, selectors, run) };
            for (poly, sums) in sums.iter().enumerate() {
                let block = &mut chunk.out[(query * RLWE_POLYS + poly) * BLOCK_WORDS..][..BLOCK_WORDS];
                for column in 0..TILE_COLUMNS {
                    block[column * GROUP_SLOTS + slot] = sums.reduce(column, chunk.modulus);
                }
            }
        }
    }
}

/// Sums of 16 columns: `sum = low + 2^32 high`, both of 64 bits in two words.
#[derive(Clone, Copy)]
struct SplitSums {
    low: [[u32; TILE_COLUMNS]; 2],
    high: [[u32; TILE_COLUMNS]; 2],
}

impl SplitSums {
    /// The residue of column `column`. Both halves are below `1024 * 2^32`.
    fn reduce(&self, column: usize, modulus: &Modulus) -> u32 {
        let join = |words: &[[u32; TILE_COLUMNS]; 2]| {
            u64::from(words[0][column]) | u64::from(words[1][column]) << 32
        };
        // Below 2^64, since p < 2^32 - 2^20.
        modulus.reduce((u64::from(modulus.reduce(join(&self.high))) << 32) + join(&self.low))
    }
}

/// Multiplies one slot, `[row][16 columns]`, by the selectors of one query, `[row][poly]`; the sum of `run` products
/// fits 64 bits.
///
/// # Safety
/// The CPU must have the instruction set of `L`.
#[inline(always)]
unsafe fn multiply_slot<L: Lanes>(db: &[u32], selectors: &[u32], run: usize) -> [SplitSums; RLWE_POLYS] {
    let none = SplitSums { low: [[0; TILE_COLUMNS]; 2], high: [[0; TILE_COLUMNS]; 2] };
    let mut sums = [none; RLWE_POLYS];
    for first in (0..TILE_COLUMNS).step_by(L::WIDTH) {
        // SAFETY: the caller has the instruction set; a vector begins at a column that is a multiple of its width,
        // which divides 16, and 32 zeros are the sums of at least one vector.
        unsafe {
            let zero = L::load_sums([0; 2 * TILE_COLUMNS].as_ptr());
            let (mut low, mut high) = ([zero; RLWE_POLYS], [zero; RLWE_POLYS]);
            let runs = db.chunks(run * TILE_COLUMNS).zip(selectors.chunks(run * RLWE_POLYS));
            for (db, selectors) in runs {
                let mut acc = [zero; RLWE_POLYS];
                for (row, selectors) in db.chunks_exact(TILE_COLUMNS).zip(selectors.chunks_exact(RLWE_POLYS))
                {
                    _mm_prefetch::<_MM_HINT_T0>(row.as_ptr().wrapping_byte_add(AHEAD_BYTES).cast());
                    let columns = L::load(row.as_ptr().add(first));
                    for poly in 0..RLWE_POLYS {
                        acc[poly] = L::mul_add(acc[poly], columns, selectors[poly]);
                    }
                }
                for poly in 0..RLWE_POLYS {
                    low[poly] = L::mul_add(low[poly], L::low(acc[poly]), 1);
                    high[poly] = L::mul_add(high[poly], L::high(acc[poly]), 1);
                }
            }
            for (poly, sums) in sums.iter_mut().enumerate() {
                for (words, half) in [(&mut sums.low, low[poly]), (&mut sums.high, high[poly])] {
                    L::store(words[0].as_mut_ptr().add(first), L::low(half));
                    L::store(words[1].as_mut_ptr().add(first), L::high(half));
                }
            }
        }
    }
    sums
}
