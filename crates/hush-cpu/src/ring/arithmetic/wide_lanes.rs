//! What arithmetic modulo a prime needs of vectors of words beyond [`Lanes`].

use std::arch::{asm, x86_64::*};

use crate::lanes::{Avx2, Avx512, Lanes, Scalar};

/// Words of 32 bits with their products of 64 bits.
///
/// # Safety
/// As for [`Lanes`].
pub(crate) trait WideLanes: Lanes + Copy {
    /// A word of 64 bits a lane.
    type Wide: Copy;

    /// `a b`.
    unsafe fn mul_wide(a: Self::Words, b: Self::Words) -> Self::Wide;
    /// Stores words, past the caches if they are an aligned vector. Before another thread reads them, this one must
    /// call `_mm_sfence`.
    unsafe fn stream(to: *mut u32, words: Self::Words);
    /// `a b`, where `b` is the same in all lanes.
    unsafe fn mul_splat(a: Self::Words, b: Self::Words) -> Self::Wide;
    /// `low b`, where low is the low half of a lane; `b` is the same in all lanes.
    unsafe fn mul_low_half(a: Self::Wide, b: Self::Words) -> Self::Wide;
    /// `a + b`.
    unsafe fn add_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// `a + b mod bound`, for `a` and `b` below `bound`.
    unsafe fn add_wide_mod(a: Self::Wide, b: Self::Wide, bound: u64) -> Self::Wide;
    /// The same in all lanes.
    unsafe fn splat_wide(word: u64) -> Self::Wide;
    /// The words, zero-extended.
    unsafe fn widen(a: Self::Words) -> Self::Wide;
    /// The low halves.
    unsafe fn low_half(a: Self::Wide) -> Self::Words;
    /// The high halves.
    unsafe fn high_half(a: Self::Wide) -> Self::Words;
    /// The high halves, zero-extended.
    unsafe fn shift_down(a: Self::Wide) -> Self::Wide;
    /// `(low >> shift | high << (32 - shift)) & mask`, for a shift below 32.
    unsafe fn bits(low: Self::Words, high: Self::Words, shift: u32, mask: u32) -> Self::Words;
    /// `a - b`, plus `p` where that is negative.
    unsafe fn sub_mod(a: Self::Words, b: Self::Words, p: Self::Words) -> Self::Words;
}

impl WideLanes for Scalar {
    type Wide = [u64; 8];

    #[inline(always)]
    unsafe fn mul_wide(a: [u32; 8], b: [u32; 8]) -> [u64; 8] {
        std::array::from_fn(|i| u64::from(a[i]) * u64::from(b[i]))
    }

    #[inline(always)]
    unsafe fn stream(to: *mut u32, words: [u32; 8]) {
        // SAFETY: the caller says so.
        unsafe { Self::store(to, words) };
    }

