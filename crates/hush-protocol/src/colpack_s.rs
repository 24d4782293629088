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
use hush_ops::{
    check,
    contract::{ChainPolys, ColumnOps, LweBatch, RingOps, round_word_up},
    path::Step,
};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    column_page::{ColumnHead, ColumnHost, ColumnPage, OpenedColumn},
    column_table::{ColumnSpec, ColumnTable},
    message::check_length,
    registry::Protocol,
    response::switch,
    target::Target,
};

/// The page.
pub struct ColpackS;

impl ColumnPage for ColpackS {
    const NAME: &'static str = "colpack-s";
    const SPEC: ColumnSpec = ColumnSpec { protocol: Protocol::ColpackS, folds: false };

    /// Words are rounded on the host.
    fn path_behind(_: &ColumnTable) -> Vec<Step> {
        Vec::new()
    }

    /// Once: at the width of an answer. They travel as they are: nothing is folded, so that the backend has not seen them.
    fn switched_masks<B: RingOps>(
        backend: &B,
        ring: &B::Ring,
        table: &ColumnTable,
        polys: ChainPolys,
    ) -> Result<Vec<u8>, ProtocolError> {
        let (plaintexts, width) = (table.pack_shape().plaintexts(), table.params().ring().response_bits().a);
        check::residues(
            backend.context(ring),
            "open_chain",
            "words of masks below their primes",
            &polys.masks,
        )?;
        let masks = backend.keep(polys.masks)?;
        let mut bytes = [Vec::with_capacity(plaintexts * mask_bytes(table))];
        switch(backend, ring, &[&masks], 0..plaintexts, &[width], &mut bytes)?;
        let [bytes] = bytes;
        check_length("masks of all plaintexts", plaintexts * mask_bytes(table), bytes.len())?;
        Ok(bytes)
    }

    fn finish<B: ColumnOps>(
        host: &ColumnHost<'_, B>,
        head: &ColumnHead<B>,
        _: &OpenedColumn,
        packed: LweBatch<B::Words>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let words = host.backend.read(&packed.words)?;
        let respond = |words| respond(host.table, &head.masks, words);
        Ok(words.par_chunks(packed.rows.max(1)).map(respond).collect())
    }

    fn recover(table: &ColumnTable, target: &Target, bytes: &[u32]) -> Zeroizing<Vec<u8>> {
        let (entry, lane) = table.place(target.block);
        let layout = table.entry_layout();
        layout.slot_of_lane(&layout.choose_entry(bytes, entry), lane)
    }
}

/// Bytes of a mask in an answer.
fn mask_bytes(table: &ColumnTable) -> usize {
    packed_bytes(table.params().ring().degree(), table.params().ring().response_bits().a)
}

/// The masks, each followed by its b, one coefficient a row.
fn respond(table: &ColumnTable, masks: &[u8], words: &[u32]) -> Vec<u8> {
    let (shape, bits) = (table.pack_shape(), table.params().ring().response_bits().b);
    let mut answer = Vec::with_capacity(table.answer_bytes());
    for (plaintext, mask) in masks.chunks_exact(mask_bytes(table)).enumerate() {
        answer.extend_from_slice(mask);
        let b =
            words[shape.plaintext_rows(plaintext)].iter().map(|&word| u128::from(round_word_up(word, bits)));
        pack_wide(b.chain(std::iter::repeat(0)).take(shape.degree()), bits, &mut answer);
    }
    answer
}
