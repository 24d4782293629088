//! The multipliers of the passes, in the order in which the passes read them.

use hush_math::{modulus::Modulus, ntt::NttPlan};

use super::{BLOCK, arithmetic::shoup52};
use crate::buffer::AlignedBuffer;

/// The number of words of eight multipliers and their companions.
pub(super) const LANE_TWIDDLE: usize = 16;
/// The number of multipliers of four stages on 16 values: 1 + 2 + 4 + 8.
pub(super) const RADIX16_TWIDDLES: usize = 15;

/// Tables of one modulus and degree. A "pair" is a multiplier and its companion, which a kernel loads into all lanes. A
/// "lane twiddle" is eight multipliers and then their companions.
pub(super) struct Tables {
    pub(super) p: u32,
    /// The radix N / 256 of the passes that cross blocks of 256.
    pub(super) radix: usize,
    /// Forward stages: pair `m + i` for block `i` of the stage with `m` blocks, `m < N / 16`.
    pub(super) forward_pairs: AlignedBuffer<u64>,
    /// Last four forward stages: 15 lane twiddles for each group of 8 blocks of 16; lane `k` is for block `k`.
    pub(super) forward_lanes: AlignedBuffer<u64>,
    /// First inverse stages: pair `j` is the `-j`-th power of the 16th root of unity, `j < 8`.
    pub(super) inverse_root16: AlignedBuffer<u64>,
    /// Inverse stages 5 to 8: 15 lane twiddles for the even columns of 16, then 15 for the odd ones.
    pub(super) inverse_radix16: AlignedBuffer<u64>,
    /// The twist after inverse stage 8: psi^(-e j) / N for coefficient j of block b, where e = 2 reverse(b) + 1. For each
    /// row of 16 coefficients there is a lane twiddle for the even columns and one for the odd ones.
    pub(super) inverse_twist: AlignedBuffer<u64>,
    /// Last inverse stages: pair `m + i` for block `i` of the stage with `m` blocks, `m < N / 256`.
    pub(super) inverse_pairs: AlignedBuffer<u64>,
}

impl Tables {
    pub(super) fn new(plan: &NttPlan) -> Self {
        let modulus = plan.modulus();
        let degree = plan.degree();
        let radix = degree / BLOCK;
        let psi_inverse = modulus.inverse(modulus.primitive_root(2 * degree));
        let root256_inverse = modulus.pow(psi_inverse, (2 * radix) as u64);
        Self {
            p: modulus.value(),
            radix,
            forward_pairs: pairs(modulus, degree / 16, |i| plan.forward_twiddles().factors[i]),
            forward_lanes: forward_lanes(plan),
            inverse_root16: pairs(modulus, 8, |j| modulus.pow(root256_inverse, 16 * j as u64)),
            inverse_radix16: inverse_radix16(modulus, root256_inverse),
            inverse_twist: inverse_twist(plan, psi_inverse),
            inverse_pairs: pairs(modulus, radix, |i| plan.inverse_twiddles().factors[i]),
        }
    }
}

fn pairs(modulus: Modulus, count: usize, factor: impl Fn(usize) -> u32) -> AlignedBuffer<u64> {
    let mut table = AlignedBuffer::zeroed(2 * count);
    for (i, pair) in table.chunks_exact_mut(2).enumerate() {
        let w = factor(i);
        pair.copy_from_slice(&[u64::from(w), shoup52(modulus, w)]);
    }
    table
}

/// Creates `count` lane twiddles; `factor(i, lane)` is a multiplier of the `i`-th.
fn lane_twiddles(modulus: Modulus, count: usize, factor: impl Fn(usize, usize) -> u32) -> AlignedBuffer<u64> {
    let mut table = AlignedBuffer::zeroed(LANE_TWIDDLE * count);
    for (i, vectors) in table.chunks_exact_mut(LANE_TWIDDLE).enumerate() {
        let (factors, companions) = vectors.split_at_mut(LANE_TWIDDLE / 2);
        for (lane, (w, companion)) in factors.iter_mut().zip(companions).enumerate() {
            *w = u64::from(factor(i, lane));
            *companion = shoup52(modulus, factor(i, lane));
        }
    }
    table
}

/// Returns for the `q`-th of 15 multipliers, its stage of `m` values and its index in it, `i < m`.
fn stage_of(q: usize) -> (usize, usize) {
    let m = 1 << (q + 1).ilog2();
    (m, q + 1 - m)
}

fn forward_lanes(plan: &NttPlan) -> AlignedBuffer<u64> {
    let blocks = plan.degree() / 16;
    lane_twiddles(plan.modulus(), blocks / 8 * RADIX16_TWIDDLES, |index, lane| {
        let (m, i) = stage_of(index % RADIX16_TWIDDLES);
        let block = index / RADIX16_TWIDDLES * 8 + lane;
        plan.forward_twiddles().factors[(blocks + block) * m + i]
    })
}

fn inverse_radix16(modulus: Modulus, root256_inverse: u32) -> AlignedBuffer<u64> {
    lane_twiddles(modulus, 2 * RADIX16_TWIDDLES, |index, lane| {
        let (stage, row) = stage_of(index % RADIX16_TWIDDLES);
        let column = 2 * lane + index / RADIX16_TWIDDLES;
        modulus.pow(root256_inverse, ((16 * row + column) * (8 / stage)) as u64)
    })
}

fn inverse_twist(plan: &NttPlan, psi_inverse: u32) -> AlignedBuffer<u64> {
    let modulus = plan.modulus();
    let degree = plan.degree();
    let blocks = degree / BLOCK;
    let powers: Vec<u32> =
        std::iter::successors(Some(plan.inverse_scale().0), |&power| Some(modulus.mul(power, psi_inverse)))
            .take(2 * degree)
            .collect();
    lane_twiddles(modulus, degree / 8, |index, lane| {
        let row = index / 2;
        let odd = index % 2;
        let block = row / 16;
        let exponent = 2 * (block.reverse_bits() >> (usize::BITS - blocks.trailing_zeros())) + 1;
        let coefficient = row % 16 * 16 + 2 * lane + odd;
        powers[exponent * coefficient % (2 * degree)]
    })
}
