//! The forward transform.
//!
//! 1. `first_pass`: log2 R stages on columns N / 256 apart, for N = 256 R.
//! 2. `rows_pass`: for each block of 256, four stages across rows of 16.
//! 3. `last_pass`: after a transposition, four stages within rows.
//!
//! A stage is `x, y -> x + w y, x - w y`. Ranges: coefficients are canonical. The first stage adds 16 p to the ones that it adds to
//! and subtracts from. Each of at most 13 stages moves a value by less than `p (1 + 2^-12)`, so that all stay in 2p..30p.

use std::arch::x86_64::*;

use super::{
    BLOCK,
    arithmetic::{Lanes52, Twiddle, load_even, load_odd, load_rows, store_rows, transpose},
    stride,
    tables::{LANE_TWIDDLE, RADIX16_TWIDDLES, Tables},
};

/// The multiple of p that keeps all differences positive.
const OFFSET: i64 = 16;

/// # Safety
/// The CPU must have AVX-512 F and IFMA; `values` is valid for N = 256 R words, `scratch` for R [`stride`].
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) unsafe fn forward<const R: usize>(tables: &Tables, values: *mut u32, scratch: *mut u64) {
    debug_assert_eq!(tables.radix, R);
    // SAFETY: the caller has the instruction set; blocks are within both buffers.
    unsafe {
        first_pass::<R>(tables, values, scratch);
        for block in 0..R {
            let rows = scratch.add(block * stride(R));
            rows_pass::<R>(tables, block, rows);
            for half in 0..2 {
                let group = 2 * block + half;
                let slots = last_pass(tables, group, rows.add(half * BLOCK / 2));
                store_slots(tables, slots, values.add(group * BLOCK / 2));
            }
        }
    }
}

/// Runs the stage of `M` blocks on `R` vectors. `twiddle(i)` is the multiplier of block `i`.
#[inline(always)]
unsafe fn stage<const R: usize, const M: usize>(
    lanes: Lanes52,
    x: &mut [__m512i; R],
    twiddle: impl Fn(usize) -> Twiddle,
) {
    let half = R / 2 / M;
    for k in 0..R / 2 {
        let i = k / half;
        let j = k % half;
        let (low, high) = x.split_at_mut(2 * half * i + half);
        // SAFETY: the caller has the instruction set.
        unsafe { lanes.butterfly_lazy(&mut low[2 * half * i + j], &mut high[j], twiddle(i)) };
    }
}

/// Runs all stages on `R` vectors (4, 8 or 16), of blocks 1, 2, .., R / 2. `twiddle(m, i)` is the multiplier of block `i` of `m`.
#[inline(always)]
unsafe fn stages<const R: usize>(
    lanes: Lanes52,
    x: &mut [__m512i; R],
    twiddle: impl Fn(usize, usize) -> Twiddle,
) {
    // SAFETY: the caller has the instruction set.
    unsafe {
        stage::<R, 1>(lanes, x, |i| twiddle(1, i));
        stage::<R, 2>(lanes, x, |i| twiddle(2, i));
        if R > 4 {
            stage::<R, 4>(lanes, x, |i| twiddle(4, i));
        }
        if R > 8 {
            stage::<R, 8>(lanes, x, |i| twiddle(8, i));
        }
    }
}

/// Runs the first `log2 R` stages, on coefficients `c + 256 r` for all `r`. `scratch` receives the even ones of 16 coefficients
/// first.
///
/// # Safety
/// The conditions of [`forward`] must hold.
#[inline(always)]
unsafe fn first_pass<const R: usize>(tables: &Tables, values: *const u32, scratch: *mut u64) {
    // SAFETY: the caller has the instruction set; columns are below 256.
    unsafe {
        for column in (0..BLOCK).step_by(16) {
            let from = values.add(column);
            let to = scratch.add(column);
            if R <= 16 {
                first_columns::<R>(tables, |r| load_even(from.add(r * BLOCK)), to);
                first_columns::<R>(tables, |r| load_odd(from.add(r * BLOCK)), to.add(8));
            } else {
                first_columns_in_halves(tables, |r| load_even(from.add(r * BLOCK)), to);
                first_columns_in_halves(tables, |r| load_odd(from.add(r * BLOCK)), to.add(8));
            }
        }
    }
}

