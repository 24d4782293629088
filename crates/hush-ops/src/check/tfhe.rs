//! Checks of [`crate::contract::TfheOps`].

use hush_he::{entities::TlweWords, params::RingContext};

use crate::{
    OpsError,
    contract::{RlweBatch, WordStore, ciphertext_words},
    symbol_tiling::SymbolTiling,
};

/// Most bits of a kept prime: sums of four products of residues fit 64 bits.
const MAX_MODULUS_BITS: u32 = 31;

/// The database is one of the set's plaintexts, whose primes are short enough.
pub(crate) fn symbols(step: &'static str, ring: &RingContext, tiling: SymbolTiling) -> Result<(), OpsError> {
    let params = ring.params();
    OpsError::check_shape(step, "degree", params.degree(), tiling.degree())?;
    OpsError::check_shape(
        step,
        "bits of a symbol",
        params.plaintext_bits() as usize,
        tiling.bits() as usize,
    )?;
    ring.kept().moduli().iter().map(|p| p.bits()).try_for_each(|bits| {
        OpsError::check_shape(step, "bits of a modulus", bits.min(MAX_MODULUS_BITS) as usize, bits as usize)
    })
}

/// As [`symbols`], and every query has one selector for each row.
pub(crate) fn symbol_fold<W: WordStore>(
    ring: &RingContext,
    tiling: SymbolTiling,
    selectors: &[&RlweBatch<W>],
) -> Result<(), OpsError> {
    let step = "symbol_fold";
    symbols(step, ring, tiling)?;
    let words = tiling.rows() * ciphertext_words(ring);
    selectors.iter().try_for_each(|query| {
        OpsError::check_shape(step, "words of a query's selectors", words, query.words.len())
    })
}

/// All queries have as many whole ciphertexts, and as many bits, at most log2 N. Returns both numbers, 0 if there are no queries.
pub(crate) fn rotate<W: WordStore>(
    ring: &RingContext,
    ciphertexts: &[&RlweBatch<W>],
    bits: &[&[RlweBatch<W>]],
) -> Result<(usize, usize), OpsError> {
    let (step, words, params) = ("rotate", ciphertext_words(ring), ring.params());
    OpsError::check_shape(step, "queries with bits", ciphertexts.len(), bits.len())?;
    let count = ciphertexts.first().map_or(0, |batch| batch.words.len() / words);
    let folds = bits.first().map_or(0, |bits| bits.len());
    OpsError::check_shape(step, "bits", folds.min(params.degree().ilog2() as usize), folds)?;
    let rows = 2 * params.fold_gadget().digits;
    for (batch, bits) in ciphertexts.iter().zip(bits) {
        OpsError::check_shape(step, "words of a ciphertext", words, batch.ciphertext_words)?;
        OpsError::check_shape(step, "words of all ciphertexts", count * words, batch.words.len())?;
        OpsError::check_shape(step, "bits of a query", folds, bits.len())?;
        bits.iter().try_for_each(|bit| {
            OpsError::check_shape(step, "words of an RGSW ciphertext", rows * words, bit.words.len())
        })?;
    }
    Ok((count, folds))
}

/// There are as many keys as queries, words for all rows and digits, and the set has TLWE words.
pub(crate) fn private_key_switch(
    ring: &RingContext,
    keys: usize,
    queries: &[TlweWords],
    rows: usize,
    folds: usize,
) -> Result<(), OpsError> {
    let step = "private_key_switch";
    OpsError::check_shape(step, "TLWE parameters", 1, usize::from(ring.params().tlwe().is_some()))?;
    OpsError::check_shape(step, "clients' keys", queries.len(), keys)?;
    let (n, leaves) = (ring.params().tlwe().map_or(0, |tlwe| tlwe.n()), ring.params().leaves(rows, folds));
    OpsError::check_shape(step, "words", leaves.min(ring.params().max_leaves()), leaves)?;
    queries.iter().try_for_each(|query| {
        OpsError::check_shape(step, "words of a query's bodies", leaves, query.bodies.len())?;
        OpsError::check_shape(step, "words of a query's masks", leaves * n, query.masks.len())
    })
}

/// There are as many keys, at least one ciphertext of every query, and a small ring.
pub(crate) fn ring_switch<W: WordStore>(
    ring: &RingContext,
    keys: usize,
    ciphertexts: &[&RlweBatch<W>],
) -> Result<(), OpsError> {
    let (step, words) = ("ring_switch", ciphertext_words(ring));
    OpsError::check_shape(step, "small rings", 1, usize::from(ring.switched().is_some()))?;
    OpsError::check_shape(step, "clients' keys", ciphertexts.len(), keys)?;
    ciphertexts.iter().try_for_each(|batch| {
        OpsError::check_shape(step, "words of a ciphertext", words, batch.words.len().min(words))
    })
}
