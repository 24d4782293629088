//! The step `add_rlwe`: ciphertexts are added to others.

use super::*;

/// The shape of `add_rlwe`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AddRlwe {
    /// The RLWE set.
    pub ring: RingParams,
    /// The number of ciphertexts that are added.
    pub count: usize,
}

impl StepKind for AddRlwe {
    fn work(&self, batch: usize) -> Work {
        Work { bytes: ciphertext_bytes(&self.ring, (batch * self.count) as f64), ..Work::default() }
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let backend = make.backend;
        let on = make.open(&self.ring)?;
        let mut sum = make.ciphertexts(&on, self.count)?;
        let part = make.ciphertexts(&on, self.count)?;
        Ok(make.one_by_one(move || backend.add_rlwe(&on.ring, &mut sum, 0, &part)))
    }
}

/// Checks that `sum` has the ciphertexts to which those of `part` are added.
pub(crate) fn check<W: WordStore>(
    ring: &RingContext,
    sum: &RlweBatch<W>,
    first: usize,
    part: &RlweBatch<W>,
) -> Result<AddRlwe, OpsError> {
    let step = "add_rlwe";
    let words = ciphertext_words(ring);
    OpsError::check_shape(step, "words of a ciphertext", words, sum.ciphertext_words)?;
    OpsError::check_shape(step, "words of a ciphertext", words, part.ciphertext_words)?;
    OpsError::check_shape(step, "first ciphertext", first.min(sum.count()), first)?;
    let room = sum.words.len() - first * words;
    OpsError::check_shape(step, "words to add", part.words.len().min(room), part.words.len())?;
    Ok(AddRlwe { ring: *ring.params(), count: part.count() })
}

/// Adds `part` to `sum` in place.
pub(crate) fn reference(ring: &RingContext, sum: &mut RlweBatch, first: usize, part: &RlweBatch) {
    let kept = ring.kept();
    let limbs = sum.words[first * sum.ciphertext_words..].chunks_exact_mut(kept.degree());
    for (index, (sum, part)) in limbs.zip(part.words.chunks_exact(kept.degree())).enumerate() {
        let p = kept.moduli()[index % kept.limbs()];
        sum.iter_mut().zip(part).for_each(|(sum, &part)| *sum = p.add(*sum, part));
    }
}
