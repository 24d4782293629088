//! The kernel in plain Rust, which the compiler vectorises for SSE2 or AVX2. A group is four lanes, one a slot.

use super::{
    panels::{BLOCK, Quad},
    substitute::{Group, Kernel, LANE},
};

/// Plain Rust.
pub(super) const SCALAR: Kernel = Kernel { load, store, solve };

/// The same code with AVX2.
pub(super) const AVX2: Kernel = Kernel { load: load_avx2, store, solve: solve_avx2 };

type Lanes = [[u8; LANE]; BLOCK];

fn lanes(group: &Group) -> &Lanes {
    group.0.as_chunks().0.try_into().expect("a group is four lanes")
}

fn lanes_mut(group: &mut Group) -> &mut Lanes {
    group.0.as_chunks_mut().0.try_into().expect("a group is four lanes")
}

#[target_feature(enable = "avx2")]
fn load_avx2(group: &mut Group, place: usize, bytes: &[u8], scale: u8) {
    load(group, place, bytes, scale);
}

#[target_feature(enable = "avx2")]
fn solve_avx2(quads: &[Quad], lower: bool, solved: &[Group], group: &mut Group) {
    solve(quads, lower, solved, group);
}

#[inline(always)]
fn load(group: &mut Group, place: usize, bytes: &[u8], scale: u8) {
    for (target, byte) in lanes_mut(group)[place].iter_mut().zip(bytes) {
        *target = byte.wrapping_mul(scale);
    }
}

fn store(group: &Group, place: usize, bytes: &mut [u8]) {
    bytes.copy_from_slice(&lanes(group)[place][..bytes.len()]);
}

#[inline(always)]
fn solve(quads: &[Quad], lower: bool, solved: &[Group], group: &mut Group) {
    let (near, far) = quads.split_first().expect("a block has its diagonal group");
    for step in 0..BLOCK {
        let row = if lower { step } else { BLOCK - 1 - step };
        let mut sum = [0; LANE];
        for (quad, solved) in far.iter().zip(solved.iter().rev()) {
            add_products(&mut sum, quad[row], lanes(solved));
        }
        // Rows of this block that are not solved yet meet zeros.
        add_products(&mut sum, near[row], lanes(group));
        for (target, sum) in lanes_mut(group)[row].iter_mut().zip(sum) {
            *target = target.wrapping_sub(sum);
        }
    }
}

#[inline(always)]
fn add_products(sum: &mut [u8; LANE], coeffs: u32, lanes: &Lanes) {
    for (coeff, lane) in coeffs.to_le_bytes().into_iter().zip(lanes) {
        for (sum, byte) in sum.iter_mut().zip(lane) {
            *sum = byte.wrapping_mul(coeff).wrapping_add(*sum);
        }
    }
}
