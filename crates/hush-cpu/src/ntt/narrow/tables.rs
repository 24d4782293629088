//! The multipliers of the passes.

use hush_math::ntt::{NttPlan, Twiddles};

use super::arithmetic::Multipliers;
use crate::buffer::AlignedBuffer;

/// Tables of one modulus, degree and vector width W. A multiplier comes with its companion: see [`Multipliers::pair`].
pub(super) struct Tables {
    pub(super) p: u32,
    pub(super) degree: usize,
    pub(super) forward: Stages,
    /// The inverse multipliers without the factor 1/N, and without the last stage.
    pub(super) inverse: Stages,
    /// The multiplier 1/N.
    pub(super) scale: [u32; 2],
    /// The multiplier of the last inverse stage, times 1/N.
    pub(super) scaled_root: [u32; 2],
}

/// The multipliers of one direction.
pub(super) struct Stages {
    /// The pairs: number `m + i` for block `i` of the stage with `m` blocks, `m < N / W`.
    pub(super) pairs: Vec<[u32; 2]>,
    /// For each square of W blocks of W, and `m = 1, 2, .. W / 2`, and `i < m`: a multiplier for each block, and then
    /// the companions.
    pub(super) squares: AlignedBuffer<u32>,
}

impl Tables {
    pub(super) fn new<A: Multipliers>(plan: &NttPlan, width: usize) -> Self {
        let modulus = plan.modulus();
        let scale = plan.inverse_scale().0;
        Self {
            p: modulus.value(),
            degree: plan.degree(),
            forward: Stages::new::<A>(plan, width, plan.forward_twiddles()),
            inverse: Stages::new::<A>(plan, width, plan.inverse_twiddles()),
            scale: A::pair(modulus, scale),
            scaled_root: A::pair(modulus, modulus.mul(scale, plan.inverse_twiddles().factors[1])),
        }
    }
}

impl Stages {
    fn new<A: Multipliers>(plan: &NttPlan, width: usize, twiddles: &Twiddles) -> Self {
        let blocks = plan.degree() / width;
        let pair = |index: usize| A::pair(plan.modulus(), twiddles.factors[index]);
        let mut squares = AlignedBuffer::zeroed(blocks / width * (width - 1) * 2 * width);
        for (index, vectors) in squares.chunks_exact_mut(2 * width).enumerate() {
            let square = index / (width - 1);
            let q = index % (width - 1);
            let m = 1 << (q + 1).ilog2();
            for lane in 0..width {
                let [w, companion] = pair((blocks + square * width + lane) * m + q + 1 - m);
                (vectors[lane], vectors[width + lane]) = (w, companion);
            }
        }
        Self { pairs: (0..blocks).map(pair).collect(), squares }
    }
}
