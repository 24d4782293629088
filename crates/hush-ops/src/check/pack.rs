//! Checks of [`crate::contract::PackOps`].

use std::ops::Range;

use hush_he::params::RingContext;

use super::ring;
use crate::{
    OpsError,
    contract::{LweBatch, RlweBatch, WordStore, ciphertext_words},
    ntt_tiling::NttTiling,
    pack_shape::PackShape,
};

/// The columns are in the shape, the shape in the ring, and the hint of `hint` words has n for every row.
pub(crate) fn lift_hint(
    ring: &RingContext,
    hint: usize,
    n: usize,
    shape: &PackShape,
    columns: &Range<usize>,
) -> Result<(), OpsError> {
    let step = "lift_hint";
    check_columns(step, ring, shape, columns)?;
    let rows = shape.rows_of(columns.clone()).len();
    OpsError::check_shape(step, "words of the hint", rows * n, hint)
}

/// Hint, folded words and selectors are of one shape and as many queries.
pub(crate) fn pack<W: WordStore>(
    ring: &RingContext,
    hint: NttTiling,
    folded: &LweBatch<W>,
    shape: &PackShape,
    columns: &Range<usize>,
    selectors: &[&RlweBatch<W>],
) -> Result<(), OpsError> {
    let step = "pack";
    check_columns(step, ring, shape, columns)?;
    OpsError::check_shape(step, "columns of the hint", columns.len(), hint.columns())?;
    OpsError::check_shape(step, "rows of the fold", shape.rows(), folded.rows)?;
    OpsError::check_shape(step, "words of the fold", shape.rows() * selectors.len(), folded.words.len())?;
    ring::rlwe_fold(ring, hint, selectors)
}

/// There are ciphertexts to add to.
pub(crate) fn add_rlwe<W: WordStore>(
    ring: &RingContext,
    sum: &RlweBatch<W>,
    first: usize,
    part: &RlweBatch<W>,
) -> Result<(), OpsError> {
    let (step, words) = ("add_rlwe", ciphertext_words(ring));
    OpsError::check_shape(step, "words of a ciphertext", words, sum.ciphertext_words)?;
    OpsError::check_shape(step, "words of a ciphertext", words, part.ciphertext_words)?;
    OpsError::check_shape(step, "first ciphertext", first.min(sum.count()), first)?;
    let room = sum.words.len() - first * words;
    OpsError::check_shape(step, "words to add", part.words.len().min(room), part.words.len())
}

/// Ciphertexts are whole entries, and their switched halves fill words. Returns the words of an entry.
pub(crate) fn reinterpret_rlwe<W: WordStore>(
    ring: &RingContext,
    packed: &RlweBatch<W>,
    planes: usize,
) -> Result<usize, OpsError> {
    let step = "reinterpret_rlwe";
    OpsError::check_shape(step, "words of a ciphertext", ciphertext_words(ring), packed.ciphertext_words)?;
    OpsError::check_shape(step, "planes", planes.max(1), planes)?;
    let whole = packed.count() / planes * planes * packed.ciphertext_words;
    OpsError::check_shape(step, "words of all entries", whole, packed.words.len())?;
    let bits = ring.params().response_bits();
    let total = (bits.a + bits.b) as usize;
    OpsError::check_shape(step, "bits of a switched coefficient", total.next_multiple_of(32), total)?;
    Ok(planes * ring.params().degree() * (total / 32))
}

fn check_columns(
    step: &'static str,
    ring: &RingContext,
    shape: &PackShape,
    columns: &Range<usize>,
) -> Result<(), OpsError> {
    OpsError::check_shape(step, "degree", ring.params().degree(), shape.degree())?;
    let bits = ring.params().plaintext_bits();
    OpsError::check_shape(step, "plaintext bits", bits.min(u32::BITS - 1) as usize, bits as usize)?;
    OpsError::check_shape(step, "end of the columns", columns.end.min(shape.plaintexts()), columns.end)?;
    OpsError::check_shape(step, "start of the columns", columns.start.min(columns.end), columns.start)
}
