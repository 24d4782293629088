//! TLWE queries: encryption by the client, reading by the server.

use hush_math::csprng::Csprng;
use zeroize::Zeroizing;

use super::encrypt_rlwe::error_table;
use crate::{
    HeError,
    codec::{pack_wide, unpack_wide},
    entities::{RingSecrets, TlweWords},
    params::{QUERY_SEED_BYTES, RingContext, Tlwe},
};

/// Encrypts `selectors` and `bits` as [`super::encrypt_ring_query`] does, but as TLWE words: one for each selector, then one for
/// each fold and digit.
///
/// Word v has the message `round(m 2^w / Q_1)`, where m is `Delta selectors[v]` or `g_k bits[f]`. Constant time in secrets and
/// messages. Source: PPIR algorithm 1, with a modulus as long as the digits together.
///
/// # Panics
/// If the set does not have TLWE words.
pub fn encrypt_tlwe_query(
    context: &RingContext,
    secrets: &RingSecrets,
    selectors: &[u32],
    bits: &[u32],
    rng: &mut Csprng,
) -> Vec<u8> {
    let params = context.params();
    let q = context.kept().rns().product();
    let tlwe = params.tlwe().expect("a set of TLWE words");
    let mut seed = [0; QUERY_SEED_BYTES];
    rng.fill_bytes(&mut seed);
    let gadget = params.fold_gadget();
    // Scaled are the unit of a selector, and the unit of a bit for every digit.
    let scaled = |message: u128| ((message << tlwe.bits()) + q / 2) / q;
    let delta = scaled(context.delta()) as u32;
    let factors: Vec<u32> = (0..gadget.digits).map(|k| scaled(1 << gadget.log2_factor(k)) as u32).collect();
    let selectors = selectors.iter().map(|selector| selector.wrapping_mul(delta));
    let bits = bits.iter().flat_map(|&bit| factors.iter().map(move |factor| factor.wrapping_mul(bit)));
    let mut words: Zeroizing<Vec<u32>> = Zeroizing::new(selectors.chain(bits).collect());
    if let Some(errors) = error_table(params) {
        errors.add_to(rng, &mut words);
    }
    for (leaf, word) in (0..).zip(words.iter_mut()) {
        let mask = mask(tlwe, &seed, leaf);
        let product = mask.iter().zip(secrets.tlwe.iter());
        *word = product.fold(*word, |word, (&a, &t)| word.wrapping_sub(a.wrapping_mul(t)));
    }
    let modulus = (1u128 << tlwe.bits()) - 1;
    let mut out = seed.to_vec();
    pack_wide(words.iter().map(|&word| u128::from(word) & modulus), tlwe.bits(), &mut out);
    out
}

/// Reads a query over `rows` rows and `folds` folds.
///
/// # Errors
/// [`HeError::PackedLength`] if its length is not [`crate::params::RingParams::query_bytes`].
///
/// # Panics
/// If the set does not have TLWE words.
pub fn open_tlwe_query(
    context: &RingContext,
    rows: usize,
    folds: usize,
    query: &[u8],
) -> Result<TlweWords, HeError> {
    let params = context.params();
    let tlwe = params.tlwe().expect("a set of TLWE words");
    let expected = params.query_bytes(rows, folds);
    let actual = query.len();
    let leaves = params.leaves(rows, folds);
    let Some((seed, words)) = query.split_first_chunk().filter(|_| expected == actual) else {
        return Err(HeError::PackedLength { expected, actual });
    };
    let masks = (0..leaves).flat_map(|leaf| mask(tlwe, seed, leaf)).collect();
    let bodies = unpack_wide(words, leaves, tlwe.bits())?.map(|word| word as u32).collect();
    Ok(TlweWords { masks, bodies })
}

/// Returns the mask of a leaf: n words below `2^bits`.
fn mask(tlwe: &Tlwe, seed: &[u8; QUERY_SEED_BYTES], leaf: usize) -> Vec<u32> {
    let mut rng = Csprng::public("hushdb v1 2026 TLWE query mask", seed, leaf as u64);
    (0..tlwe.n()).map(|_| rng.next_u32() >> (u32::BITS - tlwe.bits())).collect()
}
