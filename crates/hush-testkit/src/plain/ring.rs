//! The backend without encryption over rings: ciphertexts are `(0, m)`.

use std::sync::Arc;

use hush_he::{
    entities::{EvaluationKeys, RlweCiphertext},
    params::RingContext,
};
use hush_math::poly::{Eval, Poly};

use super::Plain;
use hush_ops::{
    OpsError,
    contract::{
        BatchWords, EntryOrder, Expanded, RingOps, RlweBatch, SentPoly, ciphertext_words, poly_words,
    },
    ntt_tiling::{NttTiledDb, NttTiling},
    reference::Reference,
};

impl RingOps for Plain {
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

    fn run_open_ntt_db(&self, ring: &Arc<RingContext>, db: NttTiledDb) -> Result<NttTiledDb, OpsError> {
        Reference.run_open_ntt_db(ring, db)
    }

    fn read_ntt_db(&self, ring: &Arc<RingContext>, db: &NttTiledDb) -> Result<NttTiledDb, OpsError> {
        Reference.read_ntt_db(ring, db)
    }

    fn run_open_evaluation_keys(
        &self,
        ring: &Arc<RingContext>,
        keys: EvaluationKeys,
    ) -> Result<EvaluationKeys, OpsError> {
        Reference.run_open_evaluation_keys(ring, keys)
    }

    fn run_ntt_db(&self, ring: &Arc<RingContext>, symbols: &[u32]) -> Result<Vec<u32>, OpsError> {
        Reference.run_ntt_db(ring, symbols)
    }

    /// Reads the messages where the tree would take them from.
    fn run_expand(
        &self,
        ring: &Arc<RingContext>,
        _keys: &[&EvaluationKeys],
        queries: &[RlweCiphertext],
        rows: usize,
        folds: usize,
    ) -> Result<Vec<Expanded>, OpsError> {
        Ok(queries.iter().map(|query| expand(ring, query, rows, folds)).collect())
    }

    /// Touches only the rows that are selected.
    fn run_rlwe_fold(
        &self,
        ring: &Arc<RingContext>,
        db: &NttTiledDb,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let tiling = db.tiling();
        let (poly, ciphertext_words) = (poly_words(ring), ciphertext_words(ring));
        let fold = |selectors: &RlweBatch| {
            let mut words = vec![0; tiling.columns() * ciphertext_words];
            for (row, selector) in selectors.words.chunks_exact(ciphertext_words).enumerate() {
                let selector = &selector[poly..];
                if selector.iter().all(|&word| word == 0) {
                    continue;
                }
                for (column, out) in words.chunks_exact_mut(ciphertext_words).enumerate() {
                    for (index, (out, &selector)) in out[poly..].iter_mut().zip(selector).enumerate() {
                        let (limb, slot) = (index / tiling.degree(), index % tiling.degree());
                        let p = ring.kept().moduli()[limb];
                        *out = p.add(*out, p.mul(db.at(limb, slot, row, column), selector));
                    }
                }
            }
            RlweBatch { ciphertext_words, words: words.into() }
        };
        Ok(selectors.iter().map(|selectors| fold(selectors)).collect())
    }

    /// Picks by the bits.
    fn run_rgsw_fold(
        &self,
        ring: &Arc<RingContext>,
        entries: &[&RlweBatch],
        count: usize,
        planes: usize,
        order: EntryOrder,
        bits: &[&[RlweBatch]],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let ciphertext_words = ciphertext_words(ring);
        let folded = entries.iter().zip(bits).map(|(entries, bits)| {
            let entry = entry_of_bits(ring, bits);
            let mut words = vec![0; planes * ciphertext_words];
            for (plane, chosen) in words.chunks_exact_mut(ciphertext_words).enumerate() {
                if entry < count {
                    chosen.copy_from_slice(entries.ciphertext(order.index(entry, plane, count, planes)));
                }
            }
            RlweBatch { ciphertext_words, words: words.into() }
        });
        Ok(folded.collect())
    }

    fn run_pack_pairs(
        &self,
        ring: &Arc<RingContext>,
        _keys: &[&EvaluationKeys],
        batches: &[&RlweBatch],
        pairs: usize,
    ) -> Result<Vec<BatchWords>, OpsError> {
        let poly = poly_words(ring);
        let packed = batches.iter().map(|batch| {
            let body = |index| &batch.ciphertext(index)[poly..];
            let pair = |pair| [&vec![0; poly], body(2 * pair), body(2 * pair + 1)].concat();
            (0..pairs).flat_map(pair).collect::<Vec<u32>>().into()
        });
        Ok(packed.collect())
    }

    fn run_mod_switch(
        &self,
        ring: &Arc<RingContext>,
        polys: &[&BatchWords],
        first: usize,
        sent: &[SentPoly],
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        Reference.run_mod_switch(ring, polys, first, sent)
    }
}

/// The messages of a query, as ciphertexts without encryption.
fn expand(ring: &RingContext, query: &RlweCiphertext, rows: usize, folds: usize) -> Expanded {
    let (params, full) = (ring.params(), ring.full());
    let b = full.inverse(query.b.clone());
    let leaves = params.leaves(rows, folds);
    let positions = params.query_positions(0..leaves).step_by(params.query_words(1));
    let messages: Vec<u128> = positions
        .map(|position| {
            let scaled = |limb: usize| {
                let p = full.moduli()[limb];
                p.mul(b.limb(limb)[position], p.pow(2, params.levels().len() as u64))
            };
            let message = full.rns().lift(scaled);
            let factor = u128::from(params.dropped_factor());
            (message + factor / 2) / factor % ring.kept().rns().product()
        })
        .collect();
    let (selectors, bits) = messages.split_at(rows);
    let gadget = params.fold_gadget();
    let bits = bits.chunks_exact(gadget.digits).map(|words| {
        let top = words.iter().copied();
        constants(ring, std::iter::repeat_n(0, gadget.digits).chain(top))
    });
    Expanded { bits: bits.collect(), selectors: constants(ring, selectors.iter().copied()) }
}

/// The entry that RGSW ciphertexts without encryption select.
fn entry_of_bits(ring: &RingContext, bits: &[RlweBatch]) -> usize {
    // A bit of 1 makes its last row the largest g_k; one of 0 makes it zero but for rounding.
    let gadget = ring.params().fold_gadget();
    let half = 1u128 << (gadget.log2_factor(gadget.digits - 1) - 1);
    let is_set = |bit: &RlweBatch| {
        let b = &bit.ciphertext(bit.count() - 1)[poly_words(ring)..];
        ring.kept().rns().lift_centred(|limb| b[limb * ring.params().degree()]).unsigned_abs() > half
    };
    bits.iter().rev().fold(0, |index, bit| index << 1 | usize::from(is_set(bit)))
}

/// Ciphertexts `(0, m)` of constant polynomials modulo Q_1.
fn constants(ring: &RingContext, messages: impl Iterator<Item = u128>) -> RlweBatch {
    let kept = ring.kept();
    let ciphertext_words = ciphertext_words(ring);
    let mut words = Vec::new();
    for message in messages {
        words.resize(words.len() + ciphertext_words / 2, 0);
        // The value of a constant polynomial is the same in every slot.
        let residues = (0..kept.limbs()).map(|limb| vec![kept.rns().reduce(message, limb); kept.degree()]);
        words.extend(Poly::<Eval>::from_words(residues.flatten().collect(), kept.degree()).into_words());
    }
    RlweBatch { ciphertext_words, words: words.into() }
}
