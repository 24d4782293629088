//! OnionPIRv2, path (5) offline, then (6)(7)...(7): RLWE selectors pick the row, RGSW bits the entry.
//!
//! A query is one truncated RLWE ciphertext. The server expands it with the client's evaluation keys into a selector for
//! every row and an RGSW ciphertext for every bit of the entry. Nothing is downloaded beforehand.
//!
//! | message | what                                                        | size (`RingTable`) |
//! |---------|-------------------------------------------------------------|--------------------|
//! | keys    | Subs keys, s^2 key, pair-packing key; seeded, uploaded once | `RingParams::key_words_bytes` |
//! | query   | seed, and the coefficients of b that carry messages         | `query_bytes`      |
//! | answer  | a packed pair for every two planes: a, b_0, b_1             | `answer_bytes`     |
//!
//! Source: OnionPIRv2 section 3, VIPIR section 4.1. Ours: the prime dropped after expansion, truncated queries, the s^2
//! key in place of RGSW(s), packed pairs, whitening, and key look-ups (selectors that encrypt any small vector).

use hush_he::{
    algorithms::{encrypt_ring_query, open_ring_query},
    params::RingContext,
};
use hush_math::{constant_time::equal_mask, csprng::Csprng};
use hush_ops::contract::{EntryOrder, RingOps};
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    response::{choose_lane, decrypt_plaintexts, respond},
    ring_keys::RingKeys,
    ring_table::RingTable,
    symbols::from_symbols,
    target::Target,
    whitening::Whitening,
    wire::KEY_ID_BYTES,
};

/// What the client keeps between query and answer.
pub struct Pending {
    target: Target,
    key_id: [u8; KEY_ID_BYTES],
}

/// Client: encrypts `target` under a fresh mask. The result is the packed query.
pub fn query(table: &RingTable, keys: &RingKeys, target: Target, rng: &mut Csprng) -> (Vec<u8>, Pending) {
    let (entry, _) = table.place(target.block);
    let mut selectors = Zeroizing::new(vec![0u32; table.shape().columns]);
    for (row, selector) in (0u32..).zip(selectors.iter_mut()) {
        // Every row meets every coefficient: no address depends on the target.
        for &(column, coefficient) in &target.columns {
            *selector += u32::from(coefficient) & equal_mask(row, column);
        }
    }
    let bits: Zeroizing<Vec<u32>> =
        Zeroizing::new((0..table.folds()).map(|f| (entry >> f & 1) as u32).collect());
    let query = encrypt_ring_query(keys.context(), keys.secrets(), &selectors, &bits, rng);
    (query, Pending { target, key_id: keys.id() })
}

/// Server: answers a batch with one pass over the database. `keys[i]` are those of the client of `queries[i]`.
///
/// # Errors
/// [`ProtocolError::Query`] with the position of a query that is none of this table, before anything is computed;
/// [`ProtocolError::Keys`] if there are not as many keys as queries.
pub fn answer<B: RingOps>(
    backend: &B,
    ring: &B::Ring,
    db: &B::NttDb,
    context: &RingContext,
    table: &RingTable,
    queries: &[&[u8]],
    keys: &[&B::Keys],
) -> Result<Vec<Vec<u8>>, ProtocolError> {
    if queries.len() != keys.len() {
        return Err(ProtocolError::Keys(format!("{} for {} queries", keys.len(), queries.len())));
    }
    let opened = queries.iter().enumerate().map(|(index, query)| {
        open_ring_query(context, table.leaves(), query)
            .map_err(|source| ProtocolError::Query { index, source })
    });
    let opened = opened.collect::<Result<Vec<_>, _>>()?;
    let (rows, folds) = (table.shape().columns, table.folds());
    let expanded = backend.expand(ring, keys, &opened, rows, folds)?;
    let selectors: Vec<_> = expanded.iter().map(|expanded| &expanded.selectors).collect();
    let bits: Vec<_> = expanded.iter().map(|expanded| &expanded.bits[..]).collect();
    let folded = backend.rlwe_fold(ring, db, &selectors)?; //                  (6)  planes x entries
    let (columns, order): (Vec<_>, _) = (folded.iter().collect(), EntryOrder::PlaneMajor);
    let chosen = backend.rgsw_fold(ring, &columns, table.planes(), order, &bits)?; // (7)  one a plane
    respond(backend, ring, context, keys, &chosen.iter().collect::<Vec<_>>())
}

/// Client: the slot that was asked for.
///
/// # Errors
/// [`ProtocolError::Length`] if the answer is not as long as the shape says, [`ProtocolError::Keys`] if the query was
/// made with other keys.
pub fn recover(
    table: &RingTable,
    keys: &RingKeys,
    whitening: &Whitening,
    pending: &Pending,
    answer: &[u8],
) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
    if pending.key_id != keys.id() {
        return Err(ProtocolError::Keys("the query was made with others".into()));
    }
    let ring = table.ring();
    let (entry, lane) = table.place(pending.target.block);
    let mut symbols = decrypt_plaintexts(
        keys.context(),
        keys.answer_secrets(),
        answer,
        table.planes(),
        ring.plaintext_bits(),
    )?;
    for (plane, plaintext) in symbols.chunks_exact_mut(ring.degree()).enumerate() {
        whitening.remove_from(&pending.target.columns, plane * table.entries() + entry, plaintext);
    }
    let mut slot = Zeroizing::new(vec![0; table.shape().slot_bytes]);
    let of_slot = choose_lane(&symbols, table.slot_symbols(), table.lanes(), lane);
    from_symbols(&of_slot, table.ring().plaintext_bits(), &mut slot);
    Ok(slot)
}
