//! What the steps over rings refuse: one place, so that all backends refuse alike.

use std::ops::Range;

use hush_he::{
    entities::{EvaluationKeys, KeySwitchKey, RlweCiphertext},
    params::RingContext,
};
use hush_math::gadget::Gadget;

use super::shapes;
use crate::{
    OpsError,
    contract::{RlweBatch, WordStore},
    ntt_tiling::NttTiling,
};

/// Most bits to which a coefficient can be switched.
const MAX_SWITCH_BITS: u32 = 48;

/// Words of a ciphertext modulo Q_1.
pub fn ciphertext_words(ring: &RingContext) -> usize {
    2 * poly_words(ring)
}

/// Words of a polynomial modulo Q_1.
pub fn poly_words(ring: &RingContext) -> usize {
    ring.kept().limbs() * ring.kept().degree()
}

/// Checks that a database is one modulo Q_1.
///
/// # Errors
/// [`OpsError::Shape`] if not.
pub fn check_db(ring: &RingContext, tiling: NttTiling) -> Result<(), OpsError> {
    let step = "open_ntt_db";
    OpsError::check_shape(step, "degree", ring.kept().degree(), tiling.degree())?;
    OpsError::check_shape(step, "limbs", ring.kept().limbs(), tiling.limbs())
}

/// Checks that keys have the rows and limbs of the parameter set.
///
/// # Errors
/// [`OpsError::Shape`] if not.
pub fn check_keys(ring: &RingContext, keys: &EvaluationKeys) -> Result<(), OpsError> {
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

/// Checks that there are whole plaintexts.
///
/// # Errors
/// [`OpsError::Shape`] if not.
pub fn check_symbols(ring: &RingContext, symbols: &[u32]) -> Result<(), OpsError> {
    let degree = ring.params().degree();
    OpsError::check_shape("ntt_db", "symbols", symbols.len() / degree * degree, symbols.len())
}

/// Checks queries, their keys, and what they are to become.
///
/// # Errors
/// [`OpsError::Shape`] if there are not as many keys, a query is not modulo Q_e, or the tree has not so many leaves.
pub fn check_expand(
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

/// Checks that all queries have as many whole entries, and bits to tell them apart; returns the number of entries, 0 if there
/// are no queries.
///
/// # Errors
/// [`OpsError::Shape`] if not.
pub fn check_rgsw_fold<W: WordStore>(
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

/// Checks that there are as many keys, and whole ciphertexts in each batch, of a set that packs pairs; returns the number of
/// pairs of a batch.
///
/// # Errors
/// [`OpsError::Shape`] if not.
pub fn check_pairs<W: WordStore>(
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

/// Checks that there are whole polynomials, those of `which` among them, and a width for each of these.
///
/// # Errors
/// [`OpsError::Shape`] if not, or if a width is out of range.
pub fn check_mod_switch<W: WordStore>(
    ring: &RingContext,
    polys: &[&W],
    which: &Range<usize>,
    bits: &[u32],
) -> Result<(), OpsError> {
    let (step, words) = ("mod_switch", poly_words(ring));
    OpsError::check_shape(step, "widths", which.len(), bits.len())?;
    for polys in polys {
        let count = polys.len() / words;
        OpsError::check_shape(step, "words of all polynomials", count * words, polys.len())?;
        OpsError::check_shape(step, "end of the polynomials", which.end.min(count), which.end)?;
    }
    bits.iter().try_for_each(|&bits| {
        OpsError::check_shape(step, "bits", bits.clamp(1, MAX_SWITCH_BITS) as usize, bits as usize)
    })
}

/// Checks that every query has one selector (two polynomials) for each row of the database.
///
/// # Errors
/// [`OpsError::Shape`] if not.
pub fn check_selectors<W: WordStore>(
    ring: &RingContext,
    tiling: NttTiling,
    selectors: &[&RlweBatch<W>],
) -> Result<(), OpsError> {
    check_db(ring, tiling)?;
    let words: Vec<usize> = selectors.iter().map(|selectors| selectors.words.len()).collect();
    shapes::check_rlwe_fold(tiling, ring.kept().moduli(), &words)
}
