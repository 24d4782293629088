//! The reference backend: slow and obvious. Every fast backend must equal it bit for bit. The file of each step defines the
//! step ([`crate::steps`]).

use hush_he::{
    entities::{EvaluationKeys, RlweCiphertext},
    params::RingContext,
};

use crate::{
    contract::{BatchWords, Expanded, HostMemory, LweBatch, LweQueries, RlweBatch},
    ntt_tiling::NttTiledDb,
    steps,
    tiling::TiledDb,
};

pub(crate) mod ciphertexts;

/// The backend that runs every step by its definition, on one thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl HostMemory for Reference {}

impl ByDefinition for Reference {}

/// A backend on the host whose steps are their definitions, except for the steps that it overrides.
pub trait ByDefinition: HostMemory {
    /// Defines [`LweOps::lwe_fold`](crate::contract::LweOps::lwe_fold).
    fn define_lwe_fold(&self, db: &TiledDb, queries: &LweQueries) -> LweBatch {
        steps::lwe_fold::reference(db, queries)
    }

    /// Defines [`RingOps::expand`](crate::contract::RingOps::expand) for a query.
    fn define_expand(
        &self,
        ring: &RingContext,
        keys: &EvaluationKeys,
        query: &RlweCiphertext,
        rows: usize,
        folds: usize,
    ) -> Expanded {
        steps::expand::reference(ring, keys, query, rows, folds)
    }

    /// Defines [`RingOps::rlwe_fold`](crate::contract::RingOps::rlwe_fold) for a query.
    fn define_rlwe_fold(&self, ring: &RingContext, db: &NttTiledDb, selectors: &RlweBatch) -> RlweBatch {
        let words = steps::rlwe_fold::reference(ring.kept().moduli(), db, &[&selectors.words]).remove(0);
        RlweBatch { ciphertext_words: selectors.ciphertext_words, words: words.into() }
    }

    /// Defines [`RingOps::rgsw_fold`](crate::contract::RingOps::rgsw_fold) for a query; `index(entry, plane)` is a position in
    /// `entries`.
    fn define_rgsw_fold(
        &self,
        ring: &RingContext,
        entries: &RlweBatch,
        count: usize,
        planes: usize,
        index: impl Fn(usize, usize) -> usize,
        bits: &[RlweBatch],
    ) -> RlweBatch {
        steps::rgsw_fold::reference(ring, entries, count, planes, index, bits)
    }

    /// Defines [`RingOps::pack_pairs`](crate::contract::RingOps::pack_pairs) for a query.
    fn define_pack_pairs(
        &self,
        ring: &RingContext,
        keys: &EvaluationKeys,
        batch: &RlweBatch,
        pairs: usize,
    ) -> BatchWords {
        steps::pack_pairs::reference(ring, keys, batch, pairs)
    }
}
