//! The protocol double-packing, path (1)(3)(4)(1)(3). The packed ciphertexts of all entries become a small database of
//! bytes. A second query selects the entry from it, and the result is packed again. One expansion serves both packings.
//!
//! ```text
//!   columns  --(1)(3)-->  a ciphertext a plane and entry  --(4)-->  M (4 N planes x entries)
//!   M * q2, M * A2        --(3)-->                                  4 ciphertexts a plane
//! ```
//!
//! | message | content                                                                       | size (`PackTable`) |
//! |---------|-------------------------------------------------------------------------------|--------------------|
//! | keys    | Subs keys, pair-packing key; seeded, uploaded once                            | `RingParams::key_words_bytes` |
//! | query   | vectors over the columns and the entries; the LWE secret of both under RLWE   | `query_bytes`      |
//! | answer  | 4 plaintexts a plane, packed in pairs, rounded                                | `answer_bytes`     |
//!
//! The second hint is long, and different for every query. It is computed and packed a few plaintexts at a time, so the
//! memory of a query does not grow with the size of its slot.
//!
//! Source: VIPIR section 3.4 (double-packing). Ours: 4 N rows instead of 8 N (halves of 20 and 12 bits instead of residues
//! modulo a prime), and the points listed in `exppack-s`.

use std::ops::Range;

use hush_he::{algorithms::decrypt_response, params::PackParams};
use hush_ops::{
    contract::PackOps,
    path::Step,
    steps::{LiftHint, LweFold, LweHint, PackOnline, ReinterpretRlwe, Respond},
    tiling::Tiling,
};
use zeroize::Zeroizing;

use crate::{
    ProtocolError, layout,
    pack_page::{OpenedPack, PackHead, PackHost, PackPage, PackPending},
    pack_table::{PackSpec, PackTable, Second},
    page::Partial,
    parts::joined_ciphertexts,
    registry::Protocol,
    response::join,
    ring_keys::RingKeys,
    target::Target,
};

/// The page of `double-pack`.
pub struct DoublePack;

impl PackPage for DoublePack {
    const NAME: &'static str = "double-pack";
    const SPEC: PackSpec = PackSpec { protocol: Protocol::DoublePack, second: Second::Entry, folds: false };

    fn columns(params: &PackParams, slots: usize, slot_bytes: usize) -> usize {
        layout::expansion_columns(params, 0.0, slots, slot_bytes)
    }

    fn path_behind(table: &PackTable, _: &[Range<usize>]) -> Vec<Step> {
        let params = table.params();
        let first = table.first_shape();
        let second = table.second_shape();
        let ring = *params.ring();
        let n = params.lwe().n();
        let matrix = table.second_matrix();
        let db = Tiling::new(second.rows(), table.second_words());
        // The second hint is computed and packed a part at a time.
        let columns = second.plaintexts().min(table.second_part_columns());
        let parts = second.plaintexts().div_ceil(columns);
        let hint = table.lifted_tiling(columns);
        vec![
            Step::of_query(ReinterpretRlwe { ring, count: first.plaintexts(), db }),
            Step::of_query(LweFold { db }),
            Step::of_query(LweHint { db, matrix, parts }),
            Step::of_query(LiftHint { ring, n, columns, parts }),
            // Packing starts when the hints of all queries are lifted.
            Step::of_batch(PackOnline { ring, hint, rows: second.rows(), parts }),
            Step::of_batch(Respond { ring, plaintexts: second.plaintexts() }),
        ]
    }

    fn finish<B: PackOps>(
        host: &PackHost<'_, B>,
        _: &PackHead<B>,
        opened: &OpenedPack<B::Words>,
        keys: &[&B::Keys],
        partials: Vec<Partial<B::Words>>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let backend = host.backend;
        let table = host.table;
        let queries = opened.expanded.all().len();
        let packed = joined_ciphertexts(backend, queries, host.ciphertext_words(), partials)?;
        let planes = table.first_shape().planes();
        let shape = table.second_shape();
        // The database and the hint of a query are long, so there is one pair at a time, without synchronisation in between.
        let again =
            packed.iter().zip(opened.expanded.all()).enumerate().map(|(index, (packed, expanded))| {
                let entries = backend.reinterpret_rlwe(&host.scheme.ring, packed, planes)?; // (4)  a column an entry
                let folded = backend.lwe_fold(&entries, &opened.second.range(&(index..index + 1)))?; //      (1)  4 N words a plane
                let mut parts = Vec::new();
                for columns in table.second_parts() {
                    let rows = shape.rows_of(columns.clone());
                    let hint = backend.lwe_hint(&entries, &host.second_matrix(), rows)?;
                    parts.push(host.pack_online(&folded, &hint, columns, &expanded.selectors)?); // (3)  4 a plane
                }
                join(backend, &parts)
            });
        host.respond(keys, &again.collect::<Result<Vec<_>, _>>()?)
    }

    /// Undoes the second packing, which yields the bytes of a ciphertext, and decrypts that.
    fn recover(
        table: &PackTable,
        keys: &RingKeys,
        _: &PackPending,
        target: &Target,
        switched: &[u32],
    ) -> Zeroizing<Vec<u8>> {
        let ring = table.params().ring();
        let size = table.switched_bytes();
        let bits = ring.response_bits();
        let (_, lane) = table.place(target.block);
        let mut bytes = Zeroizing::new(Vec::with_capacity(switched.len() / size));
        for plane in switched.chunks_exact(size * ring.degree()) {
            let word =
                |bytes: &[u32]| bytes.iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
            // This ciphertext of the wanted entry is secret: the server has the ciphertexts of all entries, and would recognise it.
            let half = |half: fn(u64, u32) -> u64| -> Zeroizing<Vec<u64>> {
                Zeroizing::new(plane.chunks_exact(size).map(|bytes| half(word(bytes), bits.a)).collect())
            };
            let a = half(|word, bits| word & ((1 << bits) - 1));
            let b = half(|word, bits| word >> bits);
            let plaintext =
                decrypt_response(keys.context(), &keys.secrets().query, &a, &b, bits, 1, u8::BITS);
            bytes.extend_from_slice(&plaintext);
        }
        table.entry_layout().slot_of_lane(&bytes, lane)
    }
}
