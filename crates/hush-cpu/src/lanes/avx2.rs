//! Eight lanes in an AVX2 register.

use std::arch::x86_64::*;

use super::{LOAD_COLS, Lanes, MAX_WIDTH};

/// AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// Products of the even lanes, and of the odd lanes, 64 bits each.
#[derive(Clone, Copy)]
pub(crate) struct Sums {
    even: __m256i,
    odd: __m256i,
}

// SAFETY of all blocks: the caller has AVX2, and pointers valid for the width.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for Avx2 {
    const WIDTH: usize = 8;
    type Words = __m256i;
    type Sums = Sums;

    #[inline(always)]
    unsafe fn splat(word: u32) -> __m256i {
        unsafe { _mm256_set1_epi32(word as i32) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u32) -> __m256i {
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn gather(from: *const u32, index: &[i32; MAX_WIDTH]) -> __m256i {
        unsafe { _mm256_i32gather_epi32::<4>(from.cast(), _mm256_loadu_si256(index.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut u32, words: __m256i) {
        unsafe { _mm256_storeu_si256(to.cast(), words) };
    }

    #[inline(always)]
    unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_add_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_sub_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_min_epu32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_low(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_mullo_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_high(a: __m256i, b: __m256i) -> __m256i {
        unsafe {
            let even = _mm256_mul_epu32(a, b);
            let odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), b);
            _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(even), odd)
        }
    }

    #[inline(always)]
    unsafe fn load_sums(from: *const u32) -> Sums {
        unsafe { Sums { even: _mm256_loadu_si256(from.cast()), odd: _mm256_loadu_si256(from.add(8).cast()) } }
    }

    #[inline(always)]
    unsafe fn store_sums(to: *mut u32, sums: Sums) {
        unsafe {
            _mm256_storeu_si256(to.cast(), sums.even);
            _mm256_storeu_si256(to.add(8).cast(), sums.odd);
        }
    }

    #[inline(always)]
    unsafe fn mul_add(sums: Sums, a: __m256i, b: u32) -> Sums {
        unsafe {
            let b = _mm256_set1_epi32(b as i32);
            Sums {
                even: _mm256_add_epi64(sums.even, _mm256_mul_epu32(a, b)),
                odd: _mm256_add_epi64(sums.odd, _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), b)),
            }
        }
    }

    #[inline(always)]
    unsafe fn mul_add_words(sums: Sums, a: __m256i, b: __m256i) -> Sums {
        unsafe {
            let (odd_a, odd_b) = (_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b));
            Sums {
                even: _mm256_add_epi64(sums.even, _mm256_mul_epu32(a, b)),
                odd: _mm256_add_epi64(sums.odd, _mm256_mul_epu32(odd_a, odd_b)),
            }
        }
    }

    #[inline(always)]
    unsafe fn low(sums: Sums) -> __m256i {
        unsafe { _mm256_blend_epi32::<0b1010_1010>(sums.even, _mm256_slli_epi64::<32>(sums.odd)) }
    }

    #[inline(always)]
    unsafe fn high(sums: Sums) -> __m256i {
        unsafe { _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(sums.even), sums.odd) }
    }

    #[inline(always)]
    unsafe fn load_columns(from: *const i8, stride: usize) -> [__m256i; LOAD_COLS] {
        unsafe {
            let row = |i: usize| _mm_loadu_si128(from.add(i * stride).cast());
            let pairs: [__m128i; 8] = std::array::from_fn(|i| {
                let (a, b) = (row(i / 2 * 2), row(i / 2 * 2 + 1));
                if i % 2 == 0 { _mm_unpacklo_epi8(a, b) } else { _mm_unpackhi_epi8(a, b) }
            });
            // Columns 4 q .. 4 q + 4 of rows 0..4, and of rows 4..8.
            let quads = |half: usize, q: usize| {
                let (a, b) = (pairs[4 * half + q / 2], pairs[4 * half + 2 + q / 2]);
                if q.is_multiple_of(2) { _mm_unpacklo_epi16(a, b) } else { _mm_unpackhi_epi16(a, b) }
            };
            // Two columns of 8 rows in each.
            let columns: [__m128i; 8] = std::array::from_fn(|i| {
                let (a, b) = (quads(0, i / 2), quads(1, i / 2));
                if i % 2 == 0 { _mm_unpacklo_epi32(a, b) } else { _mm_unpackhi_epi32(a, b) }
            });
            std::array::from_fn(|c| {
                let pair = columns[c / 2];
                _mm256_cvtepi8_epi32(if c % 2 == 0 { pair } else { _mm_unpackhi_epi64(pair, pair) })
            })
        }
    }
}
