//! What the steps over rings refuse: one place, so that all backends refuse alike.

use hush_he::{
    entities::{EvaluationKeys, KeySwitchKey, RlweCiphertext},
    params::RingContext,
};
use hush_math::gadget::Gadget;

use crate::{OpsError, contract::RlweBatch, ntt_tiling::NttTiling};

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

/// Checks a query and what it is to become.
///
/// # Errors
/// [`OpsError::Shape`] if the query is not modulo Q_e, or the tree has not so many leaves.
pub fn check_expand(
    ring: &RingContext,
    query: &RlweCiphertext,
    rows: usize,
    folds: usize,
) -> Result<(), OpsError> {
    let step = "expand";
    let words = ring.full().limbs() * ring.full().degree();
    OpsError::check_shape(step, "words of a", words, query.a.words().len())?;
    OpsError::check_shape(step, "words of b", words, query.b.words().len())?;
    OpsError::check_shape(step, "rows", rows.max(1), rows)?;
    let leaves = ring.params().leaves(rows, folds);
    OpsError::check_shape(step, "leaves", leaves.min(ring.params().max_leaves()), leaves)
}

/// Checks that there are entries, and bits to tell them apart.
///
/// # Errors
/// [`OpsError::Shape`] if not.
pub fn check_rgsw_fold(ring: &RingContext, entries: &[u32], bits: &[RlweBatch]) -> Result<(), OpsError> {
    let (step, words) = ("rgsw_fold", ciphertext_words(ring));
    let count = entries.len() / words;
    OpsError::check_shape(step, "words of all entries", count * words, entries.len())?;
    let most = 1usize.checked_shl(bits.len() as u32).unwrap_or(usize::MAX);
    OpsError::check_shape(step, "entries", count.clamp(1, most), count)?;
    let rows = 2 * ring.params().fold_gadget().digits;
    bits.iter().try_for_each(|bit| {
        OpsError::check_shape(step, "words of an RGSW ciphertext", rows * words, bit.words.len())
    })
}

/// Checks that there are two ciphertexts, of a set that packs pairs.
///
/// # Errors
/// [`OpsError::Shape`] if not.
pub fn check_pair(ring: &RingContext, pair: &RlweBatch) -> Result<(), OpsError> {
    let (step, digits) = ("pack_pair", ring.params().pack_gadget().digits);
    OpsError::check_shape(step, "digits of the gadget", digits.max(1), digits)?;
    OpsError::check_shape(step, "words of the pair", 2 * ciphertext_words(ring), pair.words.len())
}

/// Checks that there is a polynomial for every width.
///
/// # Errors
/// [`OpsError::Shape`] if not, or if a width is out of range.
pub fn check_mod_switch(ring: &RingContext, polys: &[u32], bits: &[u32]) -> Result<(), OpsError> {
    let step = "mod_switch";
    OpsError::check_shape(step, "words of all polynomials", bits.len() * poly_words(ring), polys.len())?;
    bits.iter().try_for_each(|&bits| {
        OpsError::check_shape(step, "bits", bits.clamp(1, MAX_SWITCH_BITS) as usize, bits as usize)
    })
}
