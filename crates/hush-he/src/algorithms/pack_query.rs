//! Queries of the protocols that pack: vectors over LWE under a secret of their own, and that secret under RLWE.

use hush_math::csprng::Csprng;

use super::{encrypt_lwe::encrypt_lwe_vectors, encrypt_ring_query};
use crate::{
    entities::{LweDecryptionKey, OneTimeLweSecret, PublicMatrix, RingSecrets},
    params::{PackParams, RingContext},
};

/// A small vector over the rows of a public matrix: `(row, coefficient)` where it is not 0.
pub type SparseVector<'a> = (&'a PublicMatrix, &'a [(u32, u8)]);

/// Encrypts `vectors` over LWE under a fresh secret s, and s together with `bits` (of the folds) into a packed query
/// (ExpPack). `context` is that of `params`' RLWE set.
///
/// s must be fresh for every query, as the matrices are fixed, and so must be the packed query, which is why neither is made
/// alone. What is left of s decrypts; most protocols have no use for it, as the server takes s out of its answer. Source:
/// VIPIR section 3.5 and appendix C.2.
///
/// # Panics
/// As [`super::encrypt_lwe()`]; if two matrices are of one domain; if the leaves do not fit the tree.
pub fn encrypt_pack_query<const COUNT: usize>(
    params: &PackParams,
    context: &RingContext,
    secrets: &RingSecrets,
    vectors: [SparseVector<'_>; COUNT],
    bits: &[u32],
    rng: &mut Csprng,
) -> ([Vec<u32>; COUNT], Vec<u8>, LweDecryptionKey) {
    let secret = OneTimeLweSecret::sample(params.lwe(), rng);
    let words = encrypt_lwe_vectors(params.lwe(), &secret, vectors, rng);
    let packed = encrypt_ring_query(context, secrets, secret.words(), bits, rng);
    (words, packed, secret.into_decryption_key())
}
