//! Arithmetic on eight residues in 64-bit lanes, by the 52-bit multiply-adds.
//!
//! ```text
//! y w mod p:  q = floor(y w' / 2^52),  w' = floor(w 2^52 / p);   y w - q p  mod 2^52        (Shoup's product)
//! ```
//!
//! A lane counts modulo 2^52: its top 12 bits are garbage, which the multiply-adds ignore. A lazy value is a
//! non-negative number below 2^40, congruent to the residue. 256 p is below that for every p < 2^32, and no transform
//! lets a value grow past 148 p (see the passes). So nothing is reduced before the last pass.

use std::arch::x86_64::*;

use hush_math::modulus::Modulus;

/// A mask of the 32-bit lanes with the low half of every 64-bit lane.
pub(super) const LOW_HALVES: __mmask16 = 0x5555;
/// A mask of the 32-bit lanes with the high half of every 64-bit lane.
const HIGH_HALVES: __mmask16 = 0xaaaa;

/// Computes `floor(w * 2^52 / p)`, the companion of `w` in [`Twiddle`].
pub(super) fn shoup52(modulus: Modulus, w: u32) -> u64 {
    ((u128::from(w) << 52) / u128::from(modulus.value())) as u64
}

/// Multipliers with their companions from [`shoup52`], a lane each.
#[derive(Clone, Copy)]
pub(super) struct Twiddle {
    pub(super) w: __m512i,
    pub(super) shoup: __m512i,
}

// SAFETY of all blocks: the caller has AVX-512 F and IFMA, and pointers valid for the described words.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Twiddle {
    /// Loads the pair (w, companion) at `from` into all lanes.
    #[inline(always)]
    pub(super) unsafe fn splat(from: *const u64) -> Self {
        unsafe { Self { w: _mm512_set1_epi64(*from as i64), shoup: _mm512_set1_epi64(*from.add(1) as i64) } }
    }

    /// Loads eight multipliers and then their companions, 128 aligned bytes at `from`.
    #[inline(always)]
    pub(super) unsafe fn load(from: *const u64) -> Self {
        unsafe { Self { w: _mm512_load_si512(from.cast()), shoup: _mm512_load_si512(from.add(8).cast()) } }
    }
}

/// The modulus in all lanes, in the forms that the kernels need.
#[derive(Clone, Copy)]
pub(super) struct Lanes52 {
    /// The value 2^52 - p.
    minus_p: __m512i,
    /// The value floor(2^52 / p).
    barrett: __m512i,
    /// The value p in 32-bit lanes.
    p32: __m512i,
}

// SAFETY of all blocks: the caller has AVX-512 F and IFMA.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes52 {
    #[inline(always)]
    pub(super) unsafe fn new(p: u32) -> Self {
        unsafe {
            Self {
                minus_p: _mm512_set1_epi64((1 << 52) - i64::from(p)),
                barrett: _mm512_set1_epi64((1 << 52) / i64::from(p)),
                p32: _mm512_set1_epi32(p as i32),
            }
        }
    }

    /// Computes `sum + y w`, congruent modulo p. The product adds less than `p (1 + y / 2^52)`, for a lazy `y`.
    #[inline(always)]
    pub(super) unsafe fn mul_add_lazy(self, sum: __m512i, y: __m512i, by: Twiddle) -> __m512i {
        unsafe {
            let quotient = _mm512_madd52hi_epu64(_mm512_setzero_si512(), y, by.shoup);
            _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(sum, y, by.w), quotient, self.minus_p)
        }
    }

    /// Computes `(x + y w, x - y w)`. `x` must be at least 2 p, so that the difference is not negative.
    #[inline(always)]
    pub(super) unsafe fn butterfly_lazy(self, x: &mut __m512i, y: &mut __m512i, by: Twiddle) {
        unsafe {
            let product = self.mul_add_lazy(_mm512_setzero_si512(), *y, by);
            *y = _mm512_sub_epi64(*x, product);
            *x = _mm512_add_epi64(*x, product);
        }
    }

    /// Reduces a lazy value to one below `p (1 + 2^-12)`, which is below 2^32 for p below
    /// [`hush_math::modulus::MODULUS_LIMIT`]. The quotient estimate is at most 1 + x / 2^52 too small.
    #[inline(always)]
    pub(super) unsafe fn reduce_lazy(self, x: __m512i) -> __m512i {
        unsafe {
            let quotient = _mm512_madd52hi_epu64(_mm512_setzero_si512(), x, self.barrett);
            _mm512_madd52lo_epu64(x, quotient, self.minus_p)
        }
    }

    /// Packs lazy values below `p (1 + 2^-12)` to canonical words: word `2 i` from lane `i` of `even`, `2 i + 1` from
    /// `odd`.
    #[inline(always)]
    pub(super) unsafe fn pack(self, even: __m512i, odd: __m512i) -> __m512i {
        unsafe {
            let words = _mm512_mask_shuffle_epi32::<0b10_10_00_00>(even, HIGH_HALVES, odd);
            _mm512_min_epu32(words, _mm512_sub_epi32(words, self.p32))
        }
    }
}

