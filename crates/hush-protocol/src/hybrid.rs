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
use hush_ops::contract::{PackOps, RlweBatch};
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    pack_table::PackTable,
    packing::{PackHost, Pending, decrypt, encrypt},
    response::{join, respond},
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
    let planes = host.table.first_shape().planes();
    let answers = packed.iter().zip(&query.expanded).zip(keys).map(|((packed, expanded), keys)| {
        let fold =
            |plane| host.backend.rgsw_fold(host.ring, &plane_of(packed, plane, planes), &expanded.bits);
        let chosen = (0..planes).map(fold).collect::<Result<_, _>>()?; // (7)  one a plane
        respond(host.backend, host.ring, host.context, keys, &join(chosen))
    });
    answers.collect()
}

/// The ciphertexts of one plane of every entry.
fn plane_of(packed: &RlweBatch, plane: usize, planes: usize) -> Vec<u32> {
    (plane..packed.count()).step_by(planes).flat_map(|index| packed.ciphertext(index)).copied().collect()
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
