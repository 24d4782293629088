//! The order of the butterflies, which all arithmetics and widths share.
//!
//! ```text
//! forward:  for half = N/2 down to W:  x, y -> x + w y, x - w y     (vectors half apart)
//!           for every square of W x W words:  transpose, log2 W stages, finish, transpose back
//! inverse:  the same stages in reverse, x, y -> x + y, w (x - y); the last one multiplies by 1/N as well
//! ```

use super::{
    arithmetic::{Arithmetic, Field, Twiddle},
    tables::Tables,
};
use crate::lanes::Lanes;

/// Computes [`hush_math::ntt::NttPlan::forward`].
///
/// # Safety
/// The CPU must have the instruction set of `L`; the tables are for `A`, `W` and the length of `values`.
#[inline(always)]
pub(super) unsafe fn forward<L: Lanes, A: Arithmetic, const W: usize>(tables: &Tables, values: &mut [u32]) {
    debug_assert_eq!(values.len(), tables.degree);
    // SAFETY: the caller has the instruction set; halves of blocks are whole vectors.
    unsafe {
        let field = Field::<L>::new(tables.p);
        let mut blocks = 1;
        let mut half = tables.degree / 2;
        while half >= W {
            for (block, &pair) in
                values.chunks_exact_mut(2 * half).zip(&tables.forward.pairs[blocks..2 * blocks])
            {
                let by = Twiddle::splat(pair);
                for_pairs::<L, W>(block, |x, y| A::forward(field, x, y, by));
            }
            blocks *= 2;
            half /= 2;
        }
        let squares = tables.forward.squares.chunks_exact((W - 1) * 2 * W);
        for (square, twiddles) in values.chunks_exact_mut(W * W).zip(squares) {
            let mut x = load::<L, W>(square);
            L::transpose(&mut x);
            forward_stage::<L, A, W, 1>(field, &mut x, twiddles);
            forward_stage::<L, A, W, 2>(field, &mut x, twiddles);
            forward_stage::<L, A, W, 4>(field, &mut x, twiddles);
            if W > 8 {
                forward_stage::<L, A, W, 8>(field, &mut x, twiddles);
            }
            for x in &mut x {
                *x = A::finish(field, *x);
            }
            L::transpose(&mut x);
            store::<L, W>(square, x);
        }
    }
}

/// Computes [`hush_math::ntt::NttPlan::inverse`].
///
/// # Safety
/// The conditions of [`forward`] must hold.
#[inline(always)]
pub(super) unsafe fn inverse<L: Lanes, A: Arithmetic, const W: usize>(tables: &Tables, values: &mut [u32]) {
    debug_assert_eq!(values.len(), tables.degree);
    // SAFETY: the caller has the instruction set; halves of blocks are whole vectors.
    unsafe {
        let field = Field::<L>::new(tables.p);
        let squares = tables.inverse.squares.chunks_exact((W - 1) * 2 * W);
        for (square, twiddles) in values.chunks_exact_mut(W * W).zip(squares) {
            let mut x = load::<L, W>(square);
            L::transpose(&mut x);
            if W > 8 {
                inverse_stage::<L, A, W, 8>(field, &mut x, twiddles);
            }
            inverse_stage::<L, A, W, 4>(field, &mut x, twiddles);
            inverse_stage::<L, A, W, 2>(field, &mut x, twiddles);
            inverse_stage::<L, A, W, 1>(field, &mut x, twiddles);
            L::transpose(&mut x);
            store::<L, W>(square, x);
        }
        let mut blocks = tables.degree / (2 * W);
        let mut half = W;
        while blocks > 1 {
            for (block, &pair) in
                values.chunks_exact_mut(2 * half).zip(&tables.inverse.pairs[blocks..2 * blocks])
            {
                let by = Twiddle::splat(pair);
                for_pairs::<L, W>(block, |x, y| A::inverse(field, x, y, by));
            }
            blocks /= 2;
            half *= 2;
        }
        let scale = Twiddle::splat(tables.scale);
        let root = Twiddle::splat(tables.scaled_root);
        for_pairs::<L, W>(values, |x, y| A::finish_inverse(field, x, y, scale, root));
    }
}

