//! Step (7h): folds the entries to one with a single RGSW ciphertext of a power of X.
//!
//! ```text
//! c = spectrum of the entries, T terms in coefficient form        acc = 0
//! for k = T - 1 down to 1:  acc = RGSW(power) * (acc + c_k)       (external product)
//! result = acc + c_0
//! ```
//!
//! In coefficient form, the products of the spectrum with powers of X are rotations, digits need no inverse transform, and only
//! the last of all terms is transformed. An external product takes `2 limbs (1 + l)` transforms, as in a fold with bits, and the
//! terms come for free.

use hush_ops::{
    contract::{BatchWords, LweBatch, PowerKeys, RlweBatch},
    steps::poly_bytes,
};
use rayon::prelude::*;

use super::{CpuChain, pack_columns::transformed};
use crate::{
    Cpu, CpuRing,
    buffer_pool::LentBuffer,
    ring::{self, LiftFractions, RgswRows, Scratch},
};

/// The most words for terms that a thread keeps: 32 terms under the default set. More terms, up to 64 MiB, use a lent buffer, as
/// lent buffers are kept up to a limit for all threads together.
const KEPT_WORDS: usize = 1 << 17;

/// Computes [`hush_ops::contract::ColumnOps::rgsw_power_fold`] for operands that fit together.
pub(super) fn rgsw_power_fold(
    cpu: &Cpu,
    ring: &CpuRing,
    chain: &CpuChain,
    packed: &LweBatch,
    powers: PowerKeys<'_>,
) -> RlweBatch {
    let ciphertext_words = 2 * ring.kept.words();
    let folded_words = chain.shape().planes() * ciphertext_words;
    let mut folded =
        BatchWords::lent(LentBuffer::new(cpu.batch_buffers(), powers.bodies.len() * folded_words));
    // Two rows a query, or none if there is one entry.
    let bodies: Vec<_> = powers.bodies.iter().copied().flatten().flatten().collect();
    let bodies = transformed(cpu, &ring.kept, &bodies);
    let rows_words = RgswRows::words(ring);
    let mut buffer = cpu.ring_buffers().take(powers.bodies.len() * rows_words);
    cpu.install(|| {
        let rows =
            bodies.par_chunks_exact(2 * ring.kept.words()).zip(buffer.par_chunks_exact_mut(rows_words));
        let rows: Vec<Option<RgswRows<'_>>> = match chain.terms() {
            1 => vec![None; powers.bodies.len()],
            _ => rows
                .map(|(bodies, words)| Some(RgswRows::lay_out_halves(ring, powers.masks, bodies, words)))
                .collect(),
        };
        let lifts = LiftFractions::of_limbs(ring.context().kept().rns(), chain.terms());
        let mut planes = Vec::with_capacity(powers.bodies.len() * chain.shape().planes());
        let queries = packed.words.chunks_exact(packed.rows).zip(rows);
        for ((words, power), folded) in queries.zip(folded.chunks_exact_mut(folded_words)) {
            for (plane, out) in folded.chunks_exact_mut(ciphertext_words).enumerate() {
                planes.push(Plane { ring, chain, lifts: &lifts, power, words, plane, out });
            }
        }
        planes.into_par_iter().with_max_len(1).for_each(|plane| plane.fold_in_memory_of(cpu));
    });
    cpu.ring_buffers().give_back(buffer);
    RlweBatch { ciphertext_words, words: folded }
}

/// A unit of work: one plane of one query.
struct Plane<'a> {
    ring: &'a CpuRing,
    chain: &'a CpuChain,
    /// The lift for each limb.
    lifts: &'a [LiftFractions],
    /// The rows of the query's RGSW ciphertext; `None` if there is one entry.
    power: Option<RgswRows<'a>>,
    /// The rows of all plaintexts.
    words: &'a [u32],
    plane: usize,
    out: &'a mut [u32],
}

impl Plane<'_> {
    /// Folds on one of the backend's threads.
    fn fold_in_memory_of(self, cpu: &Cpu) {
        let words = self.chain.terms() * self.ring.kept.words();
        if words <= KEPT_WORDS {
            return cpu.with_workspace(|workspace| {
                let (scratch, bodies) = RgswRows::scratch(self.ring, workspace, words);
                self.fold(scratch, bodies);
            });
        }
        let mut lent = cpu.ring_buffers().take(words);
        cpu.with_workspace(|workspace| {
            let (scratch, _) = RgswRows::scratch(self.ring, workspace, 0);
            self.fold(scratch, &mut lent[..words]);
        });
        cpu.ring_buffers().give_back(lent);
    }

    /// Runs Horner's rule over the terms c_k, the last one first. `bodies` must hold the halves b of all terms.
    fn fold(mut self, mut scratch: Scratch<'_>, bodies: &mut [u32]) {
        let kept = &self.ring.kept;
        let terms = self.chain.terms();
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

    /// Adds term `k`, in the form in which it is kept.
    fn add_term(&mut self, k: usize, bodies: &[u32]) {
        let kept = &self.ring.kept;
        let (a, b) = self.out.split_at_mut(kept.words());
        ring::add(kept, a, self.chain.mask(kept, self.plane, k));
        ring::add(kept, b, &bodies[k * kept.words()..][..kept.words()]);
    }

    /// Computes the halves b of the terms, in coefficient form.
    fn bodies(&self, bodies: &mut [u32], scratch: &mut [u32]) {
        let kept = &self.ring.kept;
        let shape = self.chain.shape();
        let terms = self.chain.terms();
        for entry in 0..terms {
            let body = &mut bodies[ring::place(entry, terms) * kept.words()..][..kept.words()];
            if entry >= shape.entries() {
                body.fill(0);
                continue;
            }
            let words = &self.words[shape.plaintext_rows(entry * shape.planes() + self.plane)];
            for (lift, body) in self.lifts.iter().zip(body.chunks_exact_mut(kept.degree())) {
                lift.apply(kept.level(), words, body);
            }
        }
        ring::spectrum(kept, bodies, &mut scratch[..2 * kept.degree()]);
    }
}

hush_ops::footprint!(Cpu: RgswPowerFold, |step, batch| {
    batch * step.shape.planes() * 2 * poly_bytes(&step.ring)
});

#[cfg(test)]
mod tests {
    use hush_he::params::COLPACK_N2048_Q52;
    use hush_testkit::conformance::{ColumnCase, ColumnCaseShape, Residues, Words};

    use super::*;

    #[test]
    fn terms_are_kept_and_lent() {
        let params = COLPACK_N2048_Q52;
        let cpu = Cpu::new(2).expect("the machine has the level that HUSH_CPU names");
        let poly_words = 2 * params.ring().degree();
        for (rows, lent) in [(17, false), (33, true)] {
            let shape = ColumnCaseShape { rows, entry_rows: 1, queries: 3 };
            assert_eq!(rows.next_power_of_two() * poly_words > KEPT_WORDS, lent);
            ColumnCase::new(params, shape, Words::Random, Residues::Random).check(&cpu, &[3]);
        }
    }
}
