//! The step `ring_switch`: a ciphertext is switched to a small ring.

use super::*;

/// The shape of `ring_switch`, of one ciphertext.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingSwitch {
    /// The RLWE set.
    pub ring: RingParams,
}

impl StepKind for RingSwitch {
    /// Counts transforms of the small ring in proportion to its degree.
    fn work(&self, batch: usize) -> Work {
        let ring = &self.ring;
        let queries = batch as f64;
        let small = ring.switch().map_or(0.0, |switch| {
            let parts = ring.degree() / switch.degree();
            let transforms = parts * (2 + switch.gadget().digits) + switch.rank() + 1;
            (transforms * switch.limbs() * switch.degree()) as f64 / ring.degree() as f64
        });
        switches(ring, 2.0 * queries) + Work { transforms: queries * small, ..Work::default() }
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let &Maker { backend, batch, .. } = make;
        let on = make.open(&self.ring)?;
        let keys = on.keys()?;
        let ciphertexts = make.of_each(&on, 1)?;
        Ok(Box::new(move || {
            let ciphertexts: Vec<_> = ciphertexts.iter().collect();
            backend.ring_switch(&on.ring, &vec![&keys; batch], &ciphertexts).map(drop)
        }))
    }
}

/// Checks that the set has a small ring, that there is a key for each query, and that every query has a ciphertext.
pub(crate) fn check<W: WordStore>(
    ring: &RingContext,
    keys: usize,
    ciphertexts: &[&RlweBatch<W>],
) -> Result<RingSwitch, OpsError> {
    let step = "ring_switch";
    let words = ciphertext_words(ring);
    OpsError::check_shape(step, "small rings", 1, usize::from(ring.switched().is_some()))?;
    OpsError::check_shape(step, "clients' keys", ciphertexts.len(), keys)?;
    for batch in ciphertexts {
        OpsError::check_shape(step, "words of a ciphertext", words, batch.words.len().min(words))?;
    }
    Ok(RingSwitch { ring: *ring.params() })
}