    #[inline(always)]
    unsafe fn mul_splat(a: [u32; 8], b: [u32; 8]) -> [u64; 8] {
        // SAFETY: needs nothing of the CPU.
        unsafe { Self::mul_wide(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_low_half(a: [u64; 8], b: [u32; 8]) -> [u64; 8] {
        std::array::from_fn(|i| u64::from(a[i] as u32) * u64::from(b[i]))
    }

    #[inline(always)]
    unsafe fn add_wide(a: [u64; 8], b: [u64; 8]) -> [u64; 8] {
        std::array::from_fn(|i| a[i].wrapping_add(b[i]))
    }

    #[inline(always)]
    unsafe fn add_wide_mod(a: [u64; 8], b: [u64; 8], bound: u64) -> [u64; 8] {
        std::array::from_fn(|i| {
            let (difference, negative) = a[i].overflowing_sub(bound - b[i]);
            if negative { difference.wrapping_add(bound) } else { difference }
        })
    }

    #[inline(always)]
    unsafe fn splat_wide(word: u64) -> [u64; 8] {
        [word; 8]
    }

    #[inline(always)]
    unsafe fn widen(a: [u32; 8]) -> [u64; 8] {
        a.map(u64::from)
    }

    #[inline(always)]
    unsafe fn low_half(a: [u64; 8]) -> [u32; 8] {
        a.map(|a| a as u32)
    }

    #[inline(always)]
    unsafe fn high_half(a: [u64; 8]) -> [u32; 8] {
        a.map(|a| (a >> 32) as u32)
    }

    #[inline(always)]
    unsafe fn shift_down(a: [u64; 8]) -> [u64; 8] {
        a.map(|a| a >> 32)
    }

    #[inline(always)]
    unsafe fn bits(low: [u32; 8], high: [u32; 8], shift: u32, mask: u32) -> [u32; 8] {
        std::array::from_fn(|i| {
            let both = u64::from(high[i]) << 32 | u64::from(low[i]);
            (both >> shift) as u32 & mask
        })
    }

    #[inline(always)]
    unsafe fn sub_mod(a: [u32; 8], b: [u32; 8], p: [u32; 8]) -> [u32; 8] {
        std::array::from_fn(|i| {
            let (difference, negative) = a[i].overflowing_sub(b[i]);
            if negative { difference.wrapping_add(p[i]) } else { difference }
        })
    }
}

/// The even lanes and the odd lanes.
#[derive(Clone, Copy)]
pub(crate) struct EvenOdd<V> {
    even: V,
    odd: V,
}

// SAFETY of all blocks: the caller has AVX2.
#[allow(clippy::undocumented_unsafe_blocks)]
impl WideLanes for Avx2 {
    type Wide = EvenOdd<__m256i>;

    #[inline(always)]
    unsafe fn mul_wide(a: __m256i, b: __m256i) -> Self::Wide {
        unsafe {
            EvenOdd {
                even: _mm256_mul_epu32(a, b),
                odd: _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b)),
            }
        }
    }

    #[inline(always)]
    unsafe fn stream(to: *mut u32, words: __m256i) {
        unsafe {
            if to.addr().is_multiple_of(size_of::<__m256i>()) {
                _mm256_stream_si256(to.cast(), words);
            } else {
                Self::store(to, words);
            }
        }
    }

    #[inline(always)]
    unsafe fn mul_splat(a: __m256i, b: __m256i) -> Self::Wide {
        unsafe {
            EvenOdd { even: _mm256_mul_epu32(a, b), odd: _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), b) }
        }
    }

    #[inline(always)]
    unsafe fn mul_low_half(a: Self::Wide, b: __m256i) -> Self::Wide {
        unsafe { EvenOdd { even: mul_low_256(a.even, b), odd: mul_low_256(a.odd, b) } }
    }

    #[inline(always)]
    unsafe fn add_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide {
        unsafe { EvenOdd { even: _mm256_add_epi64(a.even, b.even), odd: _mm256_add_epi64(a.odd, b.odd) } }
    }

    #[inline(always)]
    unsafe fn add_wide_mod(a: Self::Wide, b: Self::Wide, bound: u64) -> Self::Wide {
        unsafe {
            let (bound, sign) = (_mm256_set1_epi64x(bound as i64), _mm256_set1_epi64x(i64::MIN));
            let add = |a, b| {
                let b = _mm256_sub_epi64(bound, b);
                let negative = _mm256_cmpgt_epi64(_mm256_xor_si256(b, sign), _mm256_xor_si256(a, sign));
                _mm256_add_epi64(_mm256_sub_epi64(a, b), _mm256_and_si256(negative, bound))
            };
            EvenOdd { even: add(a.even, b.even), odd: add(a.odd, b.odd) }
        }
    }

    #[inline(always)]
    unsafe fn splat_wide(word: u64) -> Self::Wide {
        unsafe { EvenOdd { even: _mm256_set1_epi64x(word as i64), odd: _mm256_set1_epi64x(word as i64) } }
    }

    #[inline(always)]
    unsafe fn widen(a: __m256i) -> Self::Wide {
        unsafe {
            let low = _mm256_set1_epi64x(0xffff_ffff);
            EvenOdd { even: _mm256_and_si256(a, low), odd: _mm256_srli_epi64::<32>(a) }
        }
    }

    #[inline(always)]
    unsafe fn low_half(a: Self::Wide) -> __m256i {
        unsafe { _mm256_blend_epi32::<0b1010_1010>(a.even, _mm256_slli_epi64::<32>(a.odd)) }
    }

    #[inline(always)]
    unsafe fn shift_down(a: Self::Wide) -> Self::Wide {
        unsafe { EvenOdd { even: _mm256_srli_epi64::<32>(a.even), odd: _mm256_srli_epi64::<32>(a.odd) } }
    }

    #[inline(always)]
    unsafe fn bits(low: __m256i, high: __m256i, shift: u32, mask: u32) -> __m256i {
        unsafe {
            let (right, left) = (_mm_cvtsi32_si128(shift as i32), _mm_cvtsi32_si128(32 - shift as i32));
            let both = _mm256_or_si256(_mm256_srl_epi32(low, right), _mm256_sll_epi32(high, left));
            _mm256_and_si256(both, _mm256_set1_epi32(mask as i32))
        }
    }

    #[inline(always)]
    unsafe fn high_half(a: Self::Wide) -> __m256i {
        unsafe { _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(a.even), a.odd) }
    }

    #[inline(always)]
    unsafe fn sub_mod(a: __m256i, b: __m256i, p: __m256i) -> __m256i {
        unsafe {
            let not_negative = _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a);
            _mm256_add_epi32(_mm256_sub_epi32(a, b), _mm256_andnot_si256(not_negative, p))
        }
    }
}

/// The 32-bit lanes that are low halves of 64-bit lanes.
const EVEN: __mmask16 = 0x5555;

