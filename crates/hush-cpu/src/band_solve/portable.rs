//! Kernels in plain Rust, which the compiler vectorises for each level. The algorithm is above `solve` in `avx512`.

use hush_ops::symbol::Symbol;

use super::{
    panels::{BLOCK, Quad},
    substitute::{Group, Kernel, LANE},
};
use crate::lanes::{Lanes, VectorLoop};

/// Returns the kernel in the form compiled for the instruction set of `L`.
pub(super) const fn kernel<S: Symbol, L: Lanes>() -> Kernel<S> {
    Kernel { load: load_with::<S, L>, store, solve: solve_with::<S, L> }
}

/// # Safety
/// The CPU must have the instruction set of `L`.
unsafe fn load_with<S: Symbol, L: Lanes>(group: &mut Group<S>, place: usize, symbols: &[S], scale: S) {
    // SAFETY: the caller promises so.
    unsafe { L::enter(LoadSymbols { group, place, symbols, scale }) };
}

/// # Safety
/// The CPU must have the instruction set of `L`.
unsafe fn solve_with<S: Symbol, L: Lanes>(
    quads: &[Quad<S>],
    lower: bool,
    solved: &[Group<S>],
    group: &mut Group<S>,
) {
    // SAFETY: the caller promises so.
    unsafe { L::enter(SolveBlock { quads, lower, solved, group }) };
}

/// The operands of [`load`].
struct LoadSymbols<'a, S> {
    group: &'a mut Group<S>,
    place: usize,
    symbols: &'a [S],
    scale: S,
}

impl<S: Symbol> VectorLoop for LoadSymbols<'_, S> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        load(self.group, self.place, self.symbols, self.scale);
    }
}

/// The operands of [`solve`].
struct SolveBlock<'a, S> {
    quads: &'a [Quad<S>],
    lower: bool,
    solved: &'a [Group<S>],
    group: &'a mut Group<S>,
}

impl<S: Symbol> VectorLoop for SolveBlock<'_, S> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        solve(self.quads, self.lower, self.solved, self.group);
    }
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
