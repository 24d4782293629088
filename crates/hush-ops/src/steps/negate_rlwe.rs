//! Ciphertexts whose messages are negated.

use super::*;

/// `negate_rlwe`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NegateRlwe {
    /// The RLWE set.
    pub ring: RingParams,
    /// The number of ciphertexts.
    pub count: usize,
}

impl StepKind for NegateRlwe {
    fn work(&self, batch: usize) -> Work {
        Work { bytes: ciphertext_bytes(&self.ring, (batch * self.count) as f64), ..Work::default() }
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let (backend, on) = (make.backend, make.open(&self.ring)?);
        let mut batch = make.ciphertexts(&on, self.count)?;
        Ok(make.one_by_one(move || backend.negate_rlwe(&on.ring, &mut batch)))
    }
}

/// Checks that the ciphertexts are those of the set.
pub(crate) fn check<W: WordStore>(ring: &RingContext, batch: &RlweBatch<W>) -> Result<NegateRlwe, OpsError> {
    OpsError::check_shape(
        "negate_rlwe",
        "words of a ciphertext",
        ciphertext_words(ring),
        batch.ciphertext_words,
    )?;
    Ok(NegateRlwe { ring: *ring.params(), count: batch.count() })
}

/// Negates in place.
pub(crate) fn reference(ring: &RingContext, batch: &mut RlweBatch) {
    let kept = ring.kept();
    for (index, limb) in batch.words.chunks_exact_mut(kept.degree()).enumerate() {
        let p = kept.moduli()[index % kept.limbs()];
        limb.iter_mut().for_each(|word| *word = p.sub(0, *word));
    }
}
