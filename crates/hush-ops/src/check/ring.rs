//! Checks of [`crate::contract::RingOps`].

use hush_he::{
    entities::{EvaluationKeys, KeySwitchKey, RlweCiphertext},
    params::RingContext,
};
use hush_math::{gadget::Gadget, modulus::Modulus};

use crate::{
    OpsError,
    contract::{RLWE_POLYS, RlweBatch, SentPoly, WordStore, ciphertext_words, poly_words},
    ntt_tiling::NttTiling,
};

/// Most bits to which a coefficient can be switched.
const MAX_SWITCH_BITS: u32 = 48;

/// Fewest bits of a modulus of `rlwe_fold`: the kernels' quotient estimates ignore 12 bits of a sum.
const MIN_MODULUS_BITS: u32 = 20;

/// Checks that a database is one modulo Q_1.
///
/// # Errors
/// [`OpsError::Shape`] if not.
pub fn open_ntt_db(ring: &RingContext, tiling: NttTiling) -> Result<(), OpsError> {
    let step = "open_ntt_db";
    OpsError::check_shape(step, "degree", ring.kept().degree(), tiling.degree())?;
    OpsError::check_shape(step, "limbs", ring.kept().limbs(), tiling.limbs())
}

/// Keys have the rows and limbs of the parameter set.
pub(crate) fn open_evaluation_keys(ring: &RingContext, keys: &EvaluationKeys) -> Result<(), OpsError> {
    let (step, params) = ("open_evaluation_keys", ring.params());
    let words = ring.full().limbs() * ring.full().degree();
    let check = |key: &KeySwitchKey, gadget: Gadget| {
        OpsError::check_shape(step, "rows of a key", gadget.digits, key.rows.len())?;
        key.rows.iter().try_for_each(|row| {
            OpsError::check_shape(
                step,
                "words of a row",
                2 * words,
                row.a.words().len() + row.b.words().len(),
            )
        })
    };
    OpsError::check_shape(step, "levels", params.levels().len(), keys.levels.len())?;
    keys.levels.iter().zip(params.levels()).try_for_each(|(key, gadget)| check(key, *gadget))?;
    check(&keys.square, params.square_gadget())?;
    keys.pack.iter().try_for_each(|rows| {
        OpsError::check_shape(step, "rows of a packing key", params.pack_gadget().digits, rows.len())?;
        rows.iter().try_for_each(|row| {
            let words = row.a.words().len() + row.b.iter().map(|b| b.words().len()).sum::<usize>();
            OpsError::check_shape(step, "words of a packing row", 3 * poly_words(ring), words)
        })
    })
}

/// There are whole plaintexts.
pub(crate) fn ntt_db(ring: &RingContext, symbols: &[u32]) -> Result<(), OpsError> {
    let degree = ring.params().degree();
    OpsError::check_shape("ntt_db", "symbols", symbols.len() / degree * degree, symbols.len())
}

/// There are as many keys as queries, queries are modulo Q_e, and the tree has so many leaves.
pub(crate) fn expand(
    ring: &RingContext,
    keys: usize,
    queries: &[RlweCiphertext],
    rows: usize,
    folds: usize,
) -> Result<(), OpsError> {
    let step = "expand";
    OpsError::check_shape(step, "clients' keys", queries.len(), keys)?;
    let words = ring.full().limbs() * ring.full().degree();
    for query in queries {
        OpsError::check_shape(step, "words of a", words, query.a.words().len())?;
        OpsError::check_shape(step, "words of b", words, query.b.words().len())?;
    }
    OpsError::check_shape(step, "rows", rows.max(1), rows)?;
    let leaves = ring.params().leaves(rows, folds);
    OpsError::check_shape(step, "leaves", leaves.min(ring.params().max_leaves()), leaves)
}

