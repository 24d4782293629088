//! Conversions between ciphertexts as entities and as the words of a batch.

use hush_he::entities::RlweCiphertext;
use hush_math::{
    poly::{Eval, Poly},
    ring::Ring,
};

use crate::contract::{RLWE_POLYS, RlweBatch};

/// Creates a ciphertext from its words in a batch.
pub(crate) fn ciphertext(ring: &Ring, words: &[u32]) -> RlweCiphertext {
    let (a, b) = words.split_at(words.len() / RLWE_POLYS);
    let poly = |words: &[u32]| Poly::<Eval>::from_words(words.to_vec(), ring.degree());
    RlweCiphertext { a: poly(a), b: poly(b) }
}

/// Creates a batch from ciphertexts of one ring.
pub(crate) fn batch(ring: &Ring, ciphertexts: impl IntoIterator<Item = RlweCiphertext>) -> RlweBatch {
    let ciphertext_words = RLWE_POLYS * ring.limbs() * ring.degree();
    let words = ciphertexts.into_iter().flat_map(|c| [c.a, c.b].map(Poly::into_words)).flatten().collect();
    RlweBatch { ciphertext_words, words }
}

/// Computes `x += y`.
pub(crate) fn add(ring: &Ring, x: &mut RlweCiphertext, y: &RlweCiphertext) {
    ring.add(&mut x.a, &y.a);
    ring.add(&mut x.b, &y.b);
}

/// Computes `x -= y`.
pub(crate) fn sub(ring: &Ring, x: &mut RlweCiphertext, y: &RlweCiphertext) {
    ring.sub(&mut x.a, &y.a);
    ring.sub(&mut x.b, &y.b);
}
