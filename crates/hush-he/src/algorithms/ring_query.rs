//! Queries of the ring protocols: one RLWE ciphertext whose coefficients become selectors and RGSW rows.
//!
//! A query travels *truncated*: the seed of a, and only the coefficients of b that carry messages, without their low bits.
//! The expansion tree separates the omitted coefficients from the others exactly (`docs/explanation/protocols/onion.md`). The
//! server divides the query by the factor that the tree multiplies it by, so that the tree does not amplify its errors. Sets
//! that reproduce a paper's traffic have *whole* queries: both halves, one word for each residue.

use std::ops::Range;

use hush_math::{
    csprng::Csprng,
    poly::{Coeff, Poly},
    ring::Ring,
};
use zeroize::Zeroizing;

use super::{
    encrypt_rlwe::{encrypt_rlwe, error_table},
    round_coefficients::{round_coefficients, rounded_bytes, unround_coefficients},
};
use crate::{
    HeError,
    entities::{RingSecrets, RlweCiphertext},
    params::{QUERY_SEED_BYTES, RingContext},
};

/// Encrypts `selectors` and `bits` under a fresh mask. `selectors` has a small coefficient modulo 2^32 for every row; `t/2` times
/// their sum must be far below Delta. `bits` has 0 or 1 for every fold.
///
/// Leaf v of the expansion gets `Delta selectors[v]` for the rows, then `g_k bits[f]` for each fold f and digit k. Both are
/// multiplied by P, which the server drops.
///
/// Constant time in secrets and messages. Source: OnionPIRv2 section 3.3, algorithm 1; this project added scaling and truncation.
///
/// # Panics
/// If there are more leaves than the tree can have.
pub fn encrypt_ring_query(
    context: &RingContext,
    secrets: &RingSecrets,
    selectors: &[u32],
    bits: &[u32],
    rng: &mut Csprng,
) -> Vec<u8> {
    let params = context.params();
    let ring = context.full();
    let rows = selectors.len();
    let leaves = params.leaves(rows, bits.len());
    assert!(leaves <= params.max_leaves(), "{leaves} leaves, room for {}", params.max_leaves());
    let mut seed = [0; QUERY_SEED_BYTES];
    rng.fill_bytes(&mut seed);
    let message = Zeroizing::new(messages(context, selectors, bits));
    let message = Zeroizing::new(ring.forward((*message).clone()));
    let errors = error_table(params);
    let a = mask(ring, &seed);
    let b = encrypt_rlwe(ring, &secrets.query.eval(ring), &a, &message, errors.as_ref(), rng);
    if params.whole_query() {
        return [a.words(), b.words()].concat().iter().flat_map(|word| word.to_le_bytes()).collect();
    }
    let mut out = seed.to_vec();
    for (leaves, dropped) in
        [(0..rows, params.selector_dropped_bits()), (rows..leaves, params.query_dropped_bits())]
    {
        round_coefficients(ring, &b, params.query_positions(leaves), dropped, &mut out);
    }
    out
}

/// Reads a query over `rows` rows and `folds` folds, and divides it by `2^h`, by which a tree of h levels multiplies it.
///
/// # Errors
/// [`HeError::PackedLength`] if its length is not [`crate::params::RingParams::query_bytes`], [`HeError::Coefficient`] if a
/// coefficient is not below Q_e.
pub fn open_ring_query(
    context: &RingContext,
    rows: usize,
    folds: usize,
    query: &[u8],
) -> Result<RlweCiphertext, HeError> {
    let params = context.params();
    let ring = context.full();
    let expected = params.query_bytes(rows, folds);
    let actual = query.len();
    let mut opened = match query.split_first_chunk::<QUERY_SEED_BYTES>() {
        Some(_) if params.whole_query() && expected == actual => open_whole(ring, query)?,
        Some((seed, words)) if expected == actual => open_truncated(context, rows, folds, seed, words)?,
        _ => return Err(HeError::PackedLength { expected, actual }),
    };
    for half in [&mut opened.a, &mut opened.b] {
        for (limb, p) in ring.moduli().iter().enumerate() {
            let factor = p.pow(p.inverse(2), params.levels().len() as u64);
            half.limb_mut(limb).iter_mut().for_each(|word| *word = p.mul(*word, factor));
        }
    }
    Ok(opened)
}

