//! Step (4): makes RLWE words a new byte database.

use hush_ops::{
    OpsError,
    contract::{LweOps, RLWE_POLYS, RingOps, RlweBatch, SentPoly},
    tiling::TiledDb,
};
use rayon::prelude::*;

use crate::{Cpu, CpuRing, ring::switched};

/// Computes [`hush_ops::contract::PackOps::reinterpret_rlwe`] for whole entries of `items` words.
pub(super) fn reinterpret_rlwe(
    cpu: &Cpu,
    ring: &CpuRing,
    packed: &RlweBatch,
    items: usize,
) -> Result<TiledDb, OpsError> {
    let bits = cpu.context(ring).params().response_bits();
    let coefficient_words = (bits.a + bits.b) / u32::BITS;
    let words = |ciphertext: &[u32]| -> Vec<u32> {
        let (a, b) = ciphertext.split_at(ciphertext.len() / RLWE_POLYS);
        let a = switched(cpu, ring, a, bits.a);
        let b = switched(cpu, ring, b, bits.b);
        let joined = a.into_iter().zip(b).map(|(a, b)| u128::from(a) | u128::from(b) << bits.a);
        joined
            .flat_map(|joined| (0..coefficient_words).map(move |word| (joined >> (32 * word)) as u32))
            .collect()
    };
    let ciphertexts = packed.words.par_chunks_exact(packed.ciphertext_words);
    let words: Vec<_> = cpu.install(|| ciphertexts.map(words).collect());
    cpu.reinterpret_lwe(&words.concat().into(), 1, items, size_of::<u32>())
}

hush_ops::footprint!(Cpu: ReinterpretRlwe, |step, batch| {
    batch * (step.count * SentPoly::answer_bytes(&step.ring) + step.db.bytes())
});
