//! Column packing without folds, path (1)(3c): an answer has a ciphertext for every plaintext of the table.
//!
//! | message | content                                                     | size (`ColumnTable`) |
//! |---------|-------------------------------------------------------------|----------------------|
//! | query   | a vector over the columns; rotation key, conjugation key    | `query_bytes`        |
//! | answer  | a ciphertext for every plane of every entry, rounded        | `answer_bytes`       |
//!
//! The answer holds every block, so it grows with the table; `colpack` folds it to one entry instead. The masks of the
//! ciphertexts are public and the same in all answers. They are still part of every answer, because a client that fetched
//! only some of them would reveal its entry.
//!
//! Source: that of [`crate::colpack`].

use hush_ops::{
    contract::{ChainPolys, ColumnOps, LweBatch, RingOps, Rounding, SentPoly, SentRows},
    path::Step,
    steps::{SendWords, chain_hint::residues},
};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    column_page::{ColumnHead, ColumnHost, ColumnPage, OpenedColumn},
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
        let bytes = sent(table).iter().map(SentRows::bytes).sum();
        vec![Step::of_batch(SendWords { rows: table.rows(), bytes })]
    }

    /// Switches all masks to the width of an answer, once. The chain is not folded here, so no backend has checked its words yet.
    fn switched_masks<B: RingOps>(
        backend: &B,
        ring: &B::Ring,
        table: &ColumnTable,
        polys: ChainPolys,
    ) -> Result<Vec<u8>, ProtocolError> {
        let plaintexts = table.pack_shape().plaintexts();
        let [mask, _] = SentPoly::halves(table.params().ring());
        residues(backend.context(ring), "open_chain", "words of masks below their primes", &polys.masks)?;
        let masks = backend.keep(polys.masks)?;
        let bytes = backend.mod_switch(ring, &[&masks], 0, &vec![mask; plaintexts])?.remove(0);
        check_length("masks of all plaintexts", plaintexts * mask.bytes(), bytes.len())?;
        Ok(bytes)
    }

    fn finish<B: ColumnOps>(
        host: &ColumnHost<'_, B>,
        head: &ColumnHead<B>,
        _: &OpenedColumn,
        packed: LweBatch<B::Words>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let sent = sent(host.table);
        let bodies = host.backend.send_words(&packed, &sent, Rounding::HalfUp)?;
        Ok(bodies.par_iter().map(|bodies| respond(host.table, &head.masks, &sent, bodies)).collect())
    }

    fn recover(table: &ColumnTable, target: &Target, bytes: &[u32]) -> Zeroizing<Vec<u8>> {
        let (entry, lane) = table.place(target.block);
        let layout = table.entry_layout();
        layout.slot_of_lane(&layout.choose_entry(bytes, entry), lane)
    }
}

/// Returns the rows of every plaintext, whose words are sent: a word is a coefficient of the plaintext's b.
fn sent(table: &ColumnTable) -> Vec<SentRows> {
    let shape = table.pack_shape();
    let bits = table.params().ring().response_bits().b;
    (0..shape.plaintexts())
        .map(|plaintext| SentRows { rows: shape.plaintext_rows(plaintext), bits })
        .collect()
}

/// Returns all ciphertexts: each mask followed by its b, which is padded with zeros if the plaintext is not full.
fn respond(table: &ColumnTable, masks: &[u8], sent: &[SentRows], mut bodies: &[u8]) -> Vec<u8> {
    let [mask, body] = SentPoly::halves(table.params().ring()).map(|half| half.bytes());
    let mut answer = Vec::with_capacity(table.answer_bytes());
    for (mask, sent) in masks.chunks_exact(mask).zip(sent) {
        answer.extend_from_slice(mask);
        let (own, rest) = bodies.split_at(sent.bytes());
        answer.extend_from_slice(own);
        answer.resize(answer.len() + body - own.len(), 0);
        bodies = rest;
    }
    answer
}
