//! Polynomials modulo Q_1 to powers of two.

use rayon::prelude::*;

use super::tables::CpuRing;
use crate::Cpu;

/// As [`hush_ops::contract::RingOps::mod_switch`], for operands that fit together.
pub(super) fn mod_switch(cpu: &Cpu, ring: &CpuRing, polys: &[u32], bits: &[u32]) -> Vec<Vec<u64>> {
    let rns = ring.context().kept().rns();
    let degree = ring.kept.degree();
    let switch = |(words, &bits): (&[u32], &u32)| {
        let switch = Switch::new(rns.product(), bits);
        cpu.with_workspace(|workspace| {
            let (words_buffer, transform) = workspace.ring_buffers(words.len(), ring.kept.transform_words());
            words_buffer.copy_from_slice(words);
            for (limb, words) in ring.kept.limbs().iter().zip(words_buffer.chunks_exact_mut(degree)) {
                limb.ntt.inverse(words, transform);
            }
            let switched = |i| switch.apply(rns.lift(|limb| words_buffer[limb * degree + i]));
            (0..degree).map(switched).collect()
        })
    };
    cpu.install(|| polys.par_chunks_exact(ring.kept.words()).zip(bits).map(switch).collect())
}

/// `round(x 2^bits / Q) mod 2^bits`, half up, for x in `0..Q`.
struct Switch {
    product: u128,
    bits: u32,
    /// 2^bits / Q.
    factor: f64,
}

impl Switch {
    fn new(product: u128, bits: u32) -> Self {
        Self { product, bits, factor: 2f64.powi(bits as i32) / product as f64 }
    }

    fn apply(&self, x: u128) -> u64 {
        // Off by less than 2^-3 for up to 48 bits, so the quotient is off by at most 1, which the exact remainder
        // shows; that it is small makes it exact modulo 2^128.
        let estimate = (x as f64 * self.factor + 0.5) as u64;
        let rounded = (x << self.bits).wrapping_add(self.product / 2);
        let rest = rounded.wrapping_sub(self.product.wrapping_mul(u128::from(estimate))) as i128;
        let quotient = if rest < 0 {
            estimate - 1
        } else if rest >= self.product as i128 {
            estimate + 1
        } else {
            estimate
        };
        quotient & (u64::MAX >> (64 - self.bits))
    }
}