/// Runs [`first_pass`] for 8 columns: `coefficients(r)` goes to the word `r * stride` of `to`.
///
/// # Safety
/// The conditions of [`forward`] must hold; `to` is valid for 8 words at all multiples of `stride`.
#[inline(always)]
unsafe fn first_columns<const R: usize>(
    tables: &Tables,
    coefficients: impl Fn(usize) -> __m512i,
    to: *mut u64,
) {
    // SAFETY: the caller has the instruction set; pairs are below R.
    unsafe {
        let offset = _mm512_set1_epi64(OFFSET * i64::from(tables.p));
        let pairs = tables.forward_pairs.as_ptr();
        let mut x = [offset; R];
        for r in 0..R / 2 {
            x[r] = _mm512_add_epi64(coefficients(r), offset);
            x[R / 2 + r] = coefficients(R / 2 + r);
        }
        stages(Lanes52::new(tables.p), &mut x, |m, i| Twiddle::splat(pairs.add(2 * (m + i))));
        store_rows(to, stride(R), x);
    }
}

/// Runs [`first_columns`] for R = 32, which has too few registers: one stage, and then four on each half.
///
/// # Safety
/// The conditions of [`first_columns`] must hold.
#[inline(always)]
unsafe fn first_columns_in_halves(tables: &Tables, coefficients: impl Fn(usize) -> __m512i, to: *mut u64) {
    // SAFETY: the caller has the instruction set; pairs are below 32.
    unsafe {
        let lanes = Lanes52::new(tables.p);
        let offset = _mm512_set1_epi64(OFFSET * i64::from(tables.p));
        let pairs = tables.forward_pairs.as_ptr();
        let first = Twiddle::splat(pairs.add(2));
        let second_half = to.add(16 * stride(32));
        let mut x = [offset; 16];
        for (r, x) in x.iter_mut().enumerate() {
            let mut y = coefficients(16 + r);
            *x = _mm512_add_epi64(coefficients(r), offset);
            lanes.butterfly_lazy(x, &mut y, first);
            _mm512_storeu_si512(second_half.add(r * stride(32)).cast(), y);
        }
        stages(lanes, &mut x, |m, i| Twiddle::splat(pairs.add(2 * (2 * m + i))));
        store_rows(to, stride(32), x);
        let mut x: [__m512i; 16] = load_rows(second_half, stride(32));
        stages(lanes, &mut x, |m, i| Twiddle::splat(pairs.add(2 * (3 * m + i))));
        store_rows(second_half, stride(32), x);
    }
}

/// Runs the next four stages, on the 16 rows of a block of 256, in place.
///
/// # Safety
/// The conditions of [`forward`] must hold; `rows` is valid for 256 words.
#[inline(always)]
unsafe fn rows_pass<const R: usize>(tables: &Tables, block: usize, rows: *mut u64) {
    // SAFETY: the caller has the instruction set; pairs are below 16 R.
    unsafe {
        let lanes = Lanes52::new(tables.p);
        let pairs = tables.forward_pairs.as_ptr();
        for half in 0..2 {
            let at = rows.add(8 * half);
            let mut x: [__m512i; 16] = load_rows(at, 16);
            stages(lanes, &mut x, |m, i| Twiddle::splat(pairs.add(2 * ((R + block) * m + i))));
            store_rows(at, 16, x);
        }
    }
}

/// Runs the last four stages, on a group of 8 rows of 16. Vector `e`, lane `k` of the result is slot `16 k + e` of the
/// group, in 2p..30p.
///
/// # Safety
/// The conditions of [`forward`] must hold; `rows` is valid for 128 words.
#[inline(always)]
unsafe fn last_pass(tables: &Tables, group: usize, rows: *const u64) -> [__m512i; 16] {
    // SAFETY: the caller has the instruction set, and promises that the group is one of the transform.
    unsafe {
        let lanes = Lanes52::new(tables.p);
        let twiddles = tables.forward_lanes.as_ptr().add(group * RADIX16_TWIDDLES * LANE_TWIDDLE);
        let even = transpose(load_rows(rows, 16));
        let odd = transpose(load_rows(rows.add(8), 16));
        let mut x = [_mm512_setzero_si512(); 16];
        for (pair, (even, odd)) in x.chunks_exact_mut(2).zip(even.into_iter().zip(odd)) {
            (pair[0], pair[1]) = (even, odd);
        }
        stages(lanes, &mut x, |m, i| Twiddle::load(twiddles.add((m - 1 + i) * LANE_TWIDDLE)));
        x
    }
}

/// Stores a result of [`last_pass`] canonically, in the order of the slots.
///
/// # Safety
/// The conditions of [`forward`] must hold; `values` is valid for 128 words.
#[inline(always)]
unsafe fn store_slots(tables: &Tables, slots: [__m512i; 16], values: *mut u32) {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let lanes = Lanes52::new(tables.p);
        let mut packed = [_mm512_setzero_si512(); 8];
        for (packed, pair) in packed.iter_mut().zip(slots.chunks_exact(2)) {
            *packed = lanes.pack(lanes.reduce_lazy(pair[0]), lanes.reduce_lazy(pair[1]));
        }
        store_rows(values.cast(), 8, transpose(packed));
    }
}
