//! The product of a group with AVX-512 IFMA: 8 residues in 64-bit lanes. The low 52 bits and the high bits of the
//! products are summed separately.
//!
//! ```text
//! for every row, query, poly:  low += (db selector) mod 2^52;  high += floor(db selector / 2^52)
//! residue = low + (2^52 mod p) high mod p
//! ```
//!
//! A vector of the database is one row of a tile of 16 columns, or a few rows of a narrower tile, whose sums are
//! joined at the end.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;

use hush_math::modulus::Modulus;
use hush_ops::{contract::RLWE_POLYS, ntt_tiling::GROUP_SLOTS};

use super::{
    avx512_selectors,
    kernel::{BLOCK_WORDS, Group, RlweFoldKernel, no_scratch},
    selectors,
    vectors::{self, LANES, Reducer},
};

pub(super) const KERNEL: RlweFoldKernel =
    RlweFoldKernel { transpose: avx512_selectors::transpose, scratch_words: no_scratch, fold };

/// The number of bytes of a cache line, which is a vector.
const LINE: usize = 64;
/// The number of bytes that the database is prefetched ahead into the L1 cache; [`AHEAD_L2`] for the L2 cache. (Measured.)
const AHEAD_L1: usize = 4096;
const AHEAD_L2: usize = 24 << 10;

/// # Safety
/// The CPU must have AVX-512 F and IFMA.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn fold(group: Group<'_>) {
    group.check();
    // SAFETY: the CPU has AVX-512 F and IFMA; the lengths fit together (just checked).
    unsafe {
        match group.tile_width {
            1 => fold_tiles::<1>(group),
            2 => fold_tiles::<2>(group),
            4 => fold_tiles::<4>(group),
            8 => fold_tiles::<8>(group),
            _ => fold_tiles::<16>(group),
        }
    }
}

/// # Safety
/// The CPU must have AVX-512 F and IFMA; the lengths of the group fit together, and its tiles have `WIDTH` columns.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn fold_tiles<const WIDTH: usize>(group: Group<'_>) {
    let batch = group.batch;
    let piece_words = group.piece_words();
    let slot_words = group.slot_words();
    let query_words = selectors::query_words(group.rows);
    let reducer = SumReducer::new(group.modulus);
    let passes = batch.div_ceil(3);
    let tile_out_words = group.tile_out_words();
    let tiles = group.db.chunks_exact(GROUP_SLOTS * piece_words);
    for (tile, out) in tiles.zip(group.out.chunks_exact_mut(tile_out_words)) {
        let pieces = tile.chunks_exact(piece_words).zip(group.selectors.chunks_exact(slot_words));
        for (slot, (db, selectors)) in pieces.enumerate() {
            let mut query = 0;
            for pass in 0..passes {
                let queries = (batch - query).div_ceil(passes - pass);
                let piece = Piece {
                    db,
                    selectors: &selectors[query * query_words..][..queries * query_words],
                    prefetch: Prefetch::share(db, pass, passes),
                };
                let out = &mut out[query * RLWE_POLYS * BLOCK_WORDS..];
                // SAFETY: the CPU has AVX-512 F and IFMA; the lengths are those of as many queries.
                unsafe {
                    match queries {
                        1 => multiply_slot::<1, WIDTH>(&piece, &reducer, slot, out),
                        2 => multiply_slot::<2, WIDTH>(&piece, &reducer, slot, out),
                        _ => multiply_slot::<3, WIDTH>(&piece, &reducer, slot, out),
                    }
                }
                query += queries;
            }
        }
        let (blocks, _) = out.as_chunks_mut();
        for block in blocks {
            vectors::transpose_block(block);
        }
    }
}

/// A slot of a tile and the selectors that one pass multiplies it with.
struct Piece<'a> {
    /// `[row][column of the tile]`.
    db: &'a [u32],
    /// `[query][row][poly]`, rows padded to 16.
    selectors: &'a [u32],
    prefetch: Prefetch,
}

/// The part of the database ahead that one pass prefetches, spread over its vectors.
struct Prefetch {
    from: *const u8,
    step_bytes: usize,
}

