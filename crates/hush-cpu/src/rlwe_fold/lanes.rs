//! The product of a chunk without 52-bit arithmetic: 64-bit products of 32-bit lanes, whose sums are split into two
//! words before they overflow.
//!
//! ```text
//! for every run of steps whose products fit 64 bits:  acc = sum over steps of db * selector
//!                                                     low += acc mod 2^32;  high += floor(acc / 2^32)
//! residue = low + 2^32 high mod p
//! ```

use hush_math::modulus::Modulus;
use hush_ops::{
    contract::RLWE_POLYS,
    ntt_tiling::{GROUP_SLOTS, MAX_TILE_WIDTH},
};

use super::{
    kernel::{BLOCK_WORDS, Group, RlweFoldKernel, no_scratch},
    selectors,
};
use crate::{
    kernels::prefetch,
    lanes::{Lanes, VectorLoop},
};

/// The number of bytes that the database is prefetched ahead.
const AHEAD_BYTES: usize = 4096;

/// Returns the kernel for the vectors `L`, or narrower ones for tiles that do not fill them.
pub(super) const fn kernel<L: Lanes>() -> RlweFoldKernel {
    RlweFoldKernel { transpose: selectors::transpose, scratch_words: no_scratch, fold: fold_with::<L> }
}

/// # Safety
/// The CPU must have the instruction set of `L`.
unsafe fn fold_with<L: Lanes>(group: Group<'_>) {
    // SAFETY: the caller has the instruction set, and with it that of narrower vectors.
    unsafe {
        if group.tile_width < L::WIDTH { L::Narrow::enter(Fold(group)) } else { L::enter(Fold(group)) }
    };
}

/// The product of a group.
struct Fold<'a>(Group<'a>);

impl VectorLoop for Fold<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: the caller has the instruction set.
        unsafe { fold::<L>(self.0) };
    }
}

/// # Safety
/// The CPU must have the instruction set of `L`.
#[inline(always)]
unsafe fn fold<L: Lanes>(group: Group<'_>) {
    group.check();
    let piece_words = group.piece_words();
    let tile_out_words = group.tile_out_words();
    let slot_words = group.slot_words();
    let query_words = selectors::query_words(group.rows);
    let steps = Steps::new(group.tile_width, L::WIDTH, group.modulus);
    let tiles = group.db.chunks_exact(GROUP_SLOTS * piece_words);
    for (tile, out) in tiles.zip(group.out.chunks_exact_mut(tile_out_words)) {
        let pieces = tile.chunks_exact(piece_words).zip(group.selectors.chunks_exact(slot_words));
        for (slot, (piece, selectors)) in pieces.enumerate() {
            for (query, selectors) in selectors.chunks_exact(query_words).enumerate() {
                // SAFETY: the caller has the instruction set; there are selectors for all rows, padded to 16.
                let sums = unsafe { multiply_slot::<L>(piece, selectors, &steps) };
                for (poly, sums) in sums.iter().enumerate() {
                    let block = &mut out[(query * RLWE_POLYS + poly) * BLOCK_WORDS..][..BLOCK_WORDS];
                    for column in 0..group.tile_width {
                        block[column * GROUP_SLOTS + slot] = sums.reduce(column, &steps, group.modulus);
                    }
                }
            }
        }
    }
}

/// The walk through a slot of a tile: in steps of one row, or of the rows that fill a vector if tiles are narrower.
struct Steps {
    /// The number of columns of a tile.
    width: usize,
    /// The number of words of a step.
    words: usize,
    /// The number of steps whose products can be summed in 64 bits.
    run: usize,
    /// For every word of a step of several rows, the offset of its row's selectors.
    selectors: [i32; MAX_TILE_WIDTH],
}

impl Steps {
    fn new(width: usize, vector_width: usize, modulus: &Modulus) -> Self {
        let largest = u64::from(modulus.value() - 1);
        Self {
            width,
            words: width.max(vector_width),
            run: usize::try_from(u64::MAX / (largest * largest)).unwrap_or(usize::MAX),
            selectors: std::array::from_fn(|word| (word / width * RLWE_POLYS) as i32),
        }
    }

    fn rows(&self) -> usize {
        self.words / self.width
    }
}

/// The sums of the words of a step: `sum = low + 2^32 high`, both of 64 bits in two words.
#[derive(Clone, Copy)]
struct SplitSums {
    low: [[u32; MAX_TILE_WIDTH]; 2],
    high: [[u32; MAX_TILE_WIDTH]; 2],
}

impl SplitSums {
    /// Computes the residue of column `column`. Both halves, of all rows of a step, are below `2048 * 2^32`.
    fn reduce(&self, column: usize, steps: &Steps, modulus: &Modulus) -> u32 {
        let join = |[low, high]: &[[u32; MAX_TILE_WIDTH]; 2]| {
            let words = (column..steps.words).step_by(steps.width);
            words.map(|word| u64::from(low[word]) | u64::from(high[word]) << 32).sum::<u64>()
        };
        // The sum is below 2^64, since p < 2^32 - 2^20.
        modulus.reduce((u64::from(modulus.reduce(join(&self.high))) << 32) + join(&self.low))
    }
}

/// Multiplies one slot, `[row][column of the tile]`, by the selectors of one query, `[row][poly]`.
///
/// # Safety
/// The CPU must have the instruction set of `L`; the selectors are of as many rows, padded to 16.
#[inline(always)]
unsafe fn multiply_slot<L: Lanes>(db: &[u32], selectors: &[u32], steps: &Steps) -> [SplitSums; RLWE_POLYS] {
    let none = SplitSums { low: [[0; MAX_TILE_WIDTH]; 2], high: [[0; MAX_TILE_WIDTH]; 2] };
    let mut sums = [none; RLWE_POLYS];
    let whole = db.chunks_exact(steps.words);
    let mut rest = [0; MAX_TILE_WIDTH];
    rest[..whole.remainder().len()].copy_from_slice(whole.remainder());
    let step_selectors = steps.rows() * RLWE_POLYS;
    for first in (0..steps.words).step_by(L::WIDTH) {
        // SAFETY: the caller has the instruction set. A vector begins at a word that is a multiple of its width, which
        // divides that of a step; 32 zeros are the sums of at least one vector.
        unsafe {
            let zero = L::load_wide([0; 2 * MAX_TILE_WIDTH].as_ptr());
            let mut low = [zero; RLWE_POLYS];
            let mut high = [zero; RLWE_POLYS];
            let runs = db.chunks(steps.run.saturating_mul(steps.words));
            for (db, selectors) in runs.zip(selectors.chunks(steps.run.saturating_mul(step_selectors))) {
                let mut acc = [zero; RLWE_POLYS];
                for (step, selectors) in db.chunks(steps.words).zip(selectors.chunks_exact(step_selectors)) {
                    prefetch(step.as_ptr().wrapping_byte_add(AHEAD_BYTES));
                    let step = if step.len() < steps.words { &rest } else { step };
                    let words = L::load(step.as_ptr().add(first));
                    for poly in 0..RLWE_POLYS {
                        acc[poly] = if steps.rows() == 1 {
                            L::mul_add(acc[poly], words, selectors[poly])
                        } else {
                            let selectors = L::gather(selectors.as_ptr().add(poly), &steps.selectors);
                            L::mul_add_words(acc[poly], words, selectors)
                        };
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