/// All queries have as many whole entries, and bits to tell them apart. Returns the number of entries, 0 if there are no queries.
pub(crate) fn rgsw_fold<W: WordStore>(
    ring: &RingContext,
    entries: &[&RlweBatch<W>],
    planes: usize,
    bits: &[&[RlweBatch<W>]],
) -> Result<usize, OpsError> {
    let (step, words) = ("rgsw_fold", ciphertext_words(ring));
    OpsError::check_shape(step, "queries with bits", entries.len(), bits.len())?;
    OpsError::check_shape(step, "planes", planes.max(1), planes)?;
    let count = entries.first().map_or(0, |entries| entries.words.len() / (planes * words));
    let folds = bits.first().map_or(0, |bits| bits.len());
    let most = 1usize.checked_shl(folds as u32).unwrap_or(usize::MAX);
    let rows = 2 * ring.params().fold_gadget().digits;
    for (entries, bits) in entries.iter().zip(bits) {
        OpsError::check_shape(step, "words of a ciphertext", words, entries.ciphertext_words)?;
        OpsError::check_shape(step, "words of all entries", count * planes * words, entries.words.len())?;
        OpsError::check_shape(step, "entries", count.clamp(1, most), count)?;
        OpsError::check_shape(step, "folds", folds, bits.len())?;
        bits.iter().try_for_each(|bit| {
            OpsError::check_shape(step, "words of an RGSW ciphertext", rows * words, bit.words.len())
        })?;
    }
    Ok(count)
}

/// There are as many keys, and whole ciphertexts in each batch, of a set that packs pairs. Returns the number of pairs of a batch.
pub(crate) fn pack_pairs<W: WordStore>(
    ring: &RingContext,
    keys: usize,
    batches: &[&RlweBatch<W>],
) -> Result<usize, OpsError> {
    let (step, digits) = ("pack_pairs", ring.params().pack_gadget().digits);
    OpsError::check_shape(step, "digits of the gadget", digits.max(1), digits)?;
    OpsError::check_shape(step, "clients' keys", batches.len(), keys)?;
    let words = ciphertext_words(ring);
    let count = batches.first().map_or(0, |batch| batch.words.len() / words);
    for batch in batches {
        OpsError::check_shape(step, "words of a ciphertext", words, batch.ciphertext_words)?;
        OpsError::check_shape(step, "words of all ciphertexts", count * words, batch.words.len())?;
    }
    Ok(count / 2)
}

/// There are whole polynomials, those that are sent among them, each with a width in range and coefficients that it has.
pub(crate) fn mod_switch<W: WordStore>(
    ring: &RingContext,
    polys: &[&W],
    first: usize,
    sent: &[SentPoly],
) -> Result<(), OpsError> {
    let (step, words, end) = ("mod_switch", poly_words(ring), first + sent.len());
    for polys in polys {
        let count = polys.len() / words;
        OpsError::check_shape(step, "words of all polynomials", count * words, polys.len())?;
        OpsError::check_shape(step, "end of the polynomials", end.min(count), end)?;
    }
    sent.iter().try_for_each(|&SentPoly { bits, stride, count }| {
        OpsError::check_shape(step, "bits", bits.clamp(1, MAX_SWITCH_BITS) as usize, bits as usize)?;
        OpsError::check_shape(step, "stride of the coefficients", stride.max(1), stride)?;
        let most = ring.kept().degree().div_ceil(stride);
        OpsError::check_shape(step, "number of coefficients", count.min(most), count)
    })
}

/// The database is one modulo Q_1, and every query has one selector for each row of it.
pub(crate) fn rlwe_fold<W: WordStore>(
    ring: &RingContext,
    tiling: NttTiling,
    selectors: &[&RlweBatch<W>],
) -> Result<(), OpsError> {
    open_ntt_db(ring, tiling)?;
    rlwe_fold_words(tiling, ring.kept().moduli(), selectors.iter().map(|selectors| selectors.words.len()))
}

/// Checks that there is one modulus a limb, of at least 20 bits, and that every query has one selector (two polynomials) a row:
/// `selectors` are their numbers of words.
///
/// # Errors
/// [`OpsError::Shape`] if not.
pub fn rlwe_fold_words(
    tiling: NttTiling,
    moduli: &[Modulus],
    mut selectors: impl Iterator<Item = usize>,
) -> Result<(), OpsError> {
    let step = "rlwe_fold";
    OpsError::check_shape(step, "number of moduli", tiling.limbs(), moduli.len())?;
    for bits in moduli.iter().map(Modulus::bits) {
        let enough = bits.max(MIN_MODULUS_BITS);
        OpsError::check_shape(step, "bits of a modulus", enough as usize, bits as usize)?;
    }
    let words = tiling.rows() * RLWE_POLYS * tiling.poly_words();
    selectors.try_for_each(|query| OpsError::check_shape(step, "words of a query's selectors", words, query))
}
