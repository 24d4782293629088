//! Column packing without folds, path (1)(3c): an answer has a word for every row of the table, which the table's masks decrypt.
//!
//! | message | content                                                     | size (`ColumnTable`) |
//! |---------|-------------------------------------------------------------|----------------------|
//! | masks   | a polynomial for every plaintext, downloaded once           | `mask_bytes`         |
//! | query   | a vector over the columns; rotation key, conjugation key    | `query_bytes`        |
//! | answer  | a coefficient of b for every row, rounded                   | `answer_bytes`       |
//!
//! The masks of the packed ciphertexts depend on no query. A client fetches all of them, because a client that fetched some would
//! reveal its entry. The answer holds every row, so it grows with the table; `colpack` folds it to one entry instead.
//!
//! Source: that of [`crate::colpack`].

use hush_he::{
    algorithms::decrypt_response,
    codec::{packed_bytes, unpack_words},
    entities::RlweSecret,
};
use hush_ops::{
    OpsError,
    contract::{ColumnOps, LweBatch, RingOps, Rounding, SentPoly, SentRows},
    path::Step,
    steps::SendWords,
};
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    column_page::{ColumnClient, ColumnHead, ColumnHost, ColumnPage, OpenedColumn},
    column_table::{ColumnSpec, ColumnTable},
    message::check_length,
    registry::Protocol,
    target::Target,
};

/// The page of `colpack-s`.
pub struct ColpackS;

impl ColumnPage for ColpackS {
    const NAME: &'static str = "colpack-s";
    const SPEC: ColumnSpec = ColumnSpec { protocol: Protocol::ColpackS, folds: false };

    fn path_behind(table: &ColumnTable) -> Vec<Step> {
        vec![Step::of_batch(SendWords { rows: table.rows(), bytes: table.answer_bytes() })]
    }

    fn finish<B: ColumnOps>(
        host: &ColumnHost<'_, B>,
        _: &ColumnHead<B>,
        _: &OpenedColumn,
        packed: LweBatch<B::Words>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let all = SentRows { rows: 0..host.table.rows(), bits: host.table.widths().answer };
        Ok(host.backend.send_words(&packed, &[all], Rounding::HalfUp)?)
    }

    /// Decrypts all rows, so that no memory address depends on the target.
    fn recover(
        table: &ColumnTable,
        client: &ColumnClient,
        secret: &RlweSecret,
        target: &Target,
        answer: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        check_length("answer", table.answer_bytes(), answer.len())?;
        let (shape, bits) = (table.pack_shape(), table.response_bits());
        let words = unpack_words(answer, table.rows(), bits.b)?;
        let masks = (*client.masks).as_ref().chunks_exact(packed_bytes(shape.degree(), bits.a));
        let mut bytes = Zeroizing::new(Vec::with_capacity(shape.plaintexts() * shape.degree()));
        for (plaintext, mask) in masks.enumerate() {
            let a = unpack_words(mask, shape.degree(), bits.a)?;
            let b = &words[shape.plaintext_rows(plaintext)];
            bytes.extend_from_slice(&decrypt_response(
                client.ring.context(),
                secret,
                &a,
                b,
                bits,
                1,
                u8::BITS,
            ));
            // The last plaintext of an entry may lack rows.
            bytes.resize((plaintext + 1) * shape.degree(), 0);
        }
        let (entry, lane) = table.place(target.block);
        let layout = table.entry_layout();
        Ok(layout.slot_of_lane(&layout.choose_entry(&bytes, entry), lane))
    }
}

/// Rounds masks to `bits` bits a coefficient, as clients download them. `masks` has the polynomials of some plaintexts, one after
/// another, in the form of `chain_hint`.
///
/// # Errors
/// Those of [`RingOps::mod_switch`].
pub fn round_masks<B: RingOps>(
    backend: &B,
    ring: &B::Ring,
    masks: Vec<u32>,
    bits: u32,
) -> Result<Vec<u8>, OpsError> {
    let params = backend.context(ring).params();
    let plaintexts = masks.len() / (params.kept_limbs() * params.degree());
    let sent = vec![SentPoly::whole(params.degree(), bits); plaintexts];
    Ok(backend.mod_switch(ring, &[&backend.keep(masks)?], 0, &sent)?.remove(0))
}
