//! Answers of the protocols over rings: ciphertexts, packed in pairs and rounded.

use hush_he::{
    algorithms::decrypt_response,
    codec::{packed_bytes, unpack_words},
    entities::RlweSecret,
    params::{ResponseBits, RingContext, RingParams},
};
use hush_math::constant_time::equal_mask;
use hush_ops::contract::{Memory, RingOps, RlweBatch, SentPoly, WordStore};
use zeroize::Zeroizing;

use crate::{ProtocolError, message::check_length};

/// Returns the bytes of an answer of `plaintexts` plaintexts. Every two form a packed pair, and an odd one is a single
/// ciphertext. All are single in sets without pair packing.
pub(crate) fn response_bytes(ring: &RingParams, plaintexts: usize) -> usize {
    bytes_at(ring, ring.response_bits(), plaintexts)
}

/// [`response_bytes`] of ciphertexts of `bits` bits.
pub(crate) fn bytes_at(ring: &RingParams, bits: ResponseBits, plaintexts: usize) -> usize {
    let half = |bits| packed_bytes(ring.degree(), bits);
    let pairs = if ring.packs_pairs() { plaintexts / 2 } else { 0 };
    let of_pairs = pairs.saturating_mul(half(bits.a) + 2 * half(bits.b));
    of_pairs.saturating_add((plaintexts - 2 * pairs).saturating_mul(half(bits.a) + half(bits.b)))
}

/// Returns the number of ciphertexts that share a first half.
fn group(ring: &RingParams) -> usize {
    if ring.packs_pairs() { 2 } else { 1 }
}

/// Server: packs, switches and joins the ciphertexts of each query. All queries have the same number of ciphertexts, at
/// least one. Each result has [`response_bytes`] bytes.
pub(crate) fn respond<B: RingOps>(
    backend: &B,
    ring: &B::Ring,
    context: &RingContext,
    keys: &[&B::Keys],
    ciphertexts: &[&RlweBatch<B::Words>],
) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let params = context.params();
    let [a, b] = SentPoly::halves(context.params());
    let count = ciphertexts.first().map_or(0, |ciphertexts| ciphertexts.count());
    let pairs = if params.packs_pairs() { count / 2 } else { 0 };
    let mut answers = vec![Vec::new(); ciphertexts.len()];
    if pairs > 0 {
        let packed = backend.pack_pairs(ring, keys, ciphertexts)?;
        let packed: Vec<&B::Words> = packed.iter().collect();
        answers = backend.mod_switch(ring, &packed, 0, &[a, b, b].repeat(pairs))?;
    }
    if count > 2 * pairs {
        let single: Vec<&B::Words> = ciphertexts.iter().map(|ciphertexts| &ciphertexts.words).collect();
        let single = backend.mod_switch(ring, &single, 4 * pairs, &[a, b].repeat(count - 2 * pairs))?;
        answers.iter_mut().zip(single).for_each(|(answer, single)| answer.extend(single));
    }
    Ok(answers)
}

/// Joins the ciphertexts of several batches, at least one, to one batch.
pub(crate) fn join<M: Memory>(
    memory: &M,
    batches: &[RlweBatch<M::Words>],
) -> Result<RlweBatch<M::Words>, ProtocolError> {
    let parts: Vec<_> = batches.iter().map(|batch| (&batch.words, 0..batch.words.len())).collect();
    Ok(RlweBatch { ciphertext_words: batches[0].ciphertext_words, words: memory.join(&parts)? })
}

/// Client: decrypts an answer of ciphertexts of `bits` bits. Returns N symbols of `symbol_bits` bits for each of the `plaintexts`
/// plaintexts. `secrets` are the secrets of the first and the second ciphertext of a pair. Single ciphertexts are under the first.
///
/// # Errors
/// [`ProtocolError::Length`] if the answer does not have [`bytes_at`] bytes.
pub(crate) fn decrypt_plaintexts(
    context: &RingContext,
    secrets: [&RlweSecret; 2],
    answer: &[u8],
    bits: ResponseBits,
    plaintexts: usize,
    symbol_bits: u32,
) -> Result<Zeroizing<Vec<u32>>, ProtocolError> {
    let params = context.params();
    check_length("answer", bytes_at(params, bits, plaintexts), answer.len())?;
    let degree = params.degree();
    let mut reader = PolynomialReader { rest: answer, degree };
    let mut symbols = Zeroizing::new(Vec::with_capacity(plaintexts * degree));
    for first in (0..plaintexts).step_by(group(params)) {
        let a = reader.words(bits.a)?;
        for (_, secret) in (first..plaintexts).zip(secrets).take(group(params)) {
            let b = reader.words(bits.b)?;
            symbols.extend_from_slice(&decrypt_response(context, secret, &a, &b, bits, 1, symbol_bits));
        }
    }
    Ok(symbols)
}

/// Client: returns the `length` symbols of lane `lane` of `lanes`. It reads every lane, so no memory address depends on the target.
pub(crate) fn choose_lane(symbols: &[u32], length: usize, lanes: usize, lane: usize) -> Zeroizing<Vec<u32>> {
    let mut chosen = Zeroizing::new(vec![0; length]);
    for (index, symbols) in (0u32..).zip(symbols.chunks_exact(length).take(lanes)) {
        let mask = std::hint::black_box(equal_mask(index, lane as u32));
        chosen.iter_mut().zip(symbols).for_each(|(sum, symbol)| *sum |= symbol & mask);
    }
    chosen
}

/// A reader of the polynomials of an answer, one after another.
struct PolynomialReader<'a> {
    rest: &'a [u8],
    degree: usize,
}

impl PolynomialReader<'_> {
    fn words(&mut self, bits: u32) -> Result<Vec<u64>, ProtocolError> {
        let (head, rest) = self.rest.split_at(packed_bytes(self.degree, bits));
        self.rest = rest;
        Ok(unpack_words(head, self.degree, bits)?)
    }
}
/// Returns the words of a ciphertext modulo Q_1.
pub(crate) fn ciphertext_words(ring: &RingParams) -> usize {
    2 * ring.kept_limbs() * ring.degree()
}
