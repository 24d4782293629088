//! (7h) Fold the entries to one, with a single RGSW ciphertext.
//!
//! The entries stay in coefficient form: there, the products of their spectrum with powers of X are rotations, digits need no
//! inverse transform, and of all terms only the last one is transformed at all. So an external product takes `2 limbs (1 + l)`
//! transforms, as in a fold with bits, and the terms come for free.

use hush_ops::contract::{BatchWords, LweBatch, RlweBatch};
use rayon::prelude::*;

use super::CpuChain;
use crate::{
    Cpu, CpuRing,
    buffer_pool::LentBuffer,
    ring::{self, LiftFractions, RgswRows},
    workspace::Workspace,
};

/// As [`hush_ops::contract::ColumnOps::rgsw_power_fold`], for operands that fit together.
pub(super) fn rgsw_power_fold(
    cpu: &Cpu,
    ring: &CpuRing,
    chain: &CpuChain,
    packed: &LweBatch,
    powers: &[&RlweBatch],
) -> Vec<RlweBatch> {
    let ciphertext_words = 2 * ring.kept.words();
    let folded_words = chain.shape().planes() * ciphertext_words;
    let folded = || BatchWords::lent(LentBuffer::new(cpu.batch_buffers(), folded_words));
    let mut folded: Vec<_> = powers.iter().map(|_| RlweBatch { ciphertext_words, words: folded() }).collect();
    let rows_words = RgswRows::words(ring);
    let mut buffer = cpu.ring_buffers().take(powers.len() * rows_words);
    cpu.install(|| {
        let rows = powers.par_iter().zip(buffer.par_chunks_exact_mut(rows_words));
        let powers: Vec<Option<RgswRows<'_>>> = match chain.terms() {
            1 => vec![None; powers.len()],
            _ => rows.map(|(power, words)| Some(RgswRows::lay_out(ring, power, words))).collect(),
        };
        let lift = LiftFractions::new(ring.context().kept().rns(), chain.terms());
        let mut planes = Vec::with_capacity(powers.len() * chain.shape().planes());
        let queries = packed.words.chunks_exact(packed.rows).zip(powers);
        for ((words, power), folded) in queries.zip(&mut folded) {
            for (plane, out) in folded.words.chunks_exact_mut(ciphertext_words).enumerate() {
                planes.push(Plane { ring, chain, lift: &lift, power, words, plane, out });
            }
        }
        planes.into_par_iter().with_max_len(1).for_each(|plane| {
            cpu.with_workspace(|workspace| plane.fold(workspace));
        });
    });
    cpu.ring_buffers().give_back(buffer);
    folded
}

/// A unit of work: one plane of one query.
struct Plane<'a> {
    ring: &'a CpuRing,
    chain: &'a CpuChain,
    lift: &'a LiftFractions,
    /// `None` if there is one entry.
    power: Option<RgswRows<'a>>,
    /// The rows of all columns.
    words: &'a [u32],
    plane: usize,
    out: &'a mut [u32],
}

impl Plane<'_> {
    /// Horner's rule over the terms c_k, the last one first.
    fn fold(mut self, workspace: &mut Workspace) {
        let (kept, terms) = (&self.ring.kept, self.chain.terms());
        let (mut scratch, bodies) = RgswRows::scratch(self.ring, workspace, terms * kept.words());
        self.bodies(bodies, scratch.pair);
        self.out.fill(0);
        if let Some(power) = self.power {
            for k in (1..terms).rev() {
                if k + 1 < terms {
                    kept.inverse(self.out, scratch.transform);
                }
                self.add_term(k, bodies);
                power.multiply(self.ring, &mut scratch, self.out);
            }
        }
        kept.forward(&mut bodies[..kept.words()], scratch.transform);
        self.add_term(0, bodies);
    }

    /// Adds term `k`, in the form in which it is.
    fn add_term(&mut self, k: usize, bodies: &[u32]) {
        let kept = &self.ring.kept;
        let (a, b) = self.out.split_at_mut(kept.words());
        ring::add(kept, a, self.chain.mask(kept, self.plane, k));
        ring::add(kept, b, &bodies[k * kept.words()..][..kept.words()]);
    }

    /// The halves b of the terms, in coefficient form.
    fn bodies(&self, bodies: &mut [u32], scratch: &mut [u32]) {
        let (kept, shape, terms) = (&self.ring.kept, self.chain.shape(), self.chain.terms());
        for entry in 0..terms {
            let body = &mut bodies[ring::place(entry, terms) * kept.words()..][..kept.words()];
            if entry >= shape.entries() {
                body.fill(0);
                continue;
            }
            let words = &self.words[shape.plaintext_rows(entry * shape.planes() + self.plane)];
            self.lift.apply(kept, words, body);
        }
        ring::spectrum(kept, bodies, &mut scratch[..2 * kept.degree()]);
    }
}
