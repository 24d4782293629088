//! Kernels in plain Rust, which the compiler vectorises for each level. The algorithm is above `solve` in `avx512`.

use hush_ops::symbol::Symbol;

use super::{
    panels::{BLOCK, Quad},
    substitute::{Group, Kernel, LANE},
};

pub(super) const BYTES_SCALAR: Kernel<u8> = Kernel { load, store, solve };
pub(super) const BYTES_AVX2: Kernel<u8> = Kernel { load: load_avx2, store, solve: solve_avx2 };
pub(super) const WORDS_SCALAR: Kernel<u32> = Kernel { load, store, solve };
pub(super) const WORDS_AVX2: Kernel<u32> = Kernel { load: load_avx2, store, solve: solve_avx2 };
pub(super) const WORDS_AVX512: Kernel<u32> = Kernel { load: load_avx512, store, solve: solve_avx512 };

#[target_feature(enable = "avx2")]
fn load_avx2<S: Symbol>(group: &mut Group<S>, place: usize, symbols: &[S], scale: S) {
    load(group, place, symbols, scale);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load_avx512<S: Symbol>(group: &mut Group<S>, place: usize, symbols: &[S], scale: S) {
    load(group, place, symbols, scale);
}

#[target_feature(enable = "avx2")]
fn solve_avx2<S: Symbol>(quads: &[Quad<S>], lower: bool, solved: &[Group<S>], group: &mut Group<S>) {
    solve(quads, lower, solved, group);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn solve_avx512<S: Symbol>(quads: &[Quad<S>], lower: bool, solved: &[Group<S>], group: &mut Group<S>) {
    solve(quads, lower, solved, group);
}

#[inline(always)]
fn load<S: Symbol>(group: &mut Group<S>, place: usize, symbols: &[S], scale: S) {
    for (target, symbol) in group.0[place].iter_mut().zip(symbols) {
        *target = symbol.wrapping_mul(scale);
    }
}

fn store<S: Symbol>(group: &Group<S>, place: usize, symbols: &mut [S]) {
    symbols.copy_from_slice(&group.0[place][..symbols.len()]);
}

#[inline(always)]
fn solve<S: Symbol>(quads: &[Quad<S>], lower: bool, solved: &[Group<S>], group: &mut Group<S>) {
    let (near, far) = quads.split_first().expect("a block has its diagonal group");
    let mut sums = [[S::default(); LANE]; BLOCK];
    for (quad, solved) in far.iter().zip(solved.iter().rev()) {
        for (sum, coeffs) in sums.iter_mut().zip(quad) {
            add_products(sum, coeffs, solved);
        }
    }
    for step in 0..BLOCK {
        let row = if lower { step } else { BLOCK - 1 - step };
        // Unsolved rows of this block meet zeros.
        add_products(&mut sums[row], &near[row], group);
        for (target, sum) in group.0[row].iter_mut().zip(&sums[row]) {
            *target = target.wrapping_sub(*sum);
        }
    }
}

/// Adds all four products at once, so that a sum is read and written only once.
#[inline(always)]
fn add_products<S: Symbol>(sum: &mut [S; LANE], coeffs: &[S; BLOCK], group: &Group<S>) {
    let Group([first, second, third, fourth]) = group;
    for at in 0..LANE {
        let low = first[at].wrapping_mul(coeffs[0]).wrapping_add(second[at].wrapping_mul(coeffs[1]));
        let high = third[at].wrapping_mul(coeffs[2]).wrapping_add(fourth[at].wrapping_mul(coeffs[3]));
        sum[at] = sum[at].wrapping_add(low.wrapping_add(high));
    }
}
