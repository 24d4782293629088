//! The inverse transform. A block of 256 slots is a cyclic transform of a twisted polynomial, so:
//!
//! 1. `first_pass`, `rows_pass`: per block, eight stages of a plain inverse cyclic transform (`x, y -> x + w y, x - w y`). Its
//!    multipliers do not depend on the block, and many are 1.
//! 2. `rows_pass`: one multiplication by the twist and 1/N.
//! 3. `last_pass`: Gentleman-Sande stages across the blocks (`x, y -> x + y, w (x - y)`).
//!
//! Ranges: every subtraction is kept positive by a multiple of p that is added, once, to the value that is
//! subtracted from. In the cyclic stages this multiple is from [`SLOT_OFFSETS`]. Across the blocks it starts a
//! multiply-add: [`block_offset`].

use std::arch::x86_64::*;

use super::{
    BLOCK,
    arithmetic::{LOW_HALVES, Lanes52, Twiddle, load_rows, store_rows, transpose},
    stride,
    tables::{LANE_TWIDDLE, RADIX16_TWIDDLES, Tables},
};

/// Multiples of p for the even slots of 16. Slots `4 i` and `4 i + 2` are added without a product, hence up to 16
/// canonical values in one. After four stages all values are in 2p..80p, and at least 18 p where the fifth subtracts from them.
const SLOT_OFFSETS: [i64; 8] = [40, 1, 4, 1, 12, 1, 4, 1];

/// # Safety
/// The CPU must have AVX-512 F and IFMA; `values` is valid for N = 256 R words, `scratch` for R [`stride`].
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) unsafe fn inverse<const R: usize>(tables: &Tables, values: *mut u32, scratch: *mut u64) {
    debug_assert_eq!(tables.radix, R);
    // SAFETY: the caller has the instruction set; blocks are within both buffers.
    unsafe {
        for block in 0..R {
            let slots = values.add(block * BLOCK);
            let rows = scratch.add(block * stride(R));
            for half in 0..2 {
                first_pass(tables, slots.add(half * BLOCK / 2), rows.add(half * BLOCK / 2));
            }
            rows_pass::<R>(tables, block, rows);
        }
        for column in (0..BLOCK).step_by(16) {
            last_pass::<R>(tables, scratch.add(column), values.add(column));
        }
    }
}

/// Runs four stages of the cyclic transform on each of 8 rows of 16 slots. `rows` receives the even columns of a row first.
///
/// # Safety
/// The conditions of [`inverse`] must hold; `values` and `rows` are valid for 128 words.
#[inline(always)]
unsafe fn first_pass(tables: &Tables, values: *const u32, rows: *mut u64) {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let lanes = Lanes52::new(tables.p);
        // Vector i has slots 2 i and 2 i + 1 of row k in the halves of lane k.
        let slots = transpose(load_rows(values.cast(), 8));
        let mut x = [_mm512_setzero_si512(); 16];
        for i in 0..8 {
            let offset = _mm512_set1_epi64(SLOT_OFFSETS[i] * i64::from(tables.p));
            x[2 * i] = _mm512_add_epi64(_mm512_maskz_mov_epi32(LOW_HALVES, slots[i]), offset);
            x[2 * i + 1] = _mm512_srli_epi64::<32>(slots[i]);
        }
        let roots = tables.inverse_root16.as_ptr();
        cyclic_stage::<1>(lanes, &mut x, roots);
        cyclic_stage::<2>(lanes, &mut x, roots);
        cyclic_stage::<4>(lanes, &mut x, roots);
        cyclic_stage::<8>(lanes, &mut x, roots);
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = x;
        store_rows(rows, 16, transpose([a, c, e, g, i, k, m, o]));
        store_rows(rows.add(8), 16, transpose([b, d, f, h, j, l, n, p]));
    }
}

/// Runs Cooley-Tukey butterflies of vectors `S` apart. Vector `j` of `2 S` is multiplied by the `-j`-th power of the
/// 2S-th root of unity, and not at all for `j = 0`.
#[inline(always)]
unsafe fn cyclic_stage<const S: usize>(lanes: Lanes52, x: &mut [__m512i; 16], roots: *const u64) {
    for k in 0..8 {
        let i = k / S;
        let j = k % S;
        let low = 2 * S * i + j;
        let high = 2 * S * i + j + S;
        let mut a = x[low];
        let mut b = x[high];
        // SAFETY: the caller has the instruction set; there are 8 roots.
        unsafe {
            if j == 0 {
                (a, b) = (_mm512_add_epi64(a, b), _mm512_sub_epi64(a, b));
            } else {
                lanes.butterfly_lazy(&mut a, &mut b, Twiddle::splat(roots.add(2 * (8 / S * j))));
            }
        }
        (x[low], x[high]) = (a, b);
    }
}

