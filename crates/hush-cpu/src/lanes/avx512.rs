//! Sixteen lanes in an AVX-512 register.
#![cfg(target_arch = "x86_64")]

use std::arch::{asm, x86_64::*};

use super::{
    LOAD_COLS, Lanes, MAX_WIDTH, VectorLoop,
    vector::{EvenOdd, vector},
};

/// Sixteen lanes of AVX-512 F.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

/// The 32-bit lanes that are low halves of 64-bit lanes.
const EVEN: __mmask16 = 0x5555;

vector! {
    Avx512, __m512i, 16,
    words: _mm512_set1_epi32 _mm512_loadu_si512 _mm512_storeu_si512 _mm512_stream_si512 _mm512_add_epi32 _mm512_sub_epi32
        _mm512_min_epu32 _mm512_mullo_epi32,
    bits: _mm512_srl_epi32 _mm512_sll_epi32 _mm512_or_si512 _mm512_and_si512,
    wide: _mm512_set1_epi64 _mm512_mul_epu32 _mm512_add_epi64 _mm512_srli_epi64,
    narrow: super::avx2::Avx2, features: "avx512f,avx512bw,avx512vl",
    own: {
        fn gather(from: *const u32, index: &[i32; MAX_WIDTH]) -> __m512i {
            _mm512_i32gather_epi32::<4>(_mm512_loadu_si512(index.as_ptr().cast()), from.cast())
        }
        fn sub_mod(a: __m512i, b: __m512i, p: __m512i) -> __m512i {
            let difference = _mm512_sub_epi32(a, b);
            _mm512_mask_add_epi32(difference, _mm512_cmplt_epu32_mask(a, b), difference, p)
        }
        fn widen(a: __m512i) -> Self::Wide {
            EvenOdd { even: _mm512_maskz_mov_epi32(EVEN, a), odd: _mm512_srli_epi64::<32>(a) }
        }
        fn low(a: Self::Wide) -> __m512i { _mm512_mask_shuffle_epi32::<0b10_10_00_00>(a.even, !EVEN, a.odd) }
        fn high(a: Self::Wide) -> __m512i { _mm512_mask_shuffle_epi32::<0b11_11_01_01>(a.odd, EVEN, a.even) }
        fn transpose(rows: &mut [__m512i]) -> () {
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *rows else { unreachable!("16 rows") };
            let quads = [quarter([a, b, c, d]), quarter([e, f, g, h]), quarter([i, j, k, l]), quarter([m, n, o, p])];
            for i in 0..4 {
                // The vectors are quarters 0 and 2, then 1 and 3, of rows 0..8 and of rows 8..16.
                let even = _mm512_shuffle_i32x4::<0b10_00_10_00>(quads[0][i], quads[1][i]);
                let odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(quads[0][i], quads[1][i]);
                let next_even = _mm512_shuffle_i32x4::<0b10_00_10_00>(quads[2][i], quads[3][i]);
                let next_odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(quads[2][i], quads[3][i]);
                rows[i] = _mm512_shuffle_i32x4::<0b10_00_10_00>(even, next_even);
                rows[4 + i] = _mm512_shuffle_i32x4::<0b10_00_10_00>(odd, next_odd);
                rows[8 + i] = _mm512_shuffle_i32x4::<0b11_01_11_01>(even, next_even);
                rows[12 + i] = _mm512_shuffle_i32x4::<0b11_01_11_01>(odd, next_odd);
            }
        }
        fn load_columns(from: *const i8, stride: usize) -> [__m512i; LOAD_COLS] {
            let mut lines: [__m128i; 16] =
                std::array::from_fn(|i| _mm_loadu_si128(from.add(i * stride).cast()));
            // Interleaving line i with line i + 8 rotates the 8 bits of (line, byte) by one. Four rotations swap line and byte.
            for _ in 0..4 {
                lines = std::array::from_fn(|i| {
                    let a = lines[i / 2];
                    let b = lines[i / 2 + 8];
                    if i % 2 == 0 { _mm_unpacklo_epi8(a, b) } else { _mm_unpackhi_epi8(a, b) }
                });
            }
            let mut columns = [_mm512_setzero_si512(); LOAD_COLS];
            for (column, line) in columns.iter_mut().zip(lines) {
                *column = _mm512_cvtepi8_epi32(line);
            }
            columns
        }
    }
}

/// Transposes 4 x 4 lanes in each quarter of four vectors.
///
/// # Safety
/// The CPU must have AVX-512 F.
#[inline(always)]
unsafe fn quarter([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
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

/// Computes `a + b mod bound` in lanes of 64 bits.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_mod(a: __m512i, b: __m512i, bound: __m512i) -> __m512i {
    let b = _mm512_sub_epi64(bound, b);
    let difference = _mm512_sub_epi64(a, b);
    _mm512_mask_add_epi64(difference, _mm512_cmplt_epu64_mask(a, b), difference, bound)
}

/// Computes `_mm512_mul_epu32` in assembly. The compiler would turn a product of which only the low half is used into one of
/// 64-bit lanes, which is several instructions or a slower one.
///
/// # Safety
/// The CPU must have AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn mul_kept(a: __m512i, b: __m512i) -> __m512i {
    let product;
    // SAFETY: the caller has the instruction, which reads and writes these registers only.
    unsafe {
        asm!(
            "vpmuludq {product}, {a}, {b}",
            product = lateout(zmm_reg) product,
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    product
}