/// Reads the words of the selectors, then those of the folds.
fn open_truncated(
    context: &RingContext,
    rows: usize,
    folds: usize,
    seed: &[u8; QUERY_SEED_BYTES],
    words: &[u8],
) -> Result<RlweCiphertext, HeError> {
    let params = context.params();
    let ring = context.full();
    let selectors = 0..rows;
    let bits = rows..params.leaves(rows, folds);
    let unround = |words: &[u8], leaves: Range<usize>, dropped| {
        let count = params.query_words(leaves.len());
        unround_coefficients(ring, words, params.query_positions(leaves), count, dropped)
    };
    let dropped = params.selector_dropped_bits();
    let (words, rest) = words.split_at(rounded_bytes(ring.rns(), params.query_words(rows), dropped));
    let mut b = unround(words, selectors, dropped)?;
    let bits = unround(rest, bits, params.query_dropped_bits()).map_err(|error| match error {
        HeError::Coefficient { index } => HeError::Coefficient { index: params.query_words(rows) + index },
        error => error,
    })?;
    ring.add(&mut b, &bits);
    Ok(RlweCiphertext { a: mask(ring, seed), b: ring.forward(b) })
}

/// Reads both halves of a whole query: a in evaluation form, b as coefficients.
fn open_whole(ring: &Ring, query: &[u8]) -> Result<RlweCiphertext, HeError> {
    let (words, _) = query.as_chunks();
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let (a, b) = words.split_at(words.len() / 2);
    for (half, first) in [(a, 0), (b, a.len())] {
        for (p, (limb, residues)) in ring.moduli().iter().zip(half.chunks_exact(ring.degree()).enumerate()) {
            if let Some(index) = residues.iter().position(|&residue| residue >= p.value()) {
                return Err(HeError::Coefficient { index: first + limb * ring.degree() + index });
            }
        }
    }
    let b = ring.forward(Poly::from_words(b.to_vec(), ring.degree()));
    Ok(RlweCiphertext { a: Poly::from_words(a.to_vec(), ring.degree()), b })
}

fn mask<R>(ring: &Ring, seed: &[u8; QUERY_SEED_BYTES]) -> Poly<R> {
    ring.expand_uniform(&mut Csprng::public("hushdb v1 2026 ring query mask", seed, 0))
}

/// Returns the polynomial whose coefficients are the messages, at the positions from which the tree reads them.
fn messages(context: &RingContext, selectors: &[u32], bits: &[u32]) -> Poly<Coeff> {
    let params = context.params();
    let ring = context.full();
    let gadget = params.fold_gadget();
    let mut message = ring.zero();
    for (limb, p) in ring.moduli().iter().enumerate() {
        let unit = p.reduce(u64::from(params.dropped_factor()));
        let delta = p.mul(unit, ring.rns().reduce(context.delta(), limb));
        let factors: Vec<u32> =
            (0..gadget.digits).map(|k| p.mul(unit, p.pow(2, u64::from(gadget.log2_factor(k))))).collect();
        let selected =
            selectors.iter().map(|&coefficient| p.mul(delta, p.reduce_signed(i64::from(coefficient as i32))));
        let folds = bits.iter().flat_map(|&bit| factors.iter().map(move |&factor| p.mul(factor, bit)));
        // The first coefficient of a leaf carries its message.
        let leaves = selectors.len() + bits.len() * gadget.digits;
        let positions = params.query_positions(0..leaves).step_by(params.query_words(1));
        for (position, word) in positions.zip(selected.chain(folds)) {
            message.limb_mut(limb)[position] = word;
        }
    }
    message
}