/// Replaces pairs of vectors, one from each half of `block`.
///
/// # Safety
/// The CPU must have the instruction set of `L`; the halves are whole vectors.
#[inline(always)]
unsafe fn for_pairs<L: Lanes, const W: usize>(
    block: &mut [u32],
    butterfly: impl Fn(L::Words, L::Words) -> [L::Words; 2],
) {
    let half = block.len() / 2;
    let (low, high) = block.split_at_mut(half);
    for (x, y) in low.chunks_exact_mut(W).zip(high.chunks_exact_mut(W)) {
        // SAFETY: the caller has the instruction set; the chunks are vectors.
        unsafe {
            let [sum, difference] = butterfly(L::load(x.as_ptr()), L::load(y.as_ptr()));
            L::store(x.as_mut_ptr(), sum);
            L::store(y.as_mut_ptr(), difference);
        }
    }
}

/// Runs the forward stage of `M` blocks in a transposed square.
///
/// # Safety
/// The CPU must have the instruction set of `L`; `twiddles` are those of a square.
#[inline(always)]
unsafe fn forward_stage<L: Lanes, A: Arithmetic, const W: usize, const M: usize>(
    field: Field<L>,
    x: &mut [L::Words; W],
    twiddles: &[u32],
) {
    // SAFETY: the caller promises so.
    unsafe {
        for_square::<L, W, M>(x, twiddles, 0, |x, y, by| A::forward(field, x, y, by));
        for_square::<L, W, M>(x, twiddles, W / 4, |x, y, by| A::forward(field, x, y, by));
    }
}

/// Runs the inverse stage of `M` blocks in a transposed square.
///
/// # Safety
/// The CPU must have the instruction set of `L`; `twiddles` are those of a square.
#[inline(always)]
unsafe fn inverse_stage<L: Lanes, A: Arithmetic, const W: usize, const M: usize>(
    field: Field<L>,
    x: &mut [L::Words; W],
    twiddles: &[u32],
) {
    // SAFETY: the caller promises so.
    unsafe {
        for_square::<L, W, M>(x, twiddles, 0, |x, y, by| A::inverse(field, x, y, by));
        for_square::<L, W, M>(x, twiddles, W / 4, |x, y, by| A::inverse(field, x, y, by));
    }
}

/// Replaces pairs of vectors of a transposed square in the stage of `M` blocks: half of all pairs, from `first` on. The
/// compiler unrolls a loop of that length, but not always one over all.
///
/// # Safety
/// The conditions of [`forward_stage`] must hold.
#[inline(always)]
unsafe fn for_square<L: Lanes, const W: usize, const M: usize>(
    x: &mut [L::Words; W],
    twiddles: &[u32],
    first: usize,
    butterfly: impl Fn(L::Words, L::Words, Twiddle<L>) -> [L::Words; 2],
) {
    let half = W / 2 / M;
    for k in first..first + W / 4 {
        let i = k / half;
        let j = k % half;
        let low = 2 * half * i + j;
        let high = 2 * half * i + j + half;
        // SAFETY: the caller promises so.
        let by = unsafe { Twiddle::load(twiddles.as_ptr().add((M - 1 + i) * 2 * W)) };
        [x[low], x[high]] = butterfly(x[low], x[high], by);
    }
}

/// # Safety
/// The CPU must have the instruction set of `L`; the square has `W * W` words.
#[inline(always)]
unsafe fn load<L: Lanes, const W: usize>(square: &[u32]) -> [L::Words; W] {
    debug_assert_eq!(square.len(), W * W);
    // SAFETY: the caller promises so.
    unsafe {
        let mut rows = [L::splat(0); W];
        for (r, row) in rows.iter_mut().enumerate() {
            *row = L::load(square.as_ptr().add(r * W));
        }
        rows
    }
}

/// # Safety
/// The conditions of [`load`] must hold.
#[inline(always)]
unsafe fn store<L: Lanes, const W: usize>(square: &mut [u32], rows: [L::Words; W]) {
    debug_assert_eq!(square.len(), W * W);
    for (r, row) in rows.into_iter().enumerate() {
        // SAFETY: the caller promises so.
        unsafe { L::store(square.as_mut_ptr().add(r * W), row) };
    }
}