/// Runs the next four stages on the 16 rows of a block, and the twist, in place.
///
/// # Safety
/// The conditions of [`inverse`] must hold; `rows` is valid for 256 words.
#[inline(always)]
unsafe fn rows_pass<const R: usize>(tables: &Tables, block: usize, rows: *mut u64) {
    // SAFETY: the caller has the instruction set, and promises that the block is one of the transform.
    unsafe {
        let lanes = Lanes52::new(tables.p);
        let offset = _mm512_set1_epi64(block_offset(R, block) * i64::from(tables.p));
        let twist = tables.inverse_twist.as_ptr().add(block * BLOCK / 8 * LANE_TWIDDLE);
        for odd in 0..2 {
            let twiddles = tables.inverse_radix16.as_ptr().add(odd * RADIX16_TWIDDLES * LANE_TWIDDLE);
            let at = rows.add(8 * odd);
            let mut x: [__m512i; 16] = load_rows(at, 16);
            rows_stage::<1>(lanes, &mut x, twiddles);
            rows_stage::<2>(lanes, &mut x, twiddles);
            rows_stage::<4>(lanes, &mut x, twiddles);
            rows_stage::<8>(lanes, &mut x, twiddles);
            for (r, x) in x.iter_mut().enumerate() {
                let by = Twiddle::load(twist.add((2 * r + odd) * LANE_TWIDDLE));
                *x = lanes.mul_add_lazy(offset, *x, by);
            }
            store_rows(at, 16, x);
        }
    }
}

/// Runs Cooley-Tukey butterflies of rows `S` apart.
#[inline(always)]
unsafe fn rows_stage<const S: usize>(lanes: Lanes52, x: &mut [__m512i; 16], twiddles: *const u64) {
    for k in 0..8 {
        // Butterflies with the same multiplier come one after another.
        let j = k / (8 / S);
        let i = k % (8 / S);
        let (low, high) = x.split_at_mut(2 * S * i + S);
        // SAFETY: the caller has the instruction set, and a table of 15 lane twiddles.
        unsafe {
            let by = Twiddle::load(twiddles.add((S - 1 + j) * LANE_TWIDDLE));
            lanes.butterfly_lazy(&mut low[2 * S * i + j], &mut high[j], by);
        }
    }
}

/// Returns the multiple of p that is added to value `i` of `n` before Gentleman-Sande stages of `n` values; `n` is a power of two
/// up to 32.
///
/// A value is below (1 + 2^-12) p plus its offset. An odd value is subtracted at once, and so needs no offset. A value with `t`
/// trailing zeros becomes a sum of 2^t values before it is subtracted, and in the stages before has sums of up to
/// 2^(t-1) values subtracted from it. With these offsets, the largest of those sums is always smaller. For the 8
/// values 10, 0, 2, 0, 5, 0, 2, 0, the sums of the first four are in 12p..16p, those of the others in 7p..11p. The
/// largest sum, of all 32 values, is below 148 p.
const fn block_offset(n: usize, i: usize) -> i64 {
    const BY_TRAILING_ZEROS: [i64; 6] = [0, 2, 5, 10, 20, 40];
    let index = if i == 0 { n } else { i };
    BY_TRAILING_ZEROS[index.trailing_zeros() as usize]
}

/// Returns [`block_offset`] for all of `n` values, as a table: the compiler then unrolls the loops that use it.
const fn block_offsets(n: usize) -> [i64; 16] {
    let mut offsets = [0; 16];
    let mut i = 0;
    while i < n {
        offsets[i] = block_offset(n, i);
        i += 1;
    }
    offsets
}

/// Runs the last `log2 R` stages for 16 columns: coefficients `column + 256 r` for all `r`. The even ones come first, in place, so
/// that only the odd ones need registers.
///
/// # Safety
/// The conditions of [`inverse`] must hold; `scratch` is valid for 16 words at all multiples of `stride`, `values` of 256.
#[inline(always)]
unsafe fn last_pass<const R: usize>(tables: &Tables, scratch: *mut u64, values: *mut u32) {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let lanes = Lanes52::new(tables.p);
        if R <= 16 {
            store_rows(scratch, stride(R), across_blocks::<R>(tables, scratch));
            for (r, odd) in across_blocks::<R>(tables, scratch.add(8)).into_iter().enumerate() {
                let even = _mm512_loadu_si512(scratch.add(r * stride(R)).cast());
                _mm512_storeu_si512(values.add(r * BLOCK).cast(), lanes.pack(even, odd));
            }
        } else {
            across_32_blocks(tables, scratch);
            across_32_blocks(tables, scratch.add(8));
            for r in 0..R {
                let even = _mm512_loadu_si512(scratch.add(r * stride(R)).cast());
                let odd = _mm512_loadu_si512(scratch.add(r * stride(R) + 8).cast());
                _mm512_storeu_si512(values.add(r * BLOCK).cast(), lanes.pack(even, odd));
            }
        }
    }
}

