//! hybrid, path (1)(3)(7)...(7): the packed answer of ExpPack(S), folded to the entry that is asked for.
//!
//! One expansion serves both: its leaves are the coefficients of the LWE secret, then the bits of the entry.
//!
//! | message | what                                                                            | size (`PackTable`) |
//! |---------|---------------------------------------------------------------------------------|--------------------|
//! | keys    | Subs keys, s^2 key, pair-packing key; seeded, uploaded once                     | `RingParams::key_words_bytes` |
//! | query   | a vector over the columns; the LWE secret and the bits of the entry under RLWE  | `query_bytes`      |
//! | answer  | the entry's planes, packed in pairs, rounded                                    | `answer_bytes`     |
//!
//! Source: VIPIR section 4.1 (hybrid). Ours: as in `exppack-s`; a key for s^2 in place of RGSW(s).

use hush_math::csprng::Csprng;
use hush_ops::contract::{EntryOrder, PackOps};
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
    let (entry, _) = table.place(target.block);
    encrypt(table, keys, target, None, entry, rng)
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
    let (planes, order) = (host.table.first_shape().planes(), EntryOrder::EntryMajor);
    let (entries, bits): (Vec<_>, Vec<_>) = (packed.iter().collect(), query.bits());
    let chosen = host.backend.rgsw_fold(host.ring, &entries, planes, order, &bits)?; // (7)  one a plane
    host.respond(keys, &chosen)
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
    let (_, lane) = table.place(pending.target.block);
    Ok(table.entry_layout().slot_of_lane(&bytes, lane))
}
