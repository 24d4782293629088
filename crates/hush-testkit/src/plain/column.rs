//! The fold of column packing without encryption.

use hush_he::params::RingContext;
use hush_math::poly::{Coeff, Poly};
use hush_ops::{
    contract::{LweBatch, PowerKeys, RlweBatch, ciphertext_words, lift_words},
    pack_shape::PackShape,
};

/// Takes the planes of the entry that the power of X names.
pub(super) fn power_fold(
    ring: &RingContext,
    shape: &PackShape,
    packed: &LweBatch,
    powers: PowerKeys<'_>,
) -> RlweBatch {
    let (kept, ciphertext_words) = (ring.kept(), ciphertext_words(ring));
    let plane_words = shape.planes() * ciphertext_words;
    let mut folded = vec![0; powers.bodies.len() * plane_words];
    let queries = packed.words.chunks_exact(shape.rows()).zip(powers.bodies);
    for ((words, &power), planes) in queries.zip(folded.chunks_exact_mut(plane_words)) {
        let entry = entry(ring, shape, power);
        for (plane, ciphertext) in planes.chunks_exact_mut(ciphertext_words).enumerate() {
            let column = entry * shape.planes() + plane;
            if column < shape.plaintexts() {
                let b = kept.forward(lift_words(kept, &words[shape.plaintext_rows(column)]));
                ciphertext[ciphertext_words / 2..].copy_from_slice(b.words());
            }
        }
    }
    RlweBatch { ciphertext_words, words: folded.into() }
}

/// The entry that an RGSW ciphertext without encryption selects: the one row that meets the digit of b is `g X^power`.
fn entry(ring: &RingContext, shape: &PackShape, power: Option<&[Poly<Coeff>; 2]>) -> usize {
    let Some([_, monomial]) = power else { return 0 };
    let kept = ring.kept();
    let value = |at: usize| kept.rns().lift_centred(|limb| monomial.limb(limb)[at]);
    let at = (0..kept.degree()).max_by_key(|&at| value(at).unsigned_abs()).unwrap_or(0);
    let power = if value(at) < 0 { at + kept.degree() } else { at };
    power * shape.entries().next_power_of_two() / (2 * kept.degree())
}
