//! The step `rotate`: ciphertexts times powers of X whose exponent is encrypted.

use super::*;

/// The shape of `rotate` by encrypted bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotate {
    /// The RLWE set.
    pub ring: RingParams,
    /// The number of ciphertexts.
    pub count: usize,
    /// The number of bits.
    pub bits: usize,
}

impl StepKind for Rotate {
    fn work(&self, batch: usize) -> Work {
        external_products(&self.ring, (batch * self.count * self.bits) as f64)
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let &Maker { backend, batch, .. } = make;
        let on = make.open(&self.ring)?;
        let bits = make.bits(&on, self.bits)?;
        let ciphertexts = make.of_each(&on, self.count)?;
        Ok(Box::new(move || {
            let ciphertexts: Vec<_> = ciphertexts.iter().collect();
            backend.rotate(&on.ring, &ciphertexts, &vec![&bits[..]; batch]).map(drop)
        }))
    }
}

/// Checks that all queries have the same number of whole ciphertexts, and the same number of bits, at most log2 N.
pub(crate) fn check<W: WordStore>(
    ring: &RingContext,
    ciphertexts: &[&RlweBatch<W>],
    bits: &[&[RlweBatch<W>]],
) -> Result<Rotate, OpsError> {
    let step = "rotate";
    let (count, bits) = check_bits(step, ring, ciphertexts, bits)?;
    OpsError::check_shape(step, "bits", bits.min(ring.params().degree().ilog2() as usize), bits)?;
    Ok(Rotate { ring: *ring.params(), count, bits })
}

/// Returns the ciphertexts, then the same ciphertexts times `X^-power`.
pub(crate) fn turn(ring: &RingContext, batch: &RlweBatch, power: usize) -> RlweBatch {
    let kept = ring.kept();
    let monomial = ring.kept().inverse_monomial(power);
    let turned = batch.words.chunks_exact(poly_words(ring)).flat_map(|words| {
        let mut poly: Poly<Eval> = Poly::from_words(words.to_vec(), kept.degree());
        kept.mul(&mut poly, &monomial);
        poly.into_words()
    });
    let words = batch.words.iter().copied().chain(turned).collect();
    RlweBatch { ciphertext_words: batch.ciphertext_words, words }
}
