//! Answers of tables over rings: from the chosen ciphertexts of all planes to bytes, and back to symbols.
//!
//! | table                                       | content of an answer                                              |
//! |---------------------------------------------|-------------------------------------------------------------------|
//! | whose set packs pairs                       | whole polynomials, three for every two planes ([`crate::response`]) |
//! | whose slots fit a small ring                | a mask and a body of that ring                                    |
//! | all others                                  | for each plane a whole mask and a body                            |
//!
//! A body in the last two rows has only the coefficients that hold symbols.

use std::iter;

use hush_he::{
    algorithms::{decrypt_response, decrypt_switched},
    codec::{packed_bytes, unpack_words},
    params::{ResponseBits, RingSwitch},
};
use hush_ops::contract::{RlweBatch, SentPoly, Steps, pack_polys};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    message::check_length,
    page::Host,
    response::{decrypt_plaintexts, respond, response_bytes},
    ring_keys::RingKeys,
    ring_page::{OverRing, RingPage},
    ring_table::RingTable,
};

/// The body of an answer: the coefficients of a plaintext that are sent.
struct Body {
    /// The distance between the coefficients that are sent.
    stride: usize,
    /// The number of coefficients that are sent.
    count: usize,
}

/// Returns the body of a plane. It has all lanes if the client chooses one, else only the lane that was rotated to the front.
fn body(table: &RingTable, plane: usize) -> Body {
    let length = table.plane_symbols(plane);
    match table.rotations() {
        0 => Body { stride: 1, count: table.lanes() * length },
        _ => Body { stride: table.stride(), count: length },
    }
}

/// Returns the body in the small ring, whose coefficients are those of the large ring at multiples of N / degree.
fn small_body(table: &RingTable, switch: &RingSwitch) -> Body {
    let Body { stride, count } = body(table, 0);
    Body { stride: stride * switch.degree() / table.ring().degree(), count }
}

/// Returns the polynomials of an answer without packed pairs: whole masks and a body, for every plane or once in the small ring.
fn sent(table: &RingTable) -> Vec<SentPoly> {
    let of = |masks, degree, bits: ResponseBits, Body { stride, count }| {
        let body = SentPoly { bits: bits.b, stride, count };
        iter::repeat_n(SentPoly::whole(degree, bits.a), masks).chain([body])
    };
    match table.switch() {
        Some(switch) => {
            let body = small_body(table, switch);
            of(switch.rank(), switch.degree(), switch.response_bits(), body).collect()
        }
        None => {
            let ring = table.ring();
            (0..table.planes())
                .flat_map(|plane| of(1, ring.degree(), ring.response_bits(), body(table, plane)))
                .collect()
        }
    }
}

/// Returns the size of an answer in bytes.
pub(crate) fn bytes(table: &RingTable) -> usize {
    match table.ring().packs_pairs() {
        true => response_bytes(table.ring(), table.planes()),
        false => sent(table).iter().map(SentPoly::bytes).fold(0, usize::saturating_add),
    }
}

/// Server: returns the answers of a batch, from the ciphertexts of all planes of each query.
pub(crate) fn answer<P: RingPage, B: Steps>(
    host: &Host<'_, OverRing<P>, B>,
    keys: &[&B::Keys],
    chosen: &[&RlweBatch<B::Words>],
) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let table = host.table;
    let ring = &host.scheme.ring;
    if table.ring().packs_pairs() {
        return respond(host.backend, ring, &host.scheme.context, keys, chosen);
    }
    let sent = sent(table);
    if table.switch().is_some() {
        // This runs on the CPU, whatever the backend.
        let polys = host.backend.ring_switch(ring, keys, chosen)?;
        return Ok(polys.par_iter().map(|polys| pack_polys(polys, &sent)).collect());
    }
    let words: Vec<_> = chosen.iter().map(|chosen| &chosen.words).collect();
    Ok(host.backend.mod_switch(ring, &words, 0, &sent)?)
}

/// Client: returns the symbols of an answer, plane after plane. They are the symbols of the slot if its lane was rotated to
/// the front, else of all lanes.
///
/// # Errors
/// [`ProtocolError::Length`] if the answer does not have [`bytes`] bytes.
pub(crate) fn symbols(
    table: &RingTable,
    keys: &RingKeys,
    answer: &[u8],
) -> Result<Zeroizing<Vec<u32>>, ProtocolError> {
    let ring = table.ring();
    let context = keys.context();
    let symbol_bits = ring.plaintext_bits();
    if ring.packs_pairs() {
        let bits = ring.response_bits();
        return decrypt_plaintexts(context, keys.answer_secrets(), answer, bits, table.planes(), symbol_bits);
    }
    check_length("answer", bytes(table), answer.len())?;
    let mut rest = answer;
    let mut read = |count: usize, bits: u32| -> Result<Vec<u64>, ProtocolError> {
        let (head, tail) = rest.split_at(packed_bytes(count, bits));
        rest = tail;
        Ok(unpack_words(head, count, bits)?)
    };
    if let Some(switch) = table.switch() {
        let bits = switch.response_bits();
        let body = small_body(table, switch);
        let a = (0..switch.rank()).map(|_| read(switch.degree(), bits.a)).collect::<Result<Vec<_>, _>>()?;
        let b = read(body.count, bits.b)?;
        return Ok(decrypt_switched(context, keys.secrets(), &a, &b, body.stride, symbol_bits));
    }
    let mut symbols = Zeroizing::new(Vec::with_capacity(table.planes() * ring.degree()));
    for plane in 0..table.planes() {
        let bits = ring.response_bits();
        let body = body(table, plane);
        let a = read(ring.degree(), bits.a)?;
        let b = read(body.count, bits.b)?;
        let own = decrypt_response(context, &keys.secrets().query, &a, &b, bits, body.stride, symbol_bits);
        symbols.extend_from_slice(&own);
    }
    Ok(symbols)
}
