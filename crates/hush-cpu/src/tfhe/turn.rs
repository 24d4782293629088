//! The product of ciphertexts and a power of X.

use hush_ops::{contract::RlweBatch, steps::poly_bytes};

use crate::{
    Cpu,
    ring::{CpuRing, montgomery_form, multiply},
};

/// Computes [`hush_ops::contract::TfheOps::run_turn`].
pub(super) fn turn(ring: &CpuRing, batch: &RlweBatch, power: usize) -> RlweBatch {
    let kept = &ring.kept;
    let mut factors = vec![0; kept.words()];
    montgomery_form(kept, ring.context().kept().inverse_monomial(power).words(), &mut factors);
    let mut words = [&batch.words[..], &batch.words[..]].concat();
    let (polys, turned) = words.split_at_mut(batch.words.len());
    for (poly, turned) in polys.chunks_exact(kept.words()).zip(turned.chunks_exact_mut(kept.words())) {
        multiply(kept, poly, &factors, turned);
    }
    RlweBatch { ciphertext_words: batch.ciphertext_words, words: words.into() }
}

hush_ops::footprint!(Cpu: Rotate, |step, batch| {
    // The ciphertexts as they were, turned, and folded.
    3 * batch * step.count * 2 * poly_bytes(&step.ring)
});
