//! The reference backend over rings: each step by its definition, on the scalar ring arithmetic.

use std::{ops::Range, sync::Arc};

use hush_he::{
    algorithms::{external_product, switch_to_power_of_two},
    entities::{EvaluationKeys, RgswCiphertext, RlweCiphertext},
    params::RingContext,
};
use hush_math::{
    poly::{Eval, Poly},
    ring::Ring,
};

use super::{Reference, expand, rlwe_fold};
use crate::{
    OpsError,
    contract::{BatchWords, EntryOrder, Expanded, RingOps, RlweBatch, ciphertext_words, poly_words},
    ntt_tiling::{NttTiledDb, NttTiling},
};

impl RingOps for Reference {
    type Ring = Arc<RingContext>;
    type NttDb = NttTiledDb;
    type Keys = EvaluationKeys;

    fn open_ring(&self, context: Arc<RingContext>) -> Result<Arc<RingContext>, OpsError> {
        Ok(context)
    }

    fn context<'a>(&self, ring: &'a Arc<RingContext>) -> &'a RingContext {
        ring
    }

    fn ntt_tiling(&self, db: &NttTiledDb) -> NttTiling {
        db.tiling()
    }

    fn run_open_ntt_db(&self, _ring: &Arc<RingContext>, db: NttTiledDb) -> Result<NttTiledDb, OpsError> {
        Ok(db)
    }

    fn read_ntt_db(&self, _ring: &Arc<RingContext>, db: &NttTiledDb) -> Result<NttTiledDb, OpsError> {
        Ok(db.clone())
    }

    fn run_open_evaluation_keys(
        &self,
        _ring: &Arc<RingContext>,
        keys: EvaluationKeys,
    ) -> Result<EvaluationKeys, OpsError> {
        Ok(keys)
    }

    fn run_ntt_db(&self, ring: &Arc<RingContext>, symbols: &[u32]) -> Result<Vec<u32>, OpsError> {
        let bits = ring.params().plaintext_bits();
        let centred = |&symbol: &u32| (((symbol << (32 - bits)) as i32) >> (32 - bits)) as u32;
        let plaintexts = symbols.chunks_exact(ring.params().degree());
        let transformed = plaintexts.flat_map(|plaintext| {
            let lifted: Vec<u32> = plaintext.iter().map(centred).collect();
            ring.kept().forward(ring.kept().from_signed(&lifted)).into_words()
        });
        Ok(transformed.collect())
    }

    fn run_expand(
        &self,
        ring: &Arc<RingContext>,
        keys: &[&EvaluationKeys],
        queries: &[RlweCiphertext],
        rows: usize,
        folds: usize,
    ) -> Result<Vec<Expanded>, OpsError> {
        let queries = queries.iter().zip(keys);
        Ok(queries.map(|(query, keys)| expand::expand(ring, keys, query, rows, folds)).collect())
    }

    fn run_rlwe_fold(
        &self,
        ring: &Arc<RingContext>,
        db: &NttTiledDb,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let ciphertext_words = ciphertext_words(ring);
        let selectors: Vec<&[u32]> = selectors.iter().map(|batch| &batch.words[..]).collect();
        let folded = rlwe_fold::rlwe_fold(ring.kept().moduli(), db, &selectors);
        Ok(folded.into_iter().map(|words| RlweBatch { ciphertext_words, words: words.into() }).collect())
    }

    fn run_rgsw_fold(
        &self,
        ring: &Arc<RingContext>,
        entries: &[&RlweBatch],
        count: usize,
        planes: usize,
        order: EntryOrder,
        bits: &[&[RlweBatch]],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let folded = entries.iter().zip(bits).map(|(batch_of_query, bits)| {
            let plane = |plane: usize| {
                let index = |entry: usize| order.index(entry, plane, count, planes);
                let entry = |entry| ciphertext(ring.kept(), batch_of_query.ciphertext(index(entry)));
                fold_plane(ring, (0..count).map(entry).collect(), bits)
            };
            batch(ring.kept(), (0..planes).map(plane))
        });
        Ok(folded.collect())
    }

    fn run_pack_pairs(
        &self,
        ring: &Arc<RingContext>,
        keys: &[&EvaluationKeys],
        batches: &[&RlweBatch],
        pairs: usize,
    ) -> Result<Vec<BatchWords>, OpsError> {
        let packed = batches.iter().zip(keys).map(|(batch, keys)| {
            let packed: Vec<u32> = (0..pairs)
                .flat_map(|pair| {
                    let pair = [2 * pair, 2 * pair + 1];
                    pack_pair(ring, keys, pair.map(|index| ciphertext(ring.kept(), batch.ciphertext(index))))
                })
                .collect();
            packed.into()
        });
        Ok(packed.collect())
    }

    fn run_mod_switch(
        &self,
        ring: &Arc<RingContext>,
        polys: &[&BatchWords],
        which: Range<usize>,
        bits: &[u32],
    ) -> Result<Vec<Vec<Vec<u64>>>, OpsError> {
        let (kept, words) = (ring.kept(), poly_words(ring));
        let switch = |(poly, &bits): (&[u32], &u32)| {
            let poly = kept.inverse(Poly::from_words(poly.to_vec(), kept.degree()));
            switch_to_power_of_two(kept, &poly, bits)
        };
        let switched = polys
            .iter()
            .map(|polys| polys.chunks_exact(words).skip(which.start).zip(bits).map(switch).collect());
        Ok(switched.collect())
    }
}

