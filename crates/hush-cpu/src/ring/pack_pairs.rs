//! The step that packs two ciphertexts into one mask and two bodies.

use hush_ops::{
    contract::{BatchWords, RlweBatch, SentPoly},
    steps::poly_bytes,
};
use rayon::prelude::*;

use super::{
    gadget::{gadget_product, gadget_rows::GadgetRows, scratch::Scratch},
    keys::CpuKeys,
    tables::{CpuRing, GadgetTables},
};
use crate::{Cpu, workspace::Workspace};

/// Computes [`hush_ops::contract::RingOps::pack_pairs`] for operands that fit together. Runs in parallel over queries and pairs.
///
/// # Panics
/// If the set does not pack pairs.
pub(super) fn pack_pairs(
    cpu: &Cpu,
    ring: &CpuRing,
    keys: &[&CpuKeys],
    batches: &[&RlweBatch],
    pairs: usize,
) -> Vec<BatchWords> {
    let poly = ring.kept.words();
    let mut packed: Vec<Vec<u32>> = batches.iter().map(|_| vec![0; pairs * 3 * poly]).collect();
    let gadget = ring.pack.as_ref().expect("the set packs pairs");
    let mut jobs = Vec::with_capacity(batches.len() * pairs);
    for ((batch, keys), packed) in batches.iter().zip(keys).zip(&mut packed) {
        let rows = keys.pack().expect("the set packs pairs");
        for (pair, out) in packed.chunks_exact_mut(3 * poly).enumerate() {
            let ciphertexts = [2 * pair, 2 * pair + 1].map(|index| batch.ciphertext(index).split_at(poly));
            jobs.push(Pair { ring, gadget, rows, ciphertexts, out });
        }
    }
    cpu.install(|| {
        jobs.into_par_iter().for_each(|pair| cpu.with_workspace(|workspace| pair.pack(workspace)));
    });
    packed.into_iter().map(BatchWords::from).collect()
}

/// A unit of work: one pair of ciphertexts.
struct Pair<'a> {
    ring: &'a CpuRing,
    gadget: &'a GadgetTables,
    rows: GadgetRows<'a>,
    /// The halves a, b of both ciphertexts.
    ciphertexts: [(&'a [u32], &'a [u32]); 2],
    /// The result: three polynomials, initially zeros.
    out: &'a mut [u32],
}

impl Pair<'_> {
    fn pack(self, workspace: &mut Workspace) {
        let kept = &self.ring.kept;
        let gadget = self.gadget;
        let (mut scratch, _) = Scratch::new(workspace, kept, 2 * gadget.digits, 0);
        let bodies = self.out[kept.words()..].chunks_exact_mut(kept.words());
        for ((index, (a, b)), body) in self.ciphertexts.into_iter().enumerate().zip(bodies) {
            body.copy_from_slice(b);
            scratch.coefficients.copy_from_slice(a);
            gadget_product::decompose(kept, gadget, &mut scratch, index * gadget.digits);
        }
        gadget_product::multiply_add(kept, self.rows, gadget.half, &mut scratch, self.out);
    }
}

hush_ops::footprint!(Cpu: Respond, |step, batch| {
    // Three polynomials of each pair, and the answer in parts and as a whole.
    let packed = 3 * step.pairs() * poly_bytes(&step.ring);
    let answer = step.plaintexts * SentPoly::answer_bytes(&step.ring);
    batch * (packed + 2 * answer)
});
