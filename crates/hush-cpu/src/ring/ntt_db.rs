//! (5) Plaintexts to evaluation form.

use hush_math::modulus::Modulus;
use rayon::prelude::*;

use super::{
    montgomery::Montgomery,
    residues::Residues,
    tables::CpuRing,
    vector_loop::{self, VectorLoop},
    wide_lanes::WideLanes,
};
use crate::{Cpu, buffer};

/// As [`hush_ops::contract::RingOps::ntt_db`], for whole plaintexts.
pub(super) fn ntt_db(cpu: &Cpu, ring: &CpuRing, symbols: &[u32]) -> Vec<u32> {
    let (kept, degree) = (&ring.kept, ring.kept.degree());
    let bits = ring.context().params().plaintext_bits();
    let mut words = buffer::zeroed_vec(symbols.len() * kept.limbs().len());
    cpu.install(|| {
        let plaintexts = symbols.par_chunks_exact(degree).zip(words.par_chunks_exact_mut(kept.words()));
        plaintexts.for_each(|(symbols, words)| {
            cpu.with_workspace(|workspace| {
                let (_, transform) = workspace.ring_buffers(0, kept.transform_words());
                for (limb, residues) in kept.limbs().iter().zip(words.chunks_exact_mut(degree)) {
                    let modulus = limb.ntt.plan().modulus();
                    vector_loop::run(kept.level(), Lift { modulus, bits, symbols, residues });
                    limb.ntt.forward(residues, transform);
                }
            });
        });
    });
    words
}

/// Symbols of `bits` bits, centred, modulo a prime. Higher bits of a symbol do not count.
struct Lift<'a> {
    modulus: Modulus,
    bits: u32,
    symbols: &'a [u32],
    residues: &'a mut [u32],
}

impl VectorLoop for Lift<'_> {
    #[inline(always)]
    unsafe fn run<L: WideLanes>(self) {
        let montgomery = Montgomery::new(self.modulus);
        // Half of t is added and, as a residue, taken off. In between, the bits that do not count are shifted out; the
        // factor shifts back.
        let half = 1u32 << (self.bits - 1);
        let shift = 1u32 << (32 - self.bits);
        let factor = montgomery.form(self.modulus.inverse(self.modulus.reduce(u64::from(shift))));
        let offset = self.modulus.reduce(u64::from(half));
        let symbols = self.symbols.chunks_exact(L::WIDTH);
        for (to, symbols) in self.residues.chunks_exact_mut(L::WIDTH).zip(symbols) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let residues = Residues::<L>::new(montgomery);
                let positive = L::add(L::load(symbols.as_ptr()), L::splat(half));
                let shifted = L::mul_low(positive, L::splat(shift));
                let lifted = residues.mul(shifted, L::splat(factor));
                L::store(to.as_mut_ptr(), residues.sub(lifted, L::splat(offset)));
            }
        }
    }
}
