//! The reference backend over rings: each step by its definition, on the scalar ring arithmetic.

use std::sync::Arc;

use hush_he::{
    algorithms::{external_product, switch_to_power_of_two},
    entities::{EvaluationKeys, RgswCiphertext, RlweCiphertext},
    params::RingContext,
};
use hush_math::{
    poly::{Eval, Poly},
    ring::Ring,
};

use super::{Reference, expand, ring_shapes, rlwe_fold};
use crate::{
    OpsError,
    contract::{Expanded, RingOps, RlweBatch},
    ntt_tiling::NttTiledDb,
};

impl RingOps for Reference {
    type Ring = Arc<RingContext>;
    type NttDb = NttTiledDb;
    type Keys = EvaluationKeys;

    fn open_ring(&self, context: Arc<RingContext>) -> Arc<RingContext> {
        context
    }

    fn open_ntt_db(&self, ring: &Arc<RingContext>, db: NttTiledDb) -> Result<NttTiledDb, OpsError> {
        ring_shapes::check_db(ring, db.tiling())?;
        Ok(db)
    }

    fn open_evaluation_keys(
        &self,
        ring: &Arc<RingContext>,
        keys: EvaluationKeys,
    ) -> Result<EvaluationKeys, OpsError> {
        ring_shapes::check_keys(ring, &keys)?;
        Ok(keys)
    }

    fn ntt_db(&self, ring: &Arc<RingContext>, symbols: &[u32]) -> Result<Vec<u32>, OpsError> {
        ring_shapes::check_symbols(ring, symbols)?;
        let bits = ring.params().plaintext_bits();
        let centred = |&symbol: &u32| (((symbol << (32 - bits)) as i32) >> (32 - bits)) as u32;
        let plaintexts = symbols.chunks_exact(ring.params().degree());
        let transformed = plaintexts.flat_map(|plaintext| {
            let lifted: Vec<u32> = plaintext.iter().map(centred).collect();
            ring.kept().forward(ring.kept().from_signed(&lifted)).into_words()
        });
        Ok(transformed.collect())
    }

    fn expand(
        &self,
        ring: &Arc<RingContext>,
        keys: &EvaluationKeys,
        query: &RlweCiphertext,
        rows: usize,
        folds: usize,
    ) -> Result<Expanded, OpsError> {
        ring_shapes::check_expand(ring, query, rows, folds)?;
        Ok(expand::expand(ring, keys, query, rows, folds))
    }

    fn rlwe_fold(
        &self,
        ring: &Arc<RingContext>,
        db: &NttTiledDb,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        ring_shapes::check_db(ring, db.tiling())?;
        let ciphertext_words = ring_shapes::ciphertext_words(ring);
        let selectors: Vec<&[u32]> = selectors.iter().map(|batch| &batch.words[..]).collect();
        let folded = rlwe_fold::rlwe_fold(ring.kept().moduli(), db, &selectors)?;
        Ok(folded.into_iter().map(|words| RlweBatch { ciphertext_words, words: words.into() }).collect())
    }

    fn rgsw_fold(
        &self,
        ring: &Arc<RingContext>,
        entries: &[u32],
        bits: &[RlweBatch],
    ) -> Result<RlweBatch, OpsError> {
        ring_shapes::check_rgsw_fold(ring, entries, bits)?;
        let (kept, gadget) = (ring.kept(), ring.params().fold_gadget());
        let words = ring_shapes::ciphertext_words(ring);
        let mut entries: Vec<_> = entries.chunks_exact(words).map(|words| ciphertext(kept, words)).collect();
        for bit in bits {
            let bit = rgsw(kept, bit);
            let fold = |pair: &[RlweCiphertext]| {
                let mut difference =
                    pair.get(1).cloned().unwrap_or_else(|| ciphertext(kept, &vec![0; words]));
                sub(kept, &mut difference, &pair[0]);
                let mut sum = external_product(kept, &bit, &difference, gadget);
                add(kept, &mut sum, &pair[0]);
                sum
            };
            entries = entries.chunks(2).map(fold).collect();
        }
        Ok(batch(entries))
    }

    fn pack_pair(
        &self,
        ring: &Arc<RingContext>,
        keys: &EvaluationKeys,
        pair: &RlweBatch,
    ) -> Result<Vec<u32>, OpsError> {
        ring_shapes::check_pair(ring, pair)?;
        let (kept, gadget) = (ring.kept(), ring.params().pack_gadget());
        let [x, y] = [0, 1].map(|index| ciphertext(kept, pair.ciphertext(index)));
        let (mut a, mut b) = (kept.zero(), [x.b, y.b]);
        for (a_i, rows) in [x.a, y.a].iter().zip(&keys.pack) {
            for (digit, row) in hush_he::algorithms::decompose(kept, a_i, gadget).iter().zip(rows) {
                kept.mul_add(&mut a, digit, &row.a);
                b.iter_mut().zip(&row.b).for_each(|(b, row)| kept.mul_add(b, digit, row));
            }
        }
        let [b0, b1] = b;
        Ok([a, b0, b1].into_iter().flat_map(Poly::into_words).collect())
    }

    fn mod_switch(
        &self,
        ring: &Arc<RingContext>,
        polys: &[u32],
        bits: &[u32],
    ) -> Result<Vec<Vec<u64>>, OpsError> {
        ring_shapes::check_mod_switch(ring, polys, bits)?;
        let kept = ring.kept();
        let switched = polys.chunks_exact(kept.limbs() * kept.degree()).zip(bits).map(|(words, &bits)| {
            let poly = kept.inverse(Poly::from_words(words.to_vec(), kept.degree()));
            switch_to_power_of_two(kept, &poly, bits)
        });
        Ok(switched.collect())
    }
}

/// One ciphertext of a batch.
pub(super) fn ciphertext(ring: &Ring, words: &[u32]) -> RlweCiphertext {
    let (a, b) = words.split_at(words.len() / 2);
    let poly = |words: &[u32]| Poly::<Eval>::from_words(words.to_vec(), ring.degree());
    RlweCiphertext { a: poly(a), b: poly(b) }
}

/// A batch of ciphertexts of one ring, at least one.
pub(super) fn batch(ciphertexts: Vec<RlweCiphertext>) -> RlweBatch {
    let ciphertext_words = ciphertexts[0].a.words().len() * 2;
    let words: Vec<_> =
        ciphertexts.into_iter().flat_map(|c| [c.a, c.b].map(Poly::into_words)).flatten().collect();
    RlweBatch { ciphertext_words, words: words.into() }
}

/// `x += y`.
pub(super) fn add(ring: &Ring, x: &mut RlweCiphertext, y: &RlweCiphertext) {
    ring.add(&mut x.a, &y.a);
    ring.add(&mut x.b, &y.b);
}

/// `x -= y`.
pub(super) fn sub(ring: &Ring, x: &mut RlweCiphertext, y: &RlweCiphertext) {
    ring.sub(&mut x.a, &y.a);
    ring.sub(&mut x.b, &y.b);
}

/// The RGSW ciphertext whose rows are in `batch`.
pub(super) fn rgsw(ring: &Ring, batch: &RlweBatch) -> RgswCiphertext {
    let rows: Vec<_> = (0..batch.count()).map(|row| ciphertext(ring, batch.ciphertext(row))).collect();
    let (bottom, top) = rows.split_at(rows.len() / 2);
    RgswCiphertext { bottom: bottom.to_vec(), top: top.to_vec() }
}
