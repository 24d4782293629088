//! The steps between LWE and RLWE by their definitions.

use std::{ops::Range, sync::Arc};

use hush_he::params::RingContext;

use super::Reference;
use crate::{
    OpsError,
    contract::{BatchWords, LweBatch, LweOps, PackOps, RingOps, RlweBatch, poly_words, round_word_up},
    ntt_tiling::{NttTiledDb, NttTiling},
    pack_shape::PackShape,
    tiling::TiledDb,
};

impl PackOps for Reference {
    fn run_lift_hint(
        &self,
        ring: &Arc<RingContext>,
        hint: &BatchWords,
        n: usize,
        shape: &PackShape,
        columns: Range<usize>,
    ) -> Result<NttTiledDb, OpsError> {
        let tiling = NttTiling::new(shape.degree(), ring.kept().limbs(), n, columns.len())?;
        let first = shape.rows_of(columns.clone()).start;
        let mut symbols = Vec::with_capacity(n * columns.len() * shape.degree());
        for i in 0..n {
            for column in columns.clone() {
                let words = shape.plaintext_rows(column).map(|row| hint[(row - first) * n + i]);
                symbols.extend(plaintext(ring, words));
            }
        }
        Ok(NttTiledDb::from_polys(tiling, &self.ntt_db(ring, &symbols)?))
    }

    fn run_pack(
        &self,
        ring: &Arc<RingContext>,
        hint: &NttTiledDb,
        folded: &LweBatch,
        shape: &PackShape,
        columns: Range<usize>,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let mut packed = self.run_rlwe_fold(ring, hint, selectors)?;
        let (kept, poly) = (ring.kept(), poly_words(ring));
        let delta: Vec<u32> = (0..kept.limbs()).map(|limb| kept.rns().reduce(ring.delta(), limb)).collect();
        for (packed, words) in packed.iter_mut().zip(folded.words.chunks_exact(folded.rows)) {
            for (column, ciphertext) in columns.clone().zip(packed.words.chunks_exact_mut(2 * poly)) {
                let rows = shape.plaintext_rows(column);
                let g = self.ntt_db(ring, &plaintext(ring, words[rows].iter().copied()))?;
                for (index, (b, g)) in ciphertext[poly..].iter_mut().zip(g).enumerate() {
                    let limb = index / kept.degree();
                    let p = kept.moduli()[limb];
                    *b = p.add(*b, p.mul(g, delta[limb]));
                }
            }
        }
        Ok(packed)
    }

    fn run_add_rlwe(
        &self,
        ring: &Arc<RingContext>,
        sum: &mut RlweBatch,
        first: usize,
        part: &RlweBatch,
    ) -> Result<(), OpsError> {
        let kept = ring.kept();
        let limbs = sum.words[first * sum.ciphertext_words..].chunks_exact_mut(kept.degree());
        for (index, (sum, part)) in limbs.zip(part.words.chunks_exact(kept.degree())).enumerate() {
            let p = kept.moduli()[index % kept.limbs()];
            sum.iter_mut().zip(part).for_each(|(sum, &part)| *sum = p.add(*sum, part));
        }
        Ok(())
    }

    fn run_reinterpret_rlwe(
        &self,
        ring: &Arc<RingContext>,
        packed: &RlweBatch,
        items: usize,
    ) -> Result<TiledDb, OpsError> {
        let bits = ring.params().response_bits();
        let mut words = Vec::new();
        for index in 0..packed.count() {
            let halves = 2 * index..2 * index + 2;
            let halves = self.mod_switch(ring, &[&packed.words], halves, &[bits.a, bits.b])?.remove(0);
            for (a, b) in halves[0].iter().zip(&halves[1]) {
                let bytes = u128::from(*a) | u128::from(*b) << bits.a;
                words.extend((0..(bits.a + bits.b) / u32::BITS).map(|word| (bytes >> (32 * word)) as u32));
            }
        }
        self.reinterpret_lwe(&words.into(), items, size_of::<u32>())
    }
}

/// `words` rounded to the plaintext modulus, as the symbols of a plaintext.
fn plaintext(ring: &RingContext, words: impl Iterator<Item = u32>) -> Vec<u32> {
    let bits = ring.params().plaintext_bits();
    let mut symbols: Vec<u32> = words.map(|word| round_word_up(word, bits)).collect();
    symbols.resize(ring.params().degree(), 0);
    symbols
}
