//! ExpPack(D), path (1)(2)(1)(3): DoublePIR whose answer is packed, so that no client needs a hint.
//!
//! As in `double`, the first fold's hint H and its answer become small databases with a column for every block. A second
//! query selects the block, and all rows of both databases are packed together. The protocol is for the shortest slots: an
//! answer holds `2 (n + 1)` bytes for every byte of the slot.
//!
//! ```text
//!   H  (blocks x slot x n)  --(2), at build-->  M1  (slot*n*2 x blocks)    hint = M1 * A2, lifted
//!   a1 (blocks x slot)      --(2), online --->  M2  (slot*2   x blocks)    M2 * A2, lifted online
//!   [ M1 * q2 | M2 * q2 ]   --(3)-->            slot*2*(n+1) bytes in ciphertexts of N each
//! ```
//!
//! Source: VIPIR sections 3.5 and 6.1 (ExpPack(D)). Ours: two bytes for each word instead of three, all rows packed instead
//! of three LWE ciphertexts sent unpacked (inferred from its Table 1), and the points listed in `exppack-s`.

use std::ops::Range;

use hush_he::{
    algorithms::{decrypt_byte, phase},
    params::PackParams,
};
use hush_ops::{
    contract::{LweBatch, PackOps, WordStore},
    path::Step,
    steps::{AddRlwe, FoldOnline, LiftHint, LweFold, LweHint, Pack, PackOnline, ReinterpretLwe, Respond},
    tiling::Tiling,
};
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    double::join_digits,
    layout::DOUBLE_MIN_COLUMNS,
    online_rows::OnlineRows,
    pack_page::{OpenedPack, PackHead, PackHost, PackPage, PackPending},
    pack_table::{DIGITS, PackSpec, PackTable, Second},
    page::Partial,
    parts::joined_rows,
    registry::Protocol,
    ring_keys::RingKeys,
    target::Target,
};

/// The page of `exppack-d`.
pub struct ExppackD;

impl PackPage for ExppackD {
    const NAME: &'static str = "exppack-d";
    const SPEC: PackSpec = PackSpec { protocol: Protocol::ExppackD, second: Second::Block, folds: false };

    fn columns(_: &PackParams, slots: usize, _: usize) -> usize {
        DOUBLE_MIN_COLUMNS.max((slots as f64).sqrt() as usize)
    }

    fn path_behind(table: &PackTable, _: &[Range<usize>]) -> Vec<Step> {
        let params = table.params();
        let shape = table.second_shape();
        let matrix = table.second_matrix();
        let ring = *params.ring();
        let n = params.lwe().n();
        let parts = 1;
        let db = Tiling::new(table.second_answer_rows(), table.shape().blocks);
        let columns = table.online_columns().len();
        let hint = table.lifted_tiling(columns);
        vec![
            Step::of_batch(LweFold { db: table.second_tiling() }),
            // The rows of all queries are computed before the first query is packed.
            Step::of_batch(ReinterpretLwe { words: table.rows(), db }),
            Step::of_batch(FoldOnline { db }),
            Step::of_batch(LweHint { db, matrix, parts }),
            Step::of_batch(Pack { ring, hint: table.hint_tiling(), shape }),
            Step::of_query(LiftHint { ring, n, columns, parts }),
            Step::of_query(PackOnline { ring, hint, rows: shape.rows(), parts }),
            Step::of_query(AddRlwe { ring, count: columns }),
            Step::of_batch(Respond { ring, plaintexts: shape.plaintexts() }),
        ]
    }

    fn finish<B: PackOps>(
        host: &PackHost<'_, B>,
        head: &PackHead<B>,
        opened: &OpenedPack<B::Words>,
        keys: &[&B::Keys],
        partials: Vec<Partial<B::Words>>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let backend = host.backend;
        let table = host.table;
        let shape = host.table.second_shape();
        let (second_db, hint) = head.second();
        let queries = opened.expanded.all().len();
        if queries == 0 {
            return Ok(Vec::new());
        }
        let words = joined_rows(backend, queries, |units| table.rows_of(units), partials)?;
        let folded = LweBatch { rows: table.rows(), words };
        let hint_part = backend.lwe_fold(second_db, &opened.second)?; //         (1)  over M1
        let words = (table.shape().slot_bytes, DIGITS);
        let matrix = host.second_matrix();
        let online = OnlineRows::new(backend, &folded, words, &opened.second, &matrix)?; // (2)(1)  over M2
        let words =
            (0..queries).flat_map(|query| [(&hint_part.words, hint_part.range(query)), online.words(query)]);
        let folded = LweBatch { rows: shape.rows(), words: backend.join(&words.collect::<Vec<_>>())? };
        let ring = &host.scheme.ring;
        let plaintexts = 0..shape.plaintexts();
        let mut packed = backend.pack(ring, hint, &folded, &shape, plaintexts, &opened.selectors())?;
        // The words of the rows of M2 are packed now. The part of the packing that depends on their hints is added query by query.
        let columns = table.online_columns();
        // Rows of the same columns that stem from M1 get hints of zero here.
        let before = table.second_hint_rows() - shape.rows_of(columns.clone()).start;
        let before = backend.zeros(before * table.params().lwe().n())?;
        let none = LweBatch { rows: shape.rows(), words: backend.zeros(shape.rows())? };
        for (query, (packed, expanded)) in packed.iter_mut().zip(opened.expanded.all()).enumerate() {
            let hint = backend.join(&[(&before, 0..before.len()), online.hint(query)])?;
            let part = host.pack_online(&none, &hint, columns.clone(), &expanded.selectors)?;
            backend.add_rlwe(ring, packed, columns.start, &part)?; //            (3)  one plaintext for every N rows
        }
        host.respond(keys, &packed)
    }

    /// Undoes the packing, which yields the digits of the first fold's words, and decrypts these.
    fn recover(
        table: &PackTable,
        _: &RingKeys,
        pending: &PackPending,
        _: &Target,
        bytes: &[u32],
    ) -> Zeroizing<Vec<u8>> {
        let rows = &bytes[..table.second_shape().rows()];
        let digits = Zeroizing::new(rows.iter().map(|&byte| byte as u8).collect::<Vec<_>>());
        let words = Zeroizing::new(join_digits(&digits, DIGITS));
        let n = table.params().lwe().n();
        let (hint, answer) = words.split_at(table.shape().slot_bytes * n);
        Zeroizing::new(
            answer
                .iter()
                .zip(hint.chunks_exact(n))
                .map(|(word, hint): (&u32, &[u32])| decrypt_byte(phase(*word, hint, &pending.lwe)))
                .collect(),
        )
    }
}
