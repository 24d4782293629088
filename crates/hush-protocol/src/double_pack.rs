//! double-packing, path (1)(3)(4)(1)(3): the packed ciphertexts of all entries become a small database of bytes, from which a
//! second query selects the entry; what comes out is packed again. One expansion serves both packings.
//!
//! ```text
//!   columns  --(1)(3)-->  a ciphertext a plane and entry  --(4)-->  M (4 N planes x entries)
//!   M * q2, M * A2        --(3)-->                                  4 ciphertexts a plane
//! ```
//!
//! | message | what                                                                          | size (`PackTable`) |
//! |---------|-------------------------------------------------------------------------------|--------------------|
//! | keys    | Subs keys, pair-packing key; seeded, uploaded once                            | `RingParams::key_words_bytes` |
//! | query   | vectors over the columns and the entries; the LWE secret of both under RLWE   | `query_bytes`      |
//! | answer  | 4 plaintexts a plane, packed in pairs, rounded                                | `answer_bytes`     |
//!
//! The second hint is every query's own, and long: it is computed and packed a few plaintexts at a time, so that what a query
//! takes does not grow with its slot.
//!
//! Source: VIPIR section 4.1 (double-packing). Ours: 4 N rows instead of 8 N (halves of 20 and 12 bits instead of residues
//! modulo a prime), and as in `exppack-s`.

use std::ops::Range;

use hush_he::algorithms::decrypt_response;
use hush_math::csprng::Csprng;
use hush_ops::contract::PackOps;
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    pack_table::PackTable,
    packing::{PackHost, Pending, decrypt, encrypt},
    response::join,
    ring_keys::RingKeys,
    target::Target,
    wire,
};

/// Client: encrypts `target` under fresh secrets.
pub fn query(table: &PackTable, keys: &RingKeys, target: Target, rng: &mut Csprng) -> (wire::Query, Pending) {
    let (entry, _) = table.place(target.block);
    encrypt(table, keys, target, Some(entry), entry, rng)
}

/// Server: answers a batch with one pass over the database and one over the hint; the second fold is every query's own.
///
/// # Errors
/// [`ProtocolError::Query`] with the position of a query that is none of this table, before anything is computed.
pub fn answer<B: PackOps>(
    host: &PackHost<'_, B>,
    queries: &[wire::Query],
    keys: &[&B::Keys],
) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let (backend, table) = (host.backend, host.table);
    let query = host.open(queries, keys)?;
    let folded = backend.lwe_fold(host.db, &query.first)?; //                       (1)  a word a row
    let packed = host.pack_first(&folded, &query.selectors())?; //                  (3)  a ciphertext a plane and entry
    let (planes, shape) = (table.first_shape().planes(), table.second_shape());
    let answers = packed.iter().zip(&query.expanded).zip(keys).enumerate();
    let answers = answers.map(|(index, ((packed, expanded), keys))| {
        let entries = backend.reinterpret_rlwe(host.ring, packed, planes)?; //      (4)  a column an entry
        let folded = backend.lwe_fold(&entries, &query.second(index))?; //          (1)  4 N words a plane
        let pack = |columns: Range<usize>| {
            let hint = backend.lwe_hint(&entries, &table.second_matrix(), shape.rows_of(columns.clone()))?;
            host.pack_online(&folded, &hint, columns, &expanded.selectors) //       (3)  4 a plane
        };
        let parts = table.second_parts().map(pack).collect::<Result<Vec<_>, _>>()?;
        Ok(host.respond(&[*keys], &[join(backend, &parts)?])?.remove(0))
    });
    answers.collect()
}

/// Client: the slot that was asked for. Undoes the second packing (bytes), then the first.
///
/// # Errors
/// [`ProtocolError::Length`] if the answer is not as long as the shape says, [`ProtocolError::Keys`] if the query was
/// made with other keys.
pub fn recover(
    table: &PackTable,
    keys: &RingKeys,
    pending: &Pending,
    answer: &[u8],
) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
    let switched = decrypt(table, keys, pending, answer)?;
    let (ring, size) = (table.params().ring(), table.switched_bytes());
    let bits = ring.response_bits();
    let (_, lane) = table.place(pending.target.block);
    let mut bytes = Zeroizing::new(Vec::with_capacity(switched.len() / size));
    for plane in switched.chunks_exact(size * ring.degree()) {
        let word = |bytes: &[u32]| bytes.iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
        // The ciphertext of the entry that was asked for: the server has it too, and would know it again.
        let half = |half: fn(u64, u32) -> u64| -> Zeroizing<Vec<u64>> {
            Zeroizing::new(plane.chunks_exact(size).map(|bytes| half(word(bytes), bits.a)).collect())
        };
        let a = half(|word, bits| word & ((1 << bits) - 1));
        let b = half(|word, bits| word >> bits);
        bytes.extend_from_slice(&decrypt_response(keys.context(), &keys.secrets().query, &a, &b, u8::BITS));
    }
    Ok(table.entry_layout().slot_of_lane(&bytes, lane))
}
