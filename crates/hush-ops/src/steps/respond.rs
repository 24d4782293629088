//! The steps that make an answer of ciphertexts: `pack_pairs` where the ring packs pairs, then `mod_switch`.

use super::*;

/// The shape of `pack_pairs` and `mod_switch`, which turn the remaining ciphertexts into an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Respond {
    /// The RLWE set.
    pub ring: RingParams,
    /// The plaintexts of an answer.
    pub plaintexts: usize,
}

impl Respond {
    /// Returns the number of pairs of plaintexts that are packed.
    pub fn pairs(&self) -> usize {
        if self.ring.packs_pairs() { self.plaintexts / 2 } else { 0 }
    }
}

impl StepKind for Respond {
    /// Counts, for each pair, a decomposition of both halves a, and three polynomials, each a sum of 2 l products in every slot.
    /// Four polynomials are read, and three written.
    fn work(&self, batch: usize) -> Work {
        let ring = &self.ring;
        let queries = batch as f64;
        let limbs = ring.kept_limbs();
        let digits = ring.pack_gadget().digits;
        let pairs_of_all = queries * self.pairs() as f64;
        let sums = 3.0 * pairs_of_all * (limbs * ring.degree()) as f64;
        let packed = Work {
            operand_bytes: 7.0 * pairs_of_all * poly_bytes(ring) as f64,
            transforms: 2.0 * pairs_of_all * switch_transforms(limbs, digits) as f64,
            products: sums * 2.0 * digits as f64,
            sums,
            ..Work::default()
        };
        packed + switches(ring, queries * (2 * self.plaintexts - self.pairs()) as f64)
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let &Maker { backend, batch, .. } = make;
        let on = make.open(&self.ring)?;
        let ciphertexts = make.of_each(&on, self.plaintexts)?;
        let [a, b] = SentPoly::halves(&self.ring);
        let keys = if self.ring.packs_pairs() { Some(on.keys()?) } else { None };
        // Each pair becomes three polynomials; the other ciphertexts are switched unpacked.
        let pairs = self.pairs();
        let of_pairs = [a, b, b].repeat(pairs);
        let of_others = [a, b].repeat(self.plaintexts - 2 * pairs);
        Ok(Box::new(move || {
            let batches: Vec<_> = ciphertexts.iter().collect();
            if let Some(keys) = &keys {
                let packed = backend.pack_pairs(&on.ring, &vec![keys; batch], &batches)?;
                let packed: Vec<_> = packed.iter().collect();
                backend.mod_switch(&on.ring, &packed, 0, &of_pairs)?;
            }
            let words: Vec<_> = batches.iter().map(|batch| &batch.words).collect();
            backend.mod_switch(&on.ring, &words, 4 * pairs, &of_others).map(drop)
        }))
    }
}
