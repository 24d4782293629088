//! Column packing without folds, path (1)(3c): a ciphertext for every plaintext of the table comes back.
//!
//! | message | what                                                        | size (`ColumnTable`) |
//! |---------|-------------------------------------------------------------|----------------------|
//! | query   | a vector over the columns; rotation key, conjugation key    | `query_bytes`        |
//! | answer  | a ciphertext for every plane of every entry, rounded        | `answer_bytes`       |
//!
//! The answer holds every block, so it grows with the table: `colpack` folds it to one entry. Its masks are the same in all
//! answers. They are public, but a client that fetched some of them would say which entry it is after: so all travel.
//!
//! Source: as [`crate::colpack`].

use hush_he::codec::{pack_wide, packed_bytes};
use hush_ops::contract::{ColumnOps, RingOps, round_word_up};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    column_packing::{ColumnHost, ColumnScheme, Pending, decrypt},
    column_table::ColumnTable,
    response::switch,
    simple::check_length,
    wire,
};

/// Server, once: the masks of all plaintexts, `[plaintext][limb][slot]`, at the width of an answer.
///
/// # Errors
/// If they are no polynomials of the ring.
pub fn switched_masks<B: RingOps>(
    backend: &B,
    ring: &B::Ring,
    table: &ColumnTable,
    masks: Vec<u32>,
) -> Result<Vec<u8>, ProtocolError> {
    let (plaintexts, width) = (table.pack_shape().plaintexts(), table.params().ring().response_bits().a);
    let masks = backend.keep(masks)?;
    let mut bytes = [Vec::with_capacity(plaintexts * mask_bytes(table))];
    switch(backend, ring, &[&masks], 0..plaintexts, &[width], &mut bytes)?;
    let [bytes] = bytes;
    Ok(bytes)
}

/// Server: answers a batch with one pass over the database and one over the pack columns.
///
/// # Errors
/// [`ProtocolError::Query`] with the position of a query that is none of this table, [`ProtocolError::Length`] if a part has
/// another length (which the wire format refuses), before anything is computed.
pub fn answer<B: ColumnOps>(
    host: &ColumnHost<'_, B>,
    queries: &[wire::Query],
) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let expected = host.table.pack_shape().plaintexts() * mask_bytes(host.table);
    check_length("masks of all plaintexts", expected, host.masks.len())?;
    let query = host.open(queries)?;
    let folded = host.backend.lwe_fold(host.db, &query.first)?; //  (1)   a word a row
    let packed = host.pack(folded, &query.keys)?; //                (3c)  a ciphertext a plane and entry
    let words = host.backend.read(&packed.words)?;
    Ok(words.par_chunks(packed.rows.max(1)).map(|words| respond(host, words)).collect())
}

/// Bytes of a mask in an answer.
fn mask_bytes(table: &ColumnTable) -> usize {
    packed_bytes(table.params().ring().degree(), table.params().ring().response_bits().a)
}

/// The masks, each followed by its b, one coefficient a row.
fn respond<B: ColumnOps>(host: &ColumnHost<'_, B>, words: &[u32]) -> Vec<u8> {
    let (shape, bits) = (host.table.pack_shape(), host.table.params().ring().response_bits().b);
    let mut answer = Vec::with_capacity(host.table.answer_bytes());
    for (plaintext, mask) in host.masks.chunks_exact(mask_bytes(host.table)).enumerate() {
        answer.extend_from_slice(mask);
        let b =
            words[shape.plaintext_rows(plaintext)].iter().map(|&word| u128::from(round_word_up(word, bits)));
        pack_wide(b.chain(std::iter::repeat(0)).take(shape.degree()), bits, &mut answer);
    }
    answer
}

/// Client: the slot that was asked for.
///
/// # Errors
/// [`ProtocolError::Length`] if the answer is not as long as the shape says.
pub fn recover(
    table: &ColumnTable,
    scheme: &ColumnScheme,
    pending: &Pending,
    answer: &[u8],
) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
    let bytes = decrypt(table, scheme, pending, answer)?;
    let (entry, lane) = table.place(pending.target.block);
    let layout = table.entry_layout();
    Ok(layout.slot_of_lane(&layout.choose_entry(&bytes, entry), lane))
}
