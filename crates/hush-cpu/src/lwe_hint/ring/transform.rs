//! Number-theoretic transforms of `WIDTH` polynomials at once, one a lane: every butterfly is vertical.
//!
//! ```text
//! forward:  x, y -> x + w y, x - w y        inverse:  x, y -> x + y, w (x - y)        mod p, lazily
//! ```
//!
//! Values are lazily reduced (Harvey, "Faster arithmetic for number-theoretic transforms"), for p < 2^30.

use std::ops::Range;

use hush_math::ntt::NttPlan;

use crate::lanes::Lanes;

/// Computes `a * w mod p` in `0..2p` for any `a`. `w_shoup` is the companion of `w`, and both are the same in all lanes.
///
/// # Safety
/// The conditions of the methods of [`Lanes`] must hold.
#[inline(always)]
pub(super) unsafe fn mul_shoup<L: Lanes>(
    a: L::Words,
    w: L::Words,
    w_shoup: L::Words,
    p: L::Words,
) -> L::Words {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let quotient = L::high(L::mul_splat(a, w_shoup));
        L::sub(L::mul_low(a, w), L::mul_low(quotient, p))
    }
}

/// Returns `x` or `x - bound`, the one that is in `0..bound`, for `x < 2 bound`.
///
/// # Safety
/// The conditions of the methods of [`Lanes`] must hold.
#[inline(always)]
pub(super) unsafe fn reduce_once<L: Lanes>(x: L::Words, bound: L::Words) -> L::Words {
    // SAFETY: the caller has the instruction set.
    unsafe { L::min(x, L::sub(x, bound)) }
}

/// The number of vectors whose stages are all done before those of the next ones: half of an L1 cache of AVX-512 vectors.
const PART: usize = 256;

/// Computes [`NttPlan::forward`] of `degree` vectors, from values below 4 p to values below 4 p.
///
/// # Safety
/// The conditions of the methods of [`Lanes`] must hold; `values` is valid for `degree * WIDTH` words.
#[inline(always)]
pub(super) unsafe fn forward<L: Lanes>(plan: &NttPlan, values: *mut u32) {
    let degree = plan.degree();
    let parts = plan.degree().div_ceil(PART);
    // SAFETY: the caller promises so; blocks are below `blocks`.
    unsafe {
        for blocks in powers(1, parts) {
            forward_stage::<L>(plan, values, blocks, 0..blocks);
        }
        for part in 0..parts {
            for blocks in powers(parts, degree) {
                let share = blocks / parts;
                forward_stage::<L>(plan, values, blocks, part * share..(part + 1) * share);
            }
        }
    }
}

/// Computes [`NttPlan::inverse`] of `degree` vectors without the factor 1/d, from values below 2 p to canonical ones.
///
/// # Safety
/// The conditions of the methods of [`Lanes`] must hold; `values` is valid for `degree * WIDTH` words.
#[inline(always)]
pub(super) unsafe fn inverse<L: Lanes>(plan: &NttPlan, values: *mut u32) {
    let degree = plan.degree();
    let parts = plan.degree().div_ceil(PART);
    // SAFETY: the caller promises so; blocks are below `blocks`.
    unsafe {
        for part in 0..parts {
            for blocks in powers(parts, degree).rev() {
                let share = blocks / parts;
                inverse_stage::<L>(plan, values, blocks, part * share..(part + 1) * share);
            }
        }
        for blocks in powers(1, parts).rev() {
            inverse_stage::<L>(plan, values, blocks, 0..blocks);
        }
        let modulus = L::splat(plan.modulus().value());
        for i in 0..degree {
            let at = values.add(i * L::WIDTH);
            L::store(at, reduce_once::<L>(L::load(at), modulus));
        }
    }
}

/// Returns the powers of two from `first`, a power of two, to below `end`.
#[inline(always)]
fn powers(first: usize, end: usize) -> impl DoubleEndedIterator<Item = usize> {
    (first.ilog2()..end.ilog2()).map(|log2| 1 << log2)
}

/// Runs some blocks of the forward stage that has `count` of them.
///
/// # Safety
/// The conditions of [`forward`] must hold; the blocks are below `count`.
#[inline(always)]
unsafe fn forward_stage<L: Lanes>(plan: &NttPlan, values: *mut u32, count: usize, blocks: Range<usize>) {
    let twiddles = plan.forward_twiddles();
    let p = plan.modulus().value();
    let half = plan.degree() / 2 / count;
    // SAFETY: the caller has the instruction set; all indices are below `degree`.
    unsafe {
        let modulus = L::splat(p);
        let twice = L::splat(2 * p);
        for block in blocks {
            let w = L::splat(twiddles.factors[count + block]);
            let w_shoup = L::splat(twiddles.shoup[count + block]);
            let low = values.add(2 * block * half * L::WIDTH);
            let high = low.add(half * L::WIDTH);
            for i in 0..half {
                let x = reduce_once::<L>(L::load(low.add(i * L::WIDTH)), twice);
                let y = mul_shoup::<L>(L::load(high.add(i * L::WIDTH)), w, w_shoup, modulus);
                L::store(low.add(i * L::WIDTH), L::add(x, y));
                L::store(high.add(i * L::WIDTH), L::add(L::sub(x, y), twice));
            }
        }
    }
}

/// Runs some blocks of the inverse stage that has `count` of them.
///
/// # Safety
/// The conditions of [`inverse`] must hold; the blocks are below `count`.
#[inline(always)]
unsafe fn inverse_stage<L: Lanes>(plan: &NttPlan, values: *mut u32, count: usize, blocks: Range<usize>) {
    let twiddles = plan.inverse_twiddles();
    let p = plan.modulus().value();
    let half = plan.degree() / 2 / count;
    // SAFETY: the caller has the instruction set; all indices are below `degree`.
    unsafe {
        let modulus = L::splat(p);
        let twice = L::splat(2 * p);
        for block in blocks {
            let w = L::splat(twiddles.factors[count + block]);
            let w_shoup = L::splat(twiddles.shoup[count + block]);
            let low = values.add(2 * block * half * L::WIDTH);
            let high = low.add(half * L::WIDTH);
            for i in 0..half {
                let x = L::load(low.add(i * L::WIDTH));
                let y = L::load(high.add(i * L::WIDTH));
                let difference = L::add(L::sub(x, y), twice);
                L::store(low.add(i * L::WIDTH), reduce_once::<L>(L::add(x, y), twice));
                L::store(high.add(i * L::WIDTH), mul_shoup::<L>(difference, w, w_shoup, modulus));
            }
        }
    }
}
