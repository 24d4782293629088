//! Eight lanes in an AVX2 register.
#![cfg(target_arch = "x86_64")]

use std::arch::{asm, x86_64::*};

use super::{
    LOAD_COLS, Lanes, MAX_WIDTH, VectorLoop,
    vector::{EvenOdd, vector},
};

/// Eight lanes of AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

vector! {
    Avx2, __m256i, 8,
    words: _mm256_set1_epi32 _mm256_loadu_si256 _mm256_storeu_si256 _mm256_stream_si256 _mm256_add_epi32 _mm256_sub_epi32
        _mm256_min_epu32 _mm256_mullo_epi32,
    bits: _mm256_srl_epi32 _mm256_sll_epi32 _mm256_or_si256 _mm256_and_si256,
    wide: _mm256_set1_epi64x _mm256_mul_epu32 _mm256_add_epi64 _mm256_srli_epi64,
    narrow: Self, features: "avx2",
    own: {
        fn gather(from: *const u32, index: &[i32; MAX_WIDTH]) -> __m256i {
            _mm256_i32gather_epi32::<4>(from.cast(), _mm256_loadu_si256(index.as_ptr().cast()))
        }
        fn sub_mod(a: __m256i, b: __m256i, p: __m256i) -> __m256i {
            let not_negative = _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a);
            _mm256_add_epi32(_mm256_sub_epi32(a, b), _mm256_andnot_si256(not_negative, p))
        }
        fn widen(a: __m256i) -> Self::Wide {
            let low = _mm256_set1_epi64x(0xffff_ffff);
            EvenOdd { even: _mm256_and_si256(a, low), odd: _mm256_srli_epi64::<32>(a) }
        }
        fn low(a: Self::Wide) -> __m256i {
            _mm256_blend_epi32::<0b1010_1010>(a.even, _mm256_slli_epi64::<32>(a.odd))
        }
        fn high(a: Self::Wide) -> __m256i {
            _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(a.even), a.odd)
        }
        fn transpose(rows: &mut [__m256i]) -> () {
            let [a, b, c, d, e, f, g, h] = *rows else { unreachable!("eight rows") };
            let first = quarter([a, b, c, d]);
            let second = quarter([e, f, g, h]);
            for i in 0..4 {
                rows[i] = _mm256_permute2x128_si256::<0x20>(first[i], second[i]);
                rows[4 + i] = _mm256_permute2x128_si256::<0x31>(first[i], second[i]);
            }
        }
        fn load_columns(from: *const i8, stride: usize) -> [__m256i; LOAD_COLS] {
            let row = |i: usize| _mm_loadu_si128(from.add(i * stride).cast());
            let pairs: [__m128i; 8] = std::array::from_fn(|i| {
                let a = row(i / 2 * 2);
                let b = row(i / 2 * 2 + 1);
                if i % 2 == 0 { _mm_unpacklo_epi8(a, b) } else { _mm_unpackhi_epi8(a, b) }
            });
            // Columns 4 q .. 4 q + 4 of rows 0..4, and of rows 4..8.
            let quads = |half: usize, q: usize| {
                let a = pairs[4 * half + q / 2];
                let b = pairs[4 * half + 2 + q / 2];
                if q.is_multiple_of(2) { _mm_unpacklo_epi16(a, b) } else { _mm_unpackhi_epi16(a, b) }
            };
            // Each vector has two columns of 8 rows.
            let columns: [__m128i; 8] = std::array::from_fn(|i| {
                let a = quads(0, i / 2);
                let b = quads(1, i / 2);
                if i % 2 == 0 { _mm_unpacklo_epi32(a, b) } else { _mm_unpackhi_epi32(a, b) }
            });
            std::array::from_fn(|c| {
                let pair = columns[c / 2];
                _mm256_cvtepi8_epi32(if c % 2 == 0 { pair } else { _mm_unpackhi_epi64(pair, pair) })
            })
        }
    }
}

/// Transposes 4 x 4 lanes in each half of four vectors.
///
/// # Safety
/// The CPU must have AVX2.
#[inline(always)]
unsafe fn quarter([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
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

/// Computes `a + b mod bound` in lanes of 64 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn add_mod(a: __m256i, b: __m256i, bound: __m256i) -> __m256i {
    let b = _mm256_sub_epi64(bound, b);
    let sign = _mm256_set1_epi64x(i64::MIN);
    let negative = _mm256_cmpgt_epi64(_mm256_xor_si256(b, sign), _mm256_xor_si256(a, sign));
    _mm256_add_epi64(_mm256_sub_epi64(a, b), _mm256_and_si256(negative, bound))
}

/// Computes `_mm256_mul_epu32` in assembly. The compiler would turn a product of which only the low half is used into one of
/// 64-bit lanes, which is several instructions or a slower one.
///
/// # Safety
/// The CPU must have AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn mul_kept(a: __m256i, b: __m256i) -> __m256i {
    let product;
    // SAFETY: the caller has the instruction, which reads and writes these registers only.
    unsafe {
        asm!(
            "vpmuludq {product}, {a}, {b}",
            product = lateout(ymm_reg) product,
            a = in(ymm_reg) a,
            b = in(ymm_reg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    product
}