// SAFETY of all blocks: the caller has AVX-512 F.
#[allow(clippy::undocumented_unsafe_blocks)]
impl WideLanes for Avx512 {
    type Wide = EvenOdd<__m512i>;

    #[inline(always)]
    unsafe fn mul_wide(a: __m512i, b: __m512i) -> Self::Wide {
        unsafe {
            EvenOdd {
                even: _mm512_mul_epu32(a, b),
                odd: _mm512_mul_epu32(_mm512_srli_epi64::<32>(a), _mm512_srli_epi64::<32>(b)),
            }
        }
    }

    #[inline(always)]
    unsafe fn stream(to: *mut u32, words: __m512i) {
        unsafe {
            if to.addr().is_multiple_of(size_of::<__m512i>()) {
                _mm512_stream_si512(to.cast(), words);
            } else {
                Self::store(to, words);
            }
        }
    }

    #[inline(always)]
    unsafe fn mul_splat(a: __m512i, b: __m512i) -> Self::Wide {
        unsafe {
            EvenOdd { even: _mm512_mul_epu32(a, b), odd: _mm512_mul_epu32(_mm512_srli_epi64::<32>(a), b) }
        }
    }

    #[inline(always)]
    unsafe fn mul_low_half(a: Self::Wide, b: __m512i) -> Self::Wide {
        unsafe { EvenOdd { even: mul_low_512(a.even, b), odd: mul_low_512(a.odd, b) } }
    }

    #[inline(always)]
    unsafe fn add_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide {
        unsafe { EvenOdd { even: _mm512_add_epi64(a.even, b.even), odd: _mm512_add_epi64(a.odd, b.odd) } }
    }

    #[inline(always)]
    unsafe fn add_wide_mod(a: Self::Wide, b: Self::Wide, bound: u64) -> Self::Wide {
        unsafe {
            let bound = _mm512_set1_epi64(bound as i64);
            let add = |a, b| {
                let b = _mm512_sub_epi64(bound, b);
                let difference = _mm512_sub_epi64(a, b);
                _mm512_mask_add_epi64(difference, _mm512_cmplt_epu64_mask(a, b), difference, bound)
            };
            EvenOdd { even: add(a.even, b.even), odd: add(a.odd, b.odd) }
        }
    }

    #[inline(always)]
    unsafe fn splat_wide(word: u64) -> Self::Wide {
        unsafe { EvenOdd { even: _mm512_set1_epi64(word as i64), odd: _mm512_set1_epi64(word as i64) } }
    }

    #[inline(always)]
    unsafe fn widen(a: __m512i) -> Self::Wide {
        unsafe { EvenOdd { even: _mm512_maskz_mov_epi32(EVEN, a), odd: _mm512_srli_epi64::<32>(a) } }
    }

    #[inline(always)]
    unsafe fn low_half(a: Self::Wide) -> __m512i {
        unsafe { _mm512_mask_shuffle_epi32::<0b10_10_00_00>(a.even, !EVEN, a.odd) }
    }

    #[inline(always)]
    unsafe fn shift_down(a: Self::Wide) -> Self::Wide {
        unsafe { EvenOdd { even: _mm512_srli_epi64::<32>(a.even), odd: _mm512_srli_epi64::<32>(a.odd) } }
    }

    #[inline(always)]
    unsafe fn bits(low: __m512i, high: __m512i, shift: u32, mask: u32) -> __m512i {
        unsafe {
            let (right, left) = (_mm_cvtsi32_si128(shift as i32), _mm_cvtsi32_si128(32 - shift as i32));
            let both = _mm512_or_si512(_mm512_srl_epi32(low, right), _mm512_sll_epi32(high, left));
            _mm512_and_si512(both, _mm512_set1_epi32(mask as i32))
        }
    }

    #[inline(always)]
    unsafe fn high_half(a: Self::Wide) -> __m512i {
        unsafe { _mm512_mask_shuffle_epi32::<0b11_11_01_01>(a.odd, EVEN, a.even) }
    }

    #[inline(always)]
    unsafe fn sub_mod(a: __m512i, b: __m512i, p: __m512i) -> __m512i {
        unsafe {
            let difference = _mm512_sub_epi32(a, b);
            _mm512_mask_add_epi32(difference, _mm512_cmplt_epu32_mask(a, b), difference, p)
        }
    }
}

/// `_mm512_mul_epu32`. The compiler, where only the low half of a product is used, would make it one of 64-bit lanes,
/// which is several instructions or one that takes as long.
///
/// # Safety
/// The CPU must have AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn mul_low_512(a: __m512i, b: __m512i) -> __m512i {
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

/// `_mm256_mul_epu32`, as [`mul_low_512`].
///
/// # Safety
/// The CPU must have AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn mul_low_256(a: __m256i, b: __m256i) -> __m256i {
    let product;
    // SAFETY: as in `mul_low_512`.
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
