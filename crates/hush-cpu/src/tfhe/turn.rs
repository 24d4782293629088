//! Ciphertexts times a power of X.

use hush_math::poly::{Coeff, Poly};
use hush_ops::contract::RlweBatch;

use crate::ring::{CpuRing, montgomery_form, multiply};

/// As [`hush_ops::contract::TfheOps::run_turn`].
pub(super) fn turn(ring: &CpuRing, batch: &RlweBatch, power: usize) -> RlweBatch {
    let (kept, plain) = (&ring.kept, ring.context().kept());
    let mut monomial = Poly::<Coeff>::zero(plain.limbs(), plain.degree());
    // X^-power = -X^(N - power)
    for (limb, p) in plain.moduli().iter().enumerate() {
        monomial.limb_mut(limb)[plain.degree() - power] = p.value() - 1;
    }
    let mut factors = vec![0; kept.words()];
    montgomery_form(kept, plain.forward(monomial).words(), &mut factors);
    let mut words = [&batch.words[..], &batch.words[..]].concat();
    let (polys, turned) = words.split_at_mut(batch.words.len());
    for (poly, turned) in polys.chunks_exact(kept.words()).zip(turned.chunks_exact_mut(kept.words())) {
        multiply(kept, poly, &factors, turned);
    }
    RlweBatch { ciphertext_words: batch.ciphertext_words, words: words.into() }
}
