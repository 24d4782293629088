//! Checks of [`crate::contract::ColumnOps`].

use hush_he::params::RingContext;
use hush_math::poly::{Coeff, Poly};

use super::lwe::lwe_fold;
use crate::{
    OpsError,
    contract::{ChainPolys, LweBatch, LweQueries, PACK_BYTES, PowerKeys, WordStore, poly_words},
    pack_shape::PackShape,
    tiling::Tiling,
};

/// A hint of `words` words has 1 to N rows of N, and there is one digit.
pub(crate) fn chain_hint(ring: &RingContext, words: usize) -> Result<(), OpsError> {
    let (step, degree) = ("chain_hint", ring.kept().degree());
    OpsError::check_shape(step, "digits of the gadget", 1, ring.params().fold_gadget().digits)?;
    let rows = (words / degree).clamp(1, degree);
    OpsError::check_shape(step, "words of the hint", rows * degree, words)
}

/// There are polynomials for every plaintext, of canonical words, and powers of X tell the entries apart.
pub(crate) fn open_chain(ring: &RingContext, shape: &PackShape, polys: &ChainPolys) -> Result<(), OpsError> {
    let step = "open_chain";
    OpsError::check_shape(step, "degree", ring.kept().degree(), shape.degree())?;
    let (entries, words) = (shape.entries(), shape.plaintexts() * poly_words(ring));
    OpsError::check_shape(step, "words of digits", words, polys.digits.len())?;
    if !polys.masks.is_empty() {
        OpsError::check_shape(step, "entries", entries.min(2 * shape.degree()), entries)?;
        OpsError::check_shape(step, "words of masks", words, polys.masks.len())?;
    }
    residues(ring, step, "words of digits below their primes", &polys.digits)?;
    residues(ring, step, "words of masks below their primes", &polys.masks)
}

/// Checks that all words of polynomials are below their primes.
///
/// # Errors
/// [`OpsError::Shape`] for `what` with their number if some are not.
pub fn residues(
    ring: &RingContext,
    step: &'static str,
    what: &'static str,
    words: &[u32],
) -> Result<(), OpsError> {
    let limbs = words.chunks(ring.kept().degree()).zip(ring.kept().moduli().iter().cycle());
    let canonical = limbs.map(|(limb, p)| limb.iter().filter(|&&word| word < p.value()).count()).sum();
    OpsError::check_shape(step, what, words.len(), canonical)
}

/// Columns, folded words and keys are of one shape and as many queries.
pub(crate) fn pack_columns<W: WordStore>(
    ring: &RingContext,
    shape: &PackShape,
    columns: Tiling,
    folded: &LweBatch<W>,
    keys: &LweQueries,
    conjugations: &[&Poly<Coeff>],
) -> Result<(), OpsError> {
    let step = "pack_columns";
    OpsError::check_shape(step, "rows of the columns", shape.rows(), columns.rows())?;
    OpsError::check_shape(step, "pack columns", PACK_BYTES * shape.degree(), columns.cols())?;
    lwe_fold(columns, keys)?;
    OpsError::check_shape(step, "conjugation keys", keys.batch(), conjugations.len())?;
    for poly in conjugations {
        OpsError::check_shape(step, "words of a conjugation key", poly_words(ring), poly.words().len())?;
    }
    check_rows(step, shape, folded, conjugations.len())
}

/// Packed words and RGSW ciphertexts are of one shape and as many queries, and the chain has masks.
pub(crate) fn rgsw_power_fold<W: WordStore>(
    ring: &RingContext,
    shape: &PackShape,
    has_masks: bool,
    packed: &LweBatch<W>,
    powers: PowerKeys<'_>,
) -> Result<(), OpsError> {
    let step = "rgsw_power_fold";
    OpsError::check_shape(step, "chains with masks", 1, usize::from(has_masks))?;
    let rows = if shape.entries() > 1 { 2 } else { 0 };
    for &body in powers.bodies {
        let body = body.map_or(&[][..], |body| body);
        OpsError::check_shape(step, "rows of an RGSW ciphertext", rows, body.len())?;
        for poly in powers.masks[..rows].iter().map(Poly::words).chain(body.iter().map(Poly::words)) {
            OpsError::check_shape(
                step,
                "words of an RGSW ciphertext's polynomial",
                poly_words(ring),
                poly.len(),
            )?;
        }
    }
    check_rows(step, shape, packed, powers.bodies.len())
}

fn check_rows<W: WordStore>(
    step: &'static str,
    shape: &PackShape,
    batch: &LweBatch<W>,
    queries: usize,
) -> Result<(), OpsError> {
    OpsError::check_shape(step, "rows", shape.rows(), batch.rows)?;
    OpsError::check_shape(step, "words of all queries", shape.rows() * queries, batch.words.len())
}
