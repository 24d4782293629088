//! The backend without encryption: a query is a plain selection vector, so a step only has to touch the columns
//! that the query selects. It tests a protocol's index arithmetic in microseconds.

mod ring;

use hush_he::{
    entities::{EvaluationKeys, RlweCiphertext},
    params::RingContext,
};
use hush_ops::{
    contract::{
        BatchWords, Expanded, HostMemory, LweBatch, LweQueries, RlweBatch, ciphertext_words, poly_words,
    },
    ntt_tiling::NttTiledDb,
    reference::ByDefinition,
    tiling::TiledDb,
};

/// Index arithmetic only. A set without encryption has an LWE dimension of 1, so that the definitions of other steps cost little.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl HostMemory for Plain {}

impl ByDefinition for Plain {
    /// Equals the definition for every input.
    fn define_lwe_fold(&self, db: &TiledDb, queries: &LweQueries) -> LweBatch {
        let rows = db.tiling().rows();
        let mut words = vec![0u32; queries.batch() * rows];
        let nonzero = queries.words.iter().enumerate().filter(|&(_, &word)| word != 0);
        for (index, word) in nonzero {
            let b = index / queries.cols;
            let c = index % queries.cols;
            for (r, sum) in words[b * rows..][..rows].iter_mut().enumerate() {
                *sum = sum.wrapping_add((db.at(r, c) as u32).wrapping_mul(*word));
            }
        }
        LweBatch { rows, words: words.into() }
    }

    /// Reads the messages where the tree would take them from.
    fn define_expand(
        &self,
        ring: &RingContext,
        _keys: &EvaluationKeys,
        query: &RlweCiphertext,
        rows: usize,
        folds: usize,
    ) -> Expanded {
        ring::expand(ring, query, rows, folds)
    }

    /// Touches only the rows that are selected.
    fn define_rlwe_fold(&self, ring: &RingContext, db: &NttTiledDb, selectors: &RlweBatch) -> RlweBatch {
        ring::fold(ring, db, selectors)
    }

    /// Picks by the bits.
    fn define_rgsw_fold(
        &self,
        ring: &RingContext,
        entries: &RlweBatch,
        count: usize,
        planes: usize,
        index: impl Fn(usize, usize) -> usize,
        bits: &[RlweBatch],
    ) -> RlweBatch {
        let entry = ring::entry_of_bits(ring, bits);
        let ciphertext_words = ciphertext_words(ring);
        let mut words = vec![0; planes * ciphertext_words];
        for (plane, chosen) in words.chunks_exact_mut(ciphertext_words).enumerate() {
            if entry < count {
                chosen.copy_from_slice(entries.ciphertext(index(entry, plane)));
            }
        }
        RlweBatch { ciphertext_words, words: words.into() }
    }

    fn define_pack_pairs(
        &self,
        ring: &RingContext,
        _keys: &EvaluationKeys,
        batch: &RlweBatch,
        pairs: usize,
    ) -> BatchWords {
        let poly = poly_words(ring);
        let body = |index| &batch.ciphertext(index)[poly..];
        (0..pairs).flat_map(|pair| [&vec![0; poly], body(2 * pair), body(2 * pair + 1)].concat()).collect()
    }
}
