//! Ciphertexts added to others.

use hush_he::params::RingContext;

use crate::contract::RlweBatch;

/// As [`crate::contract::PackOps::add_rlwe`].
pub(super) fn add_rlwe(ring: &RingContext, sum: &mut RlweBatch, first: usize, part: &RlweBatch) {
    let kept = ring.kept();
    let limbs = sum.words[first * sum.ciphertext_words..].chunks_exact_mut(kept.degree());
    for (index, (sum, part)) in limbs.zip(part.words.chunks_exact(kept.degree())).enumerate() {
        let p = kept.moduli()[index % kept.limbs()];
        sum.iter_mut().zip(part).for_each(|(sum, &part)| *sum = p.add(*sum, part));
    }
}
