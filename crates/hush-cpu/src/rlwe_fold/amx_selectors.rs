//! The selectors as a matrix of bytes.
//!
//! With `x = sum_i 2^(8i) x_i` for the bytes of a residue of the database, `a x = sum_i (2^(8i) a mod p) x_i` modulo p.
//! So a selector becomes four residues, one for each byte of the other operand, and their bytes of weight `2^(8j)` are
//! class j. The products of a class have one weight, so four sums of 8-bit products give the result. (The
//! usual way, bytes by bytes, has seven weights.)
#![cfg(target_arch = "x86_64")]

use std::{arch::x86_64::*, ops::Range};

use hush_math::modulus::Modulus;
use hush_ops::contract::RLWE_POLYS;

use super::vectors::{self, LANES};

/// The number of rows of the database in an AMX tile.
pub(super) const TILE_ROWS: usize = LANES;
/// The number of classes of bytes.
pub(super) const CLASSES: usize = 4;

/// Returns the words of one slot for one tile of rows: for every class, a row of bytes for every polynomial.
pub(super) fn tile_words(batch: usize) -> usize {
    CLASSES * batch * RLWE_POLYS * LANES
}

/// Expands the selectors of one slot, `[query][row][poly]`, to the byte matrix of its tiles of rows `tiles`,
/// `[tile of 16 rows][class][query][poly][16 rows][byte of the database]`. Rows are padded to 16 with zeros in both.
///
/// # Safety
/// The CPU must have AVX-512 F, BW and IFMA.
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
pub(super) unsafe fn expand(
    selectors: &[u32],
    tiles: Range<usize>,
    batch: usize,
    scaler: &Scaler,
    out: &mut [u32],
) {
    assert!(out.len() == tiles.len() * tile_words(batch));
    let query_words = selectors.len() / batch;
    let class_words = tile_words(batch) / CLASSES;
    for (tile, out) in tiles.zip(out.chunks_exact_mut(tile_words(batch))) {
        for query in 0..batch {
            let from = &selectors[query * query_words + tile * TILE_ROWS * RLWE_POLYS..][..2 * LANES];
            let from = from.as_ptr();
            // SAFETY: two vectors from `from` on.
            let pairs =
                unsafe { [_mm512_loadu_si512(from.cast()), _mm512_loadu_si512(from.add(LANES).cast())] };
            for (poly, residues) in split_polys(pairs).into_iter().enumerate() {
                let at = (query * RLWE_POLYS + poly) * LANES;
                for (class, bytes) in transpose_bytes(scaler.scale(residues)).into_iter().enumerate() {
                    let to = out[class * class_words + at..][..LANES].as_mut_ptr();
                    // SAFETY: 16 words from `to` on.
                    unsafe { _mm512_storeu_si512(to.cast(), bytes) };
                }
            }
        }
    }
}

/// Returns the even words, and the odd ones, of two vectors.
#[inline]
#[target_feature(enable = "avx512f")]
fn split_polys([first, second]: [__m512i; 2]) -> [__m512i; RLWE_POLYS] {
    let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    let odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    [even, odd].map(|words| _mm512_permutex2var_epi32(first, words, second))
}

/// The constants that multiply residues modulo p by 2^8.
pub(super) struct Scaler {
    /// The prime p in 64-bit lanes.
    p: __m512i,
    /// The prime p in 32-bit lanes.
    p_words: __m512i,
    /// The value floor(2^60 / p) in 64-bit lanes.
    quotient: __m512i,
}

impl Scaler {
    #[target_feature(enable = "avx512f")]
    pub(super) fn new(modulus: &Modulus) -> Self {
        let p = modulus.value();
        Self {
            p: _mm512_set1_epi64(i64::from(p)),
            p_words: _mm512_set1_epi32(p as i32),
            quotient: _mm512_set1_epi64((1 << 60) / i64::from(p)),
        }
    }

    /// Computes the residues times 1, 2^8, 2^16 and 2^24.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn scale(&self, residues: __m512i) -> [__m512i; CLASSES] {
        let second = self.shift(residues);
        let third = self.shift(second);
        [residues, second, third, self.shift(third)]
    }

    /// Computes the residues times 2^8.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn shift(&self, residues: __m512i) -> __m512i {
        let zero = _mm512_setzero_si512();
        let multiple = |words: __m512i| {
            let quotient = _mm512_madd52hi_epu64(zero, words, self.quotient);
            _mm512_madd52lo_epu64(zero, quotient, self.p)
        };
        let even = multiple(vectors::even_words(residues));
        let odd = multiple(vectors::odd_words(residues));
        // By Shoup's trick with 52 bits, the rest is below p + p / 2^20, which fits 32 bits.
        let rest = _mm512_sub_epi32(_mm512_slli_epi32::<8>(residues), vectors::interleave(even, odd));
        _mm512_min_epu32(rest, _mm512_sub_epi32(rest, self.p_words))
    }
}

/// Transposes bytes: word `k` of vector `j` of the result has byte `j` of the words `k` of the four vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn transpose_bytes(words: [__m512i; 4]) -> [__m512i; CLASSES] {
    const ODD_BYTES: __mmask64 = 0xaaaa_aaaa_aaaa_aaaa;
    const ODD_HALVES: __mmask32 = 0xaaaa_aaaa;
    let bytes = |a: __m512i, b: __m512i| {
        [
            _mm512_mask_blend_epi8(ODD_BYTES, a, _mm512_slli_epi32::<8>(b)),
            _mm512_mask_blend_epi8(ODD_BYTES, _mm512_srli_epi32::<8>(a), b),
        ]
    };
    let halves = |a: __m512i, b: __m512i| {
        [
            _mm512_mask_blend_epi16(ODD_HALVES, a, _mm512_slli_epi32::<16>(b)),
            _mm512_mask_blend_epi16(ODD_HALVES, _mm512_srli_epi32::<16>(a), b),
        ]
    };
    let [low0, low1] = bytes(words[0], words[1]);
    let [high0, high1] = bytes(words[2], words[3]);
    let [class0, class2] = halves(low0, high0);
    let [class1, class3] = halves(low1, high1);
    [class0, class1, class2, class3]
}