impl Prefetch {
    /// Returns share `pass` of `passes`; all shares together are as long as `db`.
    fn share(db: &[u32], pass: usize, passes: usize) -> Self {
        let start = size_of_val(db) / passes * pass;
        Self { from: db.as_ptr().cast::<u8>().wrapping_add(start), step_bytes: LINE / passes }
    }

    #[inline(always)]
    fn step(&self, vector: usize) {
        let at = self.from.wrapping_add(vector * self.step_bytes);
        // SAFETY: a prefetch never faults.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(AHEAD_L1).cast());
            _mm_prefetch::<_MM_HINT_T1>(at.wrapping_add(AHEAD_L2).cast());
        }
    }
}

/// The sums of 8 lanes, `low + 2^52 high`.
#[derive(Clone, Copy)]
struct Sums {
    low: __m512i,
    high: __m512i,
}

impl Sums {
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add_products(&mut self, a: __m512i, b: __m512i) {
        self.low = _mm512_madd52lo_epu64(self.low, a, b);
        self.high = _mm512_madd52hi_epu64(self.high, a, b);
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn plus(self, other: Self) -> Self {
        Self { low: _mm512_add_epi64(self.low, other.low), high: _mm512_add_epi64(self.high, other.high) }
    }

    /// Adds to every lane the lane `DISTANCE` lanes further on, around the end.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn plus_rotated<const DISTANCE: i32>(self) -> Self {
        let rotate = |lanes| _mm512_alignr_epi64::<DISTANCE>(lanes, lanes);
        self.plus(Self { low: rotate(self.low), high: rotate(self.high) })
    }
}

/// The sums of a query: of two polynomials, for the even and the odd words of a vector.
type QuerySums = [[Sums; 2]; RLWE_POLYS];

/// Multiplies a slot with `QUERIES` queries. The residues of query `q`, polynomial `poly` go to row `slot` of block
/// `2 q + poly` of `out`.
///
/// # Safety
/// The CPU must have AVX-512 F and IFMA; the piece has as many selectors as `QUERIES` times its rows, padded to 16.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn multiply_slot<const QUERIES: usize, const WIDTH: usize>(
    piece: &Piece<'_>,
    reducer: &SumReducer,
    slot: usize,
    out: &mut [u32],
) {
    let none = Sums { low: _mm512_setzero_si512(), high: _mm512_setzero_si512() };
    let mut sums: [QuerySums; QUERIES] = [[[none; 2]; RLWE_POLYS]; QUERIES];
    // A pair is the residues of both polynomials at once, 64 bits.
    let query_pairs = piece.selectors.len() / QUERIES / RLWE_POLYS;
    debug_assert!(query_pairs * WIDTH >= piece.db.len());
    let pairs = piece.selectors.as_ptr().cast::<i64>();
    let (vectors, rest) = piece.db.as_chunks::<LANES>();
    for (index, words) in vectors.iter().enumerate() {
        piece.prefetch.step(index);
        // SAFETY: one vector of the database, and the selectors of its rows, of every query.
        unsafe {
            let words = _mm512_loadu_si512(words.as_ptr().cast());
            add_vector::<QUERIES, WIDTH>(&mut sums, words, pairs.add(index * (LANES / WIDTH)), query_pairs);
        }
    }
    if !rest.is_empty() {
        let first = vectors.len() * (LANES / WIDTH);
        // SAFETY: a masked load reads the rest only; there are selectors for whole vectors.
        unsafe {
            let words = _mm512_maskz_loadu_epi32((1 << rest.len()) - 1, rest.as_ptr().cast());
            add_vector::<QUERIES, WIDTH>(&mut sums, words, pairs.add(first), query_pairs);
        }
    }
    for (sums, block) in sums.as_flattened().iter().zip(out.chunks_exact_mut(BLOCK_WORDS)) {
        let [even, odd] = join_rows::<WIDTH>(*sums).map(|sums| reducer.reduce(sums));
        let to = block[slot * LANES..][..LANES].as_mut_ptr();
        // SAFETY: 16 words follow from `to` on.
        unsafe { _mm512_storeu_si512(to.cast(), vectors::interleave(even, odd)) };
    }
}

