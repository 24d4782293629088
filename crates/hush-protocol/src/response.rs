//! Answers of the protocols over rings: what is left of the ciphertexts, packed in pairs and rounded.

use hush_he::{
    algorithms::decrypt_response,
    codec::{pack_wide, packed_bytes, unpack_wide},
    entities::RlweSecret,
    params::{RingContext, RingParams},
};
use hush_math::constant_time::equal_mask;
use hush_ops::contract::{RingOps, RlweBatch};
use zeroize::Zeroizing;

use crate::{ProtocolError, simple::check_length};

/// Bytes of an answer of `plaintexts` plaintexts: a packed pair for every two, a single ciphertext for an odd one; all
/// single in sets without pair packing.
pub(crate) fn response_bytes(ring: &RingParams, plaintexts: usize) -> usize {
    let bits = ring.response_bits();
    let half = |bits| packed_bytes(ring.degree(), bits);
    let pairs = if ring.packs_pairs() { plaintexts / 2 } else { 0 };
    pairs * (half(bits.a) + 2 * half(bits.b)) + (plaintexts - 2 * pairs) * (half(bits.a) + half(bits.b))
}

/// Ciphertexts that share a first half.
fn group(ring: &RingParams) -> usize {
    if ring.packs_pairs() { 2 } else { 1 }
}

/// Server: packs, switches and joins ciphertexts. The result has [`response_bytes`].
pub(crate) fn respond<B: RingOps>(
    backend: &B,
    ring: &B::Ring,
    context: &RingContext,
    keys: &B::Keys,
    ciphertexts: &RlweBatch,
) -> Result<Vec<u8>, ProtocolError> {
    let (params, ciphertext_words) = (context.params(), ciphertexts.ciphertext_words);
    let bits = params.response_bits();
    let mut out = Vec::with_capacity(response_bytes(params, ciphertexts.count()));
    for words in ciphertexts.words.chunks(group(params) * ciphertext_words) {
        if words.len() > ciphertext_words {
            let pair = RlweBatch { ciphertext_words, words: words.to_vec().into() };
            let polys = backend.pack_pair(ring, keys, &pair)?;
            switch(backend, ring, &polys, &[bits.a, bits.b, bits.b], &mut out)?;
        } else {
            switch(backend, ring, words, &[bits.a, bits.b], &mut out)?;
        }
    }
    Ok(out)
}

/// Server: polynomials at the widths of an answer, appended to `out`.
pub(crate) fn switch<B: RingOps>(
    backend: &B,
    ring: &B::Ring,
    polys: &[u32],
    widths: &[u32],
    out: &mut Vec<u8>,
) -> Result<(), ProtocolError> {
    for (words, &bits) in backend.mod_switch(ring, polys, widths)?.into_iter().zip(widths) {
        pack_wide(words.into_iter().map(u128::from), bits, out);
    }
    Ok(())
}

/// The ciphertexts of several batches, at least one, as one.
pub(crate) fn join(batches: Vec<RlweBatch>) -> RlweBatch {
    let ciphertext_words = batches[0].ciphertext_words;
    let words: Vec<u32> = batches.iter().flat_map(|batch| batch.words.iter().copied()).collect();
    RlweBatch { ciphertext_words, words: words.into() }
}

/// Client: the N symbols, of `symbol_bits` bits, of each of the `plaintexts` plaintexts of an answer. `secrets` are those of
/// the first and the second ciphertext of a pair; single ciphertexts are under the first.
///
/// # Errors
/// [`ProtocolError::Length`] if the answer is not [`response_bytes`] long.
pub(crate) fn decrypt_plaintexts(
    context: &RingContext,
    secrets: [&RlweSecret; 2],
    answer: &[u8],
    plaintexts: usize,
    symbol_bits: u32,
) -> Result<Zeroizing<Vec<u32>>, ProtocolError> {
    let params = context.params();
    check_length("answer", response_bytes(params, plaintexts), answer.len())?;
    let (degree, bits) = (params.degree(), params.response_bits());
    let mut reader = Reader { rest: answer, degree };
    let mut symbols = Zeroizing::new(Vec::with_capacity(plaintexts * degree));
    for first in (0..plaintexts).step_by(group(params)) {
        let a = reader.words(bits.a)?;
        for (_, secret) in (first..plaintexts).zip(secrets).take(group(params)) {
            let b = reader.words(bits.b)?;
            symbols.extend_from_slice(&decrypt_response(context, secret, &a, &b, symbol_bits));
        }
    }
    Ok(symbols)
}

/// Client: the `length` symbols of lane `lane` of `lanes`. Every lane is read: no address depends on the target.
pub(crate) fn choose_lane(symbols: &[u32], length: usize, lanes: usize, lane: usize) -> Zeroizing<Vec<u32>> {
    let mut chosen = Zeroizing::new(vec![0; length]);
    for (index, symbols) in (0u32..).zip(symbols.chunks_exact(length).take(lanes)) {
        let mask = equal_mask(index, lane as u32);
        chosen.iter_mut().zip(symbols).for_each(|(sum, symbol)| *sum |= symbol & mask);
    }
    chosen
}

/// The polynomials of an answer, one after another.
struct Reader<'a> {
    rest: &'a [u8],
    degree: usize,
}

impl Reader<'_> {
    fn words(&mut self, bits: u32) -> Result<Vec<u64>, ProtocolError> {
        let (head, rest) = self.rest.split_at(packed_bytes(self.degree, bits));
        self.rest = rest;
        Ok(unpack_wide(head, self.degree, bits)?.map(|word| word as u64).collect())
    }
}
