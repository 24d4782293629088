//! Code that the kernels of AVX-512 IFMA and AMX share: a transposition, and a reduction of 64-bit lanes.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;

use hush_math::modulus::Modulus;

use crate::lanes::{Lanes, avx512::Avx512};

/// The number of words of a vector.
pub(super) const LANES: usize = 16;
/// A mask of the odd lanes of 32 bits.
pub(super) const ODD: __mmask16 = 0xaaaa;

/// Transposes a 16 x 16 matrix of words, a row a vector.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transpose(mut rows: [__m512i; LANES]) -> [__m512i; LANES] {
    // SAFETY: the CPU has AVX-512 F.
    unsafe { Avx512::transpose(&mut rows) };
    rows
}

/// Transposes a block of 16 x 16 words in place.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transpose_block(block: &mut [u32; LANES * LANES]) {
    let (rows, _) = block.as_chunks_mut::<LANES>();
    // SAFETY: every row is one vector.
    let vectors = std::array::from_fn(|i| unsafe { _mm512_loadu_si512(rows[i].as_ptr().cast()) });
    for (row, vector) in rows.iter_mut().zip(transpose(vectors)) {
        // SAFETY: every row is one vector.
        unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), vector) };
    }
}

/// Barrett's reduction of 64-bit lanes by one modulus p of at least 20 bits.
#[derive(Clone, Copy)]
pub(super) struct Reducer {
    p: __m512i,
    /// The value floor(2^64 / p), below 2^52.
    quotient: __m512i,
}

impl Reducer {
    /// The number of bits that a quotient estimate ignores, so that an operand has 52.
    const DROPPED_BITS: u32 = 12;

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn new(modulus: &Modulus) -> Self {
        let p = modulus.value();
        Self {
            p: _mm512_set1_epi64(i64::from(p)),
            quotient: _mm512_set1_epi64((u64::MAX / u64::from(p)) as i64),
        }
    }

    /// Computes `x mod p` of every lane, for `x < 2^64 - 2^57`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn reduce(&self, x: __m512i) -> __m512i {
        // The estimate ignores less than 2^12 / p <= 2^-7 of x / p, and less than x / 2^64 < 1 - 2^-7 for the rounded
        // reciprocal. With less than one lost, it is at most 1 too small, and the rest is below 2p.
        let zero = _mm512_setzero_si512();
        let estimate =
            _mm512_madd52hi_epu64(zero, _mm512_srli_epi64::<{ Self::DROPPED_BITS }>(x), self.quotient);
        let product = _mm512_madd52lo_epu64(zero, estimate, self.p);
        let low = _mm512_set1_epi64((1 << 52) - 1);
        let rest = _mm512_and_si512(_mm512_sub_epi64(x, product), low);
        _mm512_min_epu64(rest, _mm512_sub_epi64(rest, self.p))
    }
}

/// Returns the words of the even lanes of `even` and, in the odd lanes, of `odd`, both 64-bit lanes below 2^32.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn interleave(even: __m512i, odd: __m512i) -> __m512i {
    _mm512_mask_blend_epi32(ODD, even, _mm512_slli_epi64::<32>(odd))
}

/// Returns the even words of a vector, in 64-bit lanes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn even_words(words: __m512i) -> __m512i {
    _mm512_and_si512(words, _mm512_set1_epi64(0xffff_ffff))
}

/// Returns the odd words of a vector, in 64-bit lanes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn odd_words(words: __m512i) -> __m512i {
    _mm512_srli_epi64::<32>(words)
}
