//! Queries of the packing protocols: vectors over LWE under a fresh secret, and that secret under RLWE.

use hush_math::csprng::Csprng;

use super::{encrypt_lwe::encrypt_lwe_vectors, encrypt_ring_query};
use crate::{
    entities::{LweDecryptionKey, OneTimeLweSecret, PublicMatrix, RingSecrets},
    params::{PackParams, RingContext},
};

/// A public matrix with a small vector over its rows: `(row, coefficient)` wherever the coefficient is not 0.
pub type SparseVector<'a> = (&'a PublicMatrix, &'a [(u32, u8)]);

/// Encrypts `vectors` over LWE under a fresh secret s. Encrypts s and `bits` (one for each fold) into a packed query (ExpPack).
/// `context` belongs to the RLWE set of `params`. Returns the LWE words of each vector, the packed query and a decryption key.
///
/// The matrices are fixed, so s and its packed query must be fresh for every query; one call makes both. Most protocols have no
/// use for the decryption key, as the server removes s from its answer. Source:
/// VIPIR section 3.5 and appendix C.2.
///
/// # Panics
/// If [`super::encrypt_lwe()`] panics; if two matrices have one domain; if there are more leaves than the tree can have.
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
