//! Step (3), the half of a packing that has no secret in it: the folded words themselves, on top of the folded hint.

use std::ops::Range;

use hush_ops::{
    contract::{LweBatch, RlweBatch},
    pack_shape::PackShape,
};
use rayon::prelude::*;

use crate::{
    Cpu, CpuRing,
    ring::{self, Lift, Limb},
    workspace::Workspace,
};

/// Adds `(0, Delta G)` to the ciphertexts of all queries and columns, where G has a column's rounded words as
/// coefficients. Runs in parallel over queries, columns and limbs.
pub(super) fn add_folded(
    cpu: &Cpu,
    ring: &CpuRing,
    folded: &LweBatch,
    shape: &PackShape,
    columns: Range<usize>,
    packed: &mut [RlweBatch],
) {
    let kept = &ring.kept;
    let base = ring.context().kept();
    let lift = Lift::words(ring.context().params().plaintext_bits());
    let delta: Vec<u32> =
        (0..base.limbs()).map(|limb| base.rns().reduce(ring.context().delta(), limb)).collect();
    let mut jobs = Vec::with_capacity(packed.len() * columns.len() * base.limbs());
    for (packed, words) in packed.iter_mut().zip(folded.words.chunks_exact(folded.rows)) {
        for (column, ciphertext) in columns.clone().zip(packed.words.chunks_exact_mut(2 * kept.words())) {
            let words = &words[shape.plaintext_rows(column)];
            let limbs = kept.limbs().iter().zip(&delta);
            for ((limb, &delta), b) in limbs.zip(ciphertext[kept.words()..].chunks_exact_mut(kept.degree())) {
                jobs.push(Job { limb, delta, words, b });
            }
        }
    }
    cpu.install(|| {
        jobs.into_par_iter().for_each(|job| {
            cpu.with_workspace(|workspace| job.run(ring, lift, workspace));
        });
    });
}

/// A unit of work: one column of one query modulo one limb.
struct Job<'a> {
    limb: &'a Limb,
    delta: u32,
    /// The words of the column, at most N.
    words: &'a [u32],
    b: &'a mut [u32],
}

impl Job<'_> {
    fn run(self, ring: &CpuRing, lift: Lift, workspace: &mut Workspace) {
        let kept = &ring.kept;
        let degree = ring.kept.degree();
        let (buffer, transform) = workspace.ring_buffers(2 * degree, kept.transform_words());
        let (padded, g) = buffer.split_at_mut(degree);
        let words = if self.words.len() == degree {
            self.words
        } else {
            let (words, rest) = padded.split_at_mut(self.words.len());
            words.copy_from_slice(self.words);
            rest.fill(0);
            padded
        };
        lift.apply(kept.level(), self.limb, words, g);
        self.limb.ntt.forward(g, transform);
        ring::add_scaled(kept.level(), self.limb, self.delta, g, self.b);
    }
}