/// Runs Gentleman-Sande stages on the values `stride` apart, to values below p (1 + 2^-12).
///
/// # Safety
/// The conditions of [`inverse`] must hold; `from` is valid for 8 words at all multiples of `stride`.
#[inline(always)]
unsafe fn across_blocks<const R: usize>(tables: &Tables, from: *const u64) -> [__m512i; R] {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let lanes = Lanes52::new(tables.p);
        let mut x: [__m512i; R] = load_rows(from, stride(R));
        blocks_stage::<R, R, 1>(tables, &mut x, 0);
        blocks_stage::<R, R, 2>(tables, &mut x, 0);
        if R > 4 {
            blocks_stage::<R, R, 4>(tables, &mut x, 0);
        }
        if R > 8 {
            blocks_stage::<R, R, 8>(tables, &mut x, 0);
        }
        // The other values are products, which are reduced already.
        for sum in &mut x[..R / 2] {
            *sum = lanes.reduce_lazy(*sum);
        }
        x
    }
}

/// Runs [`across_blocks`] for R = 32 in place. There are too few registers, so each half has four stages, and then both have
/// one.
///
/// # Safety
/// The conditions of [`across_blocks`] must hold.
#[inline(always)]
unsafe fn across_32_blocks(tables: &Tables, words: *mut u64) {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let lanes = Lanes52::new(tables.p);
        let second_half = words.add(16 * stride(32));
        store_rows(words, stride(32), half_of_32_blocks(tables, words, 0));
        let last = Twiddle::splat(tables.inverse_pairs.as_ptr().add(2));
        for (r, high) in half_of_32_blocks(tables, second_half, 16).into_iter().enumerate() {
            let low = _mm512_loadu_si512(words.add(r * stride(32)).cast());
            let sum = lanes.reduce_lazy(_mm512_add_epi64(low, high));
            let zero = _mm512_setzero_si512();
            let product = lanes.mul_add_lazy(zero, _mm512_sub_epi64(low, high), last);
            _mm512_storeu_si512(words.add(r * stride(32)).cast(), sum);
            _mm512_storeu_si512(second_half.add(r * stride(32)).cast(), product);
        }
    }
}

/// Runs the first four of five stages on 16 of 32 blocks, from block `first` on.
///
/// # Safety
/// The conditions of [`across_blocks`] must hold.
#[inline(always)]
unsafe fn half_of_32_blocks(tables: &Tables, from: *const u64, first: usize) -> [__m512i; 16] {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let mut x = load_rows(from, stride(32));
        blocks_stage::<32, 16, 1>(tables, &mut x, first);
        blocks_stage::<32, 16, 2>(tables, &mut x, first);
        blocks_stage::<32, 16, 4>(tables, &mut x, first);
        blocks_stage::<32, 16, 8>(tables, &mut x, first);
        x
    }
}

/// Runs Gentleman-Sande butterflies of vectors `S` apart, on `K` of the values of R blocks, from block `first` on.
///
/// # Safety
/// The CPU must have AVX-512 F and IFMA; the tables are for R.
#[inline(always)]
unsafe fn blocks_stage<const R: usize, const K: usize, const S: usize>(
    tables: &Tables,
    x: &mut [__m512i; K],
    first: usize,
) {
    for k in 0..K / 2 {
        let i = k / S;
        let j = k % S;
        let low = 2 * S * i + j;
        let high = 2 * S * i + j + S;
        let block = first / (2 * S) + i;
        // SAFETY: the caller promises so; there are R pairs.
        unsafe {
            let lanes = Lanes52::new(tables.p);
            let by = Twiddle::splat(tables.inverse_pairs.as_ptr().add(2 * (R / 2 / S + block)));
            let difference = _mm512_sub_epi64(x[low], x[high]);
            x[low] = _mm512_add_epi64(x[low], x[high]);
            // To the stages after this one, this is value `block` of R / 2S.
            let offset = const { block_offsets(R / (2 * S)) }[block];
            let offset = _mm512_set1_epi64(offset * i64::from(tables.p));
            x[high] = lanes.mul_add_lazy(offset, difference, by);
        }
    }
}
