//! Sixteen lanes in an AVX-512 register.

use std::arch::x86_64::*;

use super::{LOAD_COLS, Lanes, MAX_WIDTH};

/// AVX-512 F.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

/// Products of the even lanes, and of the odd lanes, 64 bits each.
#[derive(Clone, Copy)]
pub(crate) struct Sums {
    even: __m512i,
    odd: __m512i,
}

/// The odd lanes.
const ODD: __mmask16 = 0xaaaa;

// SAFETY of all blocks: the caller has AVX-512 F, and pointers valid for the width.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for Avx512 {
    const WIDTH: usize = 16;
    type Words = __m512i;
    type Sums = Sums;

    #[inline(always)]
    unsafe fn splat(word: u32) -> __m512i {
        unsafe { _mm512_set1_epi32(word as i32) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u32) -> __m512i {
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn gather(from: *const u32, index: &[i32; MAX_WIDTH]) -> __m512i {
        unsafe { _mm512_i32gather_epi32::<4>(_mm512_loadu_si512(index.as_ptr().cast()), from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut u32, words: __m512i) {
        unsafe { _mm512_storeu_si512(to.cast(), words) };
    }

    #[inline(always)]
    unsafe fn add(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_sub_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_min_epu32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_low(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_mullo_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_high(a: __m512i, b: __m512i) -> __m512i {
        unsafe {
            let even = _mm512_mul_epu32(a, b);
            let odd = _mm512_mul_epu32(_mm512_srli_epi64::<32>(a), b);
            _mm512_mask_blend_epi32(ODD, _mm512_srli_epi64::<32>(even), odd)
        }
    }

    #[inline(always)]
    unsafe fn load_sums(from: *const u32) -> Sums {
        unsafe {
            Sums { even: _mm512_loadu_si512(from.cast()), odd: _mm512_loadu_si512(from.add(16).cast()) }
        }
    }

    #[inline(always)]
    unsafe fn store_sums(to: *mut u32, sums: Sums) {
        unsafe {
            _mm512_storeu_si512(to.cast(), sums.even);
            _mm512_storeu_si512(to.add(16).cast(), sums.odd);
        }
    }

    #[inline(always)]
    unsafe fn mul_add(sums: Sums, a: __m512i, b: u32) -> Sums {
        unsafe {
            let b = _mm512_set1_epi32(b as i32);
            Sums {
                even: _mm512_add_epi64(sums.even, _mm512_mul_epu32(a, b)),
                odd: _mm512_add_epi64(sums.odd, _mm512_mul_epu32(_mm512_srli_epi64::<32>(a), b)),
            }
        }
    }

    #[inline(always)]
    unsafe fn mul_add_words(sums: Sums, a: __m512i, b: __m512i) -> Sums {
        unsafe {
            let (odd_a, odd_b) = (_mm512_srli_epi64::<32>(a), _mm512_srli_epi64::<32>(b));
            Sums {
                even: _mm512_add_epi64(sums.even, _mm512_mul_epu32(a, b)),
                odd: _mm512_add_epi64(sums.odd, _mm512_mul_epu32(odd_a, odd_b)),
            }
        }
    }

    #[inline(always)]
    unsafe fn low(sums: Sums) -> __m512i {
        unsafe { _mm512_mask_blend_epi32(ODD, sums.even, _mm512_slli_epi64::<32>(sums.odd)) }
    }

    #[inline(always)]
    unsafe fn high(sums: Sums) -> __m512i {
        unsafe { _mm512_mask_blend_epi32(ODD, _mm512_srli_epi64::<32>(sums.even), sums.odd) }
    }

    #[inline(always)]
    unsafe fn load_columns(from: *const i8, stride: usize) -> [__m512i; LOAD_COLS] {
        unsafe {
            let mut lines: [__m128i; 16] =
                std::array::from_fn(|i| _mm_loadu_si128(from.add(i * stride).cast()));
            // Interleaving line i with line i + 8 rotates the 8 bits of (line, byte) by one; four times swap line
            // and byte.
            for _ in 0..4 {
                lines = std::array::from_fn(|i| {
                    let (a, b) = (lines[i / 2], lines[i / 2 + 8]);
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