/// Adds the products of one vector of the database, `16 / WIDTH` rows, with the selectors of these rows. The selectors of the
/// first query are at `pairs`, those of the next `query_pairs` further on.
///
/// # Safety
/// The CPU must have AVX-512 F and IFMA; there are as many selectors.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn add_vector<const QUERIES: usize, const WIDTH: usize>(
    sums: &mut [QuerySums; QUERIES],
    words: __m512i,
    pairs: *const i64,
    query_pairs: usize,
) {
    let columns = [vectors::even_words(words), vectors::odd_words(words)];
    for (query, sums) in sums.iter_mut().enumerate() {
        // SAFETY: the caller promises the selectors of this query.
        let pairs = unsafe { load_pairs::<WIDTH>(pairs.add(query * query_pairs)) };
        for half in 0..2 {
            sums[0][half].add_products(columns[half], vectors::even_words(pairs[half]));
            sums[1][half].add_products(columns[half], vectors::odd_words(pairs[half]));
        }
    }
}

/// Loads the selectors (both polynomials, 64 bits) for the even and for the odd words of a vector of `16 / WIDTH` rows.
///
/// # Safety
/// The CPU must have AVX-512 F; as many selectors are at `pairs`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_pairs<const WIDTH: usize>(pairs: *const i64) -> [__m512i; 2] {
    // SAFETY: every load is as long as the selectors.
    unsafe {
        match WIDTH {
            1 => {
                let first = _mm512_loadu_si512(pairs.cast());
                let second = _mm512_loadu_si512(pairs.add(8).cast());
                let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
                let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
                [even, odd].map(|rows| _mm512_permutex2var_epi64(first, rows, second))
            }
            2 => [_mm512_loadu_si512(pairs.cast()); 2],
            4 => {
                let rows = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
                let four = _mm512_broadcast_i64x4(_mm256_loadu_si256(pairs.cast()));
                [_mm512_permutexvar_epi64(rows, four); 2]
            }
            8 => {
                let rows = _mm512_setr_epi64(0, 0, 0, 0, 1, 1, 1, 1);
                let two = _mm512_broadcast_i32x4(_mm_loadu_si128(pairs.cast()));
                [_mm512_permutexvar_epi64(rows, two); 2]
            }
            _ => [_mm512_set1_epi64(*pairs); 2],
        }
    }
}

/// Adds up the sums of all rows of a vector. The first `WIDTH` words are those of the columns.
#[inline]
#[target_feature(enable = "avx512f")]
fn join_rows<const WIDTH: usize>(mut sums: [Sums; 2]) -> [Sums; 2] {
    if WIDTH <= 8 {
        sums = sums.map(|sums| sums.plus_rotated::<4>());
    }
    if WIDTH <= 4 {
        sums = sums.map(|sums| sums.plus_rotated::<2>());
    }
    if WIDTH <= 2 {
        sums = sums.map(|sums| sums.plus_rotated::<1>());
    }
    if WIDTH == 1 {
        let [even, odd] = sums;
        sums = [even.plus(odd); 2];
    }
    sums
}

/// The constants that reduce [`Sums`] modulo one prime p.
struct SumReducer {
    reducer: Reducer,
    /// The value 2^52 mod p.
    high_weight: __m512i,
}

impl SumReducer {
    #[target_feature(enable = "avx512f")]
    fn new(modulus: &Modulus) -> Self {
        let high_weight = modulus.reduce(1 << 52);
        Self { reducer: Reducer::new(modulus), high_weight: _mm512_set1_epi64(i64::from(high_weight)) }
    }

    /// Reduces the sums of up to 2048 products of 64 bits: `low < 2^63`, `high < 2^23`, hence their weighted sum is below
    /// `2^63 + 2^55`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn reduce(&self, sums: Sums) -> __m512i {
        let high = _mm512_mul_epu32(sums.high, self.high_weight);
        self.reducer.reduce(_mm512_add_epi64(sums.low, high))
    }
}
