//! Operations on vectors of words that the transform needs beyond [`Lanes`].

use std::arch::x86_64::*;

use crate::lanes::{Avx2, Avx512, Lanes};

/// A vector of `W` words of 32 bits, whose methods are inlined into a function that enables the instruction set.
///
/// # Safety
/// Every method needs the instruction set of the implementation.
pub(crate) trait Words<const W: usize>: Lanes {
    /// Moves lane `i` of vector `j` to lane `j` of vector `i`.
    unsafe fn transpose(rows: [Self::Words; W]) -> [Self::Words; W];
}

/// Transposes 4 x 4 lanes in each half of four vectors.
///
/// # Safety
/// The CPU must have AVX2.
#[inline(always)]
unsafe fn quarter_avx2([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    // SAFETY: see above.
    unsafe {
        let low = _mm256_unpacklo_epi32(a, b);
        let high = _mm256_unpackhi_epi32(a, b);
        let next_low = _mm256_unpacklo_epi32(c, d);
        let next_high = _mm256_unpackhi_epi32(c, d);
        [
            _mm256_unpacklo_epi64(low, next_low),
            _mm256_unpackhi_epi64(low, next_low),
            _mm256_unpacklo_epi64(high, next_high),
            _mm256_unpackhi_epi64(high, next_high),
        ]
    }
}

/// Transposes 4 x 4 lanes in each quarter of four vectors.
///
/// # Safety
/// The CPU must have AVX-512 F.
#[inline(always)]
unsafe fn quarter_avx512([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: see above.
    unsafe {
        let low = _mm512_unpacklo_epi32(a, b);
        let high = _mm512_unpackhi_epi32(a, b);
        let next_low = _mm512_unpacklo_epi32(c, d);
        let next_high = _mm512_unpackhi_epi32(c, d);
        [
            _mm512_unpacklo_epi64(low, next_low),
            _mm512_unpackhi_epi64(low, next_low),
            _mm512_unpacklo_epi64(high, next_high),
            _mm512_unpackhi_epi64(high, next_high),
        ]
    }
}

// SAFETY of all blocks: the caller has AVX2.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Words<8> for Avx2 {
    #[inline(always)]
    unsafe fn transpose(rows: [__m256i; 8]) -> [__m256i; 8] {
        unsafe {
            let [a, b, c, d, e, f, g, h] = rows;
            let first = quarter_avx2([a, b, c, d]);
            let second = quarter_avx2([e, f, g, h]);
            let low = |i: usize| _mm256_permute2x128_si256::<0x20>(first[i], second[i]);
            let high = |i: usize| _mm256_permute2x128_si256::<0x31>(first[i], second[i]);
            [low(0), low(1), low(2), low(3), high(0), high(1), high(2), high(3)]
        }
    }
}

// SAFETY of all blocks: the caller has AVX-512 F.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Words<16> for Avx512 {
    #[inline(always)]
    unsafe fn transpose(rows: [__m512i; 16]) -> [__m512i; 16] {
        unsafe {
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = rows;
            let quads = [
                quarter_avx512([a, b, c, d]),
                quarter_avx512([e, f, g, h]),
                quarter_avx512([i, j, k, l]),
                quarter_avx512([m, n, o, p]),
            ];
            let mut columns = rows;
            for i in 0..4 {
                // The vectors are quarters 0 and 2, then 1 and 3, of rows 0..8 and of rows 8..16.
                let even = _mm512_shuffle_i32x4::<0b10_00_10_00>(quads[0][i], quads[1][i]);
                let odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(quads[0][i], quads[1][i]);
                let next_even = _mm512_shuffle_i32x4::<0b10_00_10_00>(quads[2][i], quads[3][i]);
                let next_odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(quads[2][i], quads[3][i]);
                columns[i] = _mm512_shuffle_i32x4::<0b10_00_10_00>(even, next_even);
                columns[4 + i] = _mm512_shuffle_i32x4::<0b10_00_10_00>(odd, next_odd);
                columns[8 + i] = _mm512_shuffle_i32x4::<0b11_01_11_01>(even, next_even);
                columns[12 + i] = _mm512_shuffle_i32x4::<0b11_01_11_01>(odd, next_odd);
            }
            columns
        }
    }
}