/// All rounds of [`RingOps::rgsw_fold`], for one plane.
fn fold_plane(ring: &RingContext, mut entries: Vec<RlweCiphertext>, bits: &[RlweBatch]) -> RlweCiphertext {
    let (kept, gadget) = (ring.kept(), ring.params().fold_gadget());
    for bit in bits {
        let bit = rgsw(kept, bit);
        let fold = |pair: &[RlweCiphertext]| {
            let zero = || RlweCiphertext { a: kept.zero(), b: kept.zero() };
            let mut difference = pair.get(1).cloned().unwrap_or_else(zero);
            sub(kept, &mut difference, &pair[0]);
            let mut sum = external_product(kept, &bit, &difference, gadget);
            add(kept, &mut sum, &pair[0]);
            sum
        };
        entries = entries.chunks(2).map(fold).collect();
    }
    entries.remove(0)
}

/// Three polynomials of two ciphertexts.
fn pack_pair(ring: &RingContext, keys: &EvaluationKeys, pair: [RlweCiphertext; 2]) -> Vec<u32> {
    let (kept, gadget) = (ring.kept(), ring.params().pack_gadget());
    let [x, y] = pair;
    let (mut a, mut b) = (kept.zero(), [x.b, y.b]);
    for (a_i, rows) in [x.a, y.a].iter().zip(&keys.pack) {
        for (digit, row) in hush_he::algorithms::decompose(kept, a_i, gadget).iter().zip(rows) {
            kept.mul_add(&mut a, digit, &row.a);
            b.iter_mut().zip(&row.b).for_each(|(b, row)| kept.mul_add(b, digit, row));
        }
    }
    let [b0, b1] = b;
    [a, b0, b1].into_iter().flat_map(Poly::into_words).collect()
}

/// One ciphertext of a batch.
pub(super) fn ciphertext(ring: &Ring, words: &[u32]) -> RlweCiphertext {
    let (a, b) = words.split_at(words.len() / 2);
    let poly = |words: &[u32]| Poly::<Eval>::from_words(words.to_vec(), ring.degree());
    RlweCiphertext { a: poly(a), b: poly(b) }
}

/// A batch of ciphertexts of one ring.
pub(super) fn batch(ring: &Ring, ciphertexts: impl IntoIterator<Item = RlweCiphertext>) -> RlweBatch {
    let ciphertext_words = 2 * ring.limbs() * ring.degree();
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
fn rgsw(ring: &Ring, batch: &RlweBatch) -> RgswCiphertext {
    let rows: Vec<_> = (0..batch.count()).map(|row| ciphertext(ring, batch.ciphertext(row))).collect();
    let (bottom, top) = rows.split_at(rows.len() / 2);
    RgswCiphertext { bottom: bottom.to_vec(), top: top.to_vec() }
}