/// Loads the words `2 i` at `from`, zero-extended.
///
/// # Safety
/// The CPU must have AVX-512 F; 16 words are readable.
#[inline(always)]
pub(super) unsafe fn load_even(from: *const u32) -> __m512i {
    // SAFETY: see above.
    unsafe { _mm512_maskz_loadu_epi32(LOW_HALVES, from.cast()) }
}

/// Loads the words `2 i + 1` at `from`, zero-extended.
///
/// # Safety
/// The conditions of [`load_even`] must hold.
#[inline(always)]
pub(super) unsafe fn load_odd(from: *const u32) -> __m512i {
    // SAFETY: see above.
    unsafe { _mm512_srli_epi64::<32>(_mm512_loadu_si512(from.cast())) }
}

/// Loads the vectors at `from`, `from + stride`, ...
///
/// The loop is deliberate, as everywhere here: the compiler does not always inline `std::array::from_fn`. Code that is not inlined
/// is not compiled for these instructions, and is several times slower.
///
/// # Safety
/// The CPU must have AVX-512 F; 8 words are readable at each.
#[inline(always)]
pub(super) unsafe fn load_rows<const R: usize>(from: *const u64, stride: usize) -> [__m512i; R] {
    // SAFETY: see above.
    unsafe {
        let mut rows = [_mm512_setzero_si512(); R];
        for (r, row) in rows.iter_mut().enumerate() {
            *row = _mm512_loadu_si512(from.add(r * stride).cast());
        }
        rows
    }
}

/// Stores vectors at `to`, `to + stride`, ...
///
/// # Safety
/// The CPU must have AVX-512 F; 8 words are writable at each.
#[inline(always)]
pub(super) unsafe fn store_rows<const R: usize>(to: *mut u64, stride: usize, rows: [__m512i; R]) {
    // SAFETY: see above.
    unsafe {
        for (r, row) in rows.into_iter().enumerate() {
            _mm512_storeu_si512(to.add(r * stride).cast(), row);
        }
    }
}

/// Transposes 8 x 8 lanes of 64 bits.
///
/// # Safety
/// The CPU must have AVX-512 F.
#[inline(always)]
pub(super) unsafe fn transpose(rows: [__m512i; 8]) -> [__m512i; 8] {
    // SAFETY: see above.
    unsafe {
        let [a, b, c, d, e, f, g, h] = rows;
        let pairs = [
            _mm512_unpacklo_epi64(a, b),
            _mm512_unpackhi_epi64(a, b),
            _mm512_unpacklo_epi64(c, d),
            _mm512_unpackhi_epi64(c, d),
            _mm512_unpacklo_epi64(e, f),
            _mm512_unpackhi_epi64(e, f),
            _mm512_unpacklo_epi64(g, h),
            _mm512_unpackhi_epi64(g, h),
        ];
        let low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
        let high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
        // Element 4 half + i has columns i and i + 4 of rows 4 half .. 4 half + 4.
        let mut quads = [_mm512_setzero_si512(); 8];
        for (index, quad) in quads.iter_mut().enumerate() {
            let half = index / 4;
            let i = index % 4;
            let first = pairs[4 * half + i % 2];
            let second = pairs[4 * half + 2 + i % 2];
            *quad = _mm512_permutex2var_epi64(first, if i < 2 { low } else { high }, second);
        }
        let mut columns = [_mm512_setzero_si512(); 8];
        for i in 0..4 {
            columns[i] = _mm512_shuffle_i64x2::<0b01_00_01_00>(quads[i], quads[4 + i]);
            columns[4 + i] = _mm512_shuffle_i64x2::<0b11_10_11_10>(quads[i], quads[4 + i]);
        }
        columns
    }
}
