//! (5) Plaintexts to evaluation form.

use rayon::prelude::*;

use super::{
    montgomery::Montgomery,
    tables::CpuRing,
    vectorise::{self, VectorLoop},
};
use crate::Cpu;

/// As [`hush_ops::contract::RingOps::ntt_db`], for whole plaintexts.
pub(super) fn ntt_db(cpu: &Cpu, ring: &CpuRing, symbols: &[u32]) -> Vec<u32> {
    let (kept, degree) = (&ring.kept, ring.kept.degree());
    let bits = ring.context().params().plaintext_bits();
    let mut words = vec![0; symbols.len() * kept.limbs().len()];
    cpu.install(|| {
        let plaintexts = symbols.par_chunks_exact(degree).zip(words.par_chunks_exact_mut(kept.words()));
        plaintexts.for_each(|(symbols, words)| {
            cpu.with_workspace(|workspace| {
                let (_, transform) = workspace.ring_buffers(0, degree);
                for (limb, residues) in kept.limbs().iter().zip(words.chunks_exact_mut(degree)) {
                    let montgomery = limb.montgomery;
                    vectorise::run(kept.level(), Lift { montgomery, bits, symbols, residues });
                    limb.ntt.forward(residues, transform);
                }
            });
        });
    });
    words
}

/// Symbols of `bits` bits, centred, modulo a prime. Higher bits of a symbol do not count.
struct Lift<'a> {
    montgomery: Montgomery,
    bits: u32,
    symbols: &'a [u32],
    residues: &'a mut [u32],
}

impl VectorLoop for Lift<'_> {
    #[inline(always)]
    fn run(self) {
        let m = self.montgomery;
        // Half of t is added and, as a residue, taken off.
        let (half, mask) = (1u32 << (self.bits - 1), u32::MAX >> (32 - self.bits));
        let one = m.form(1);
        let offset = m.mul(half, one);
        for (residue, &symbol) in self.residues.iter_mut().zip(self.symbols) {
            *residue = m.sub(m.mul((symbol ^ half) & mask, one), offset);
        }
    }
}
