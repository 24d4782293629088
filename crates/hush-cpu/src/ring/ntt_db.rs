//! Step (5): transforms plaintexts to evaluation form.

use rayon::prelude::*;

use super::{lift::Lift, tables::CpuRing};
use crate::{Cpu, buffer};

/// Computes [`hush_ops::contract::RingOps::ntt_db`] for whole plaintexts.
pub(super) fn ntt_db(cpu: &Cpu, ring: &CpuRing, symbols: &[u32]) -> Vec<u32> {
    let kept = &ring.kept;
    let degree = ring.kept.degree();
    let lift = Lift::symbols(ring.context().params().plaintext_bits());
    let mut words = buffer::zeroed_vec(symbols.len() * kept.limbs().len());
    cpu.install(|| {
        let plaintexts = symbols.par_chunks_exact(degree).zip(words.par_chunks_exact_mut(kept.words()));
        plaintexts.for_each(|(symbols, words)| {
            cpu.with_workspace(|workspace| {
                let (_, transform) = workspace.ring_buffers(0, kept.transform_words());
                for (limb, residues) in kept.limbs().iter().zip(words.chunks_exact_mut(degree)) {
                    lift.apply(kept.level(), limb, symbols, residues);
                    limb.ntt.forward(residues, transform);
                }
            });
        });
    });
    words
}
