//! ExpPack(S), path (1)(3): SimplePIR whose answer is packed, so that no client needs the hint.
//!
//! | message | what                                                                  | size (`PackTable`) |
//! |---------|-----------------------------------------------------------------------|--------------------|
//! | keys    | Subs keys, seeded, uploaded once                                      | `RingParams::key_words_bytes` |
//! | query   | a vector over the columns; the LWE secret under RLWE                  | `query_bytes`      |
//! | answer  | a ciphertext for every plane of every entry, packed in pairs, rounded | `answer_bytes`     |
//!
//! The answer holds every block, so it grows with the table: `hybrid` folds it to one entry.
//!
//! Source: VIPIR section 4.1. Ours: a prime dropped after the expansion, truncated queries, packed pairs, decoding straight
//! to bytes, and key look-ups.

use hush_math::csprng::Csprng;
use hush_ops::contract::PackOps;
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    pack_table::PackTable,
    packing::{PackHost, Pending, decrypt, encrypt},
    ring_keys::RingKeys,
    target::Target,
    wire,
};

/// Client: encrypts `target` under fresh secrets.
pub fn query(table: &PackTable, keys: &RingKeys, target: Target, rng: &mut Csprng) -> (wire::Query, Pending) {
    encrypt(table, keys, target, None, 0, rng)
}

/// Server: answers a batch with one pass over the database and one over the hint.
///
/// # Errors
/// [`ProtocolError::Query`] with the position of a query that is none of this table, before anything is computed.
pub fn answer<B: PackOps>(
    host: &PackHost<'_, B>,
    queries: &[wire::Query],
    keys: &[&B::Keys],
) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let query = host.open(queries, keys)?;
    let folded = host.backend.lwe_fold(host.db, &query.first)?; //      (1)  a word a row
    let packed = host.pack_first(&folded, &query.selectors())?; //      (3)  a ciphertext a plane and entry
    host.respond(keys, &packed)
}

/// Client: the slot that was asked for.
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
    let bytes = decrypt(table, keys, pending, answer)?;
    let (entry, lane) = table.place(pending.target.block);
    let chosen = table.entry_layout().choose_entry(&bytes, entry);
    Ok(table.entry_layout().slot_of_lane(&chosen, lane))
}
