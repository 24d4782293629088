//! Column packing, path (1)(3c)(7h): SimplePIR whose answer is packed by keys that travel with the query, and folded to the
//! entry that is asked for. Nothing is downloaded, nothing uploaded beforehand, nothing kept on either side.
//!
//! | message | what                                                                       | size (`ColumnTable`) |
//! |---------|----------------------------------------------------------------------------|----------------------|
//! | query   | a vector over the columns; rotation key, conjugation key, an RGSW ciphertext of a power of X | `query_bytes` |
//! | answer  | a ciphertext for every plane of the entry, rounded                         | `answer_bytes`       |
//!
//! All parts of a query are under one secret, drawn for it ([`query`](crate::column_packing::query)). Source: InsPIRe (ePrint
//! 2025/1352), for packing and the fold by one power of X. ReinsPIRe (ePrint 2026/1934) has packing as one matrix product, too;
//! here the matrix is bytes beside those of the table, so that the fold keeps its modulus of 2^32. Ours: a fold of ciphertexts,
//! not of the table; key look-ups.

use hush_ops::contract::{ColumnOps, PowerKeys};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    column_packing::{ColumnHost, ColumnScheme, Pending, decrypt},
    column_table::ColumnTable,
    response::pack_polys,
    wire,
};

/// Server: answers a batch with one pass over the database and one over the pack columns.
///
/// # Errors
/// [`ProtocolError::Query`] with the position of a query that is none of this table, [`ProtocolError::Length`] if a part has
/// another length (which the wire format refuses), before anything is computed.
pub fn answer<B: ColumnOps>(
    host: &ColumnHost<'_, B>,
    queries: &[wire::Query],
) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let (backend, ring) = (host.backend, host.ring);
    let query = host.open(queries)?;
    let bodies: Vec<_> = query.keys.iter().map(|keys| keys.power.as_ref()).collect();
    let powers = PowerKeys { masks: host.scheme.masks().power(), bodies: &bodies };
    let folded = backend.lwe_fold(host.db, &query.first)?; //                      (1)   a word a row
    let packed = host.pack(folded, &query.keys)?; //                               (3c)  a ciphertext a plane and entry
    let chosen = backend.rgsw_power_fold(ring, host.chain, &packed, powers)?; //   (7h)  a ciphertext a plane
    let bits = host.table.params().ring().response_bits();
    let widths = [bits.a, bits.b].repeat(chosen.count());
    let switched = backend.mod_switch(ring, &[&chosen.words], 0..widths.len(), &widths)?.remove(0);
    let respond = |planes: &[Vec<u64>]| {
        let mut answer = Vec::with_capacity(host.table.answer_bytes());
        pack_polys(planes, &widths, &mut answer);
        answer
    };
    Ok(switched.par_chunks(2 * host.table.answer_plaintexts()).map(respond).collect())
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
    let (_, lane) = table.place(pending.target.block);
    Ok(table.entry_layout().slot_of_lane(&bytes, lane))
}
