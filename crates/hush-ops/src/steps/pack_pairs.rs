//! The step `pack_pairs`: two ciphertexts become one mask and two bodies.

use super::*;

/// Checks that the set packs pairs, that there is a key for each batch, and that all batches have the same number of whole
/// ciphertexts.
pub(crate) fn check<W: WordStore>(
    ring: &RingContext,
    keys: usize,
    batches: &[&RlweBatch<W>],
) -> Result<Respond, OpsError> {
    let step = "pack_pairs";
    let digits = ring.params().pack_gadget().digits;
    OpsError::check_shape(step, "digits of the gadget", digits.max(1), digits)?;
    OpsError::check_shape(step, "clients' keys", batches.len(), keys)?;
    let words = ciphertext_words(ring);
    let count = batches.first().map_or(0, |batch| batch.words.len() / words);
    for batch in batches {
        OpsError::check_shape(step, "words of a ciphertext", words, batch.ciphertext_words)?;
        OpsError::check_shape(step, "words of all ciphertexts", count * words, batch.words.len())?;
    }
    Ok(Respond { ring: *ring.params(), plaintexts: count / 2 * 2 })
}

/// Packs the pairs of one query.
pub(crate) fn reference(
    ring: &RingContext,
    keys: &EvaluationKeys,
    batch: &RlweBatch,
    pairs: usize,
) -> BatchWords {
    (0..pairs).flat_map(|pair| pack_pair(ring, keys, batch, 2 * pair)).collect()
}

/// Packs the ciphertexts `first` and `first + 1` into three polynomials.
fn pack_pair(ring: &RingContext, keys: &EvaluationKeys, batch: &RlweBatch, first: usize) -> Vec<u32> {
    let kept = ring.kept();
    let gadget = ring.params().pack_gadget();
    let [x, y] = [first, first + 1].map(|index| ciphertext(kept, batch.ciphertext(index)));
    let mut a = kept.zero();
    let mut b = [x.b, y.b];
    for (a_i, rows) in [x.a, y.a].iter().zip(&keys.pack) {
        for (digit, row) in decompose(kept, a_i, gadget).iter().zip(rows) {
            kept.mul_add(&mut a, digit, &row.a);
            b.iter_mut().zip(&row.b).for_each(|(b, row)| kept.mul_add(b, digit, row));
        }
    }
    let [b0, b1] = b;
    [a, b0, b1].into_iter().flat_map(Poly::into_words).collect()
}
