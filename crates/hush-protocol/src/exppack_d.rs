//! ExpPack(D), path (1)(2)(1)(3): DoublePIR whose answer is packed, so that no client needs a hint.
//!
//! As in `double`, the first fold's hint H and answer become small databases with a column for every block, from which a
//! second query selects the block; all rows of both are packed together. It is for the shortest slots: an answer holds
//! `2 (n + 1)` bytes for every byte of the slot.
//!
//! ```text
//!   H  (blocks x slot x n)  --(2), at build-->  M1  (slot*n*2 x blocks)    hint = M1 * A2, lifted
//!   a1 (blocks x slot)      --(2), online --->  M2  (slot*2   x blocks)    M2 * A2, lifted online
//!   [ M1 * q2 | M2 * q2 ]   --(3)-->            slot*2*(n+1) bytes in ciphertexts of N each
//! ```
//!
//! Source: VIPIR sections 3.5 and 6.1 (ExpPack(D))). Ours: two bytes a word instead of three, all rows packed instead of three LWE
//! ciphertexts sent as they are, and as in `exppack-s`.

use std::ops::Range;

use hush_he::{
    algorithms::{decrypt_byte, phase},
    params::PackParams,
};
use hush_ops::{
    contract::{LweBatch, PackOps, RlweBatch, WordStore},
    path::{Step, StepShape},
    tiling::Tiling,
};
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    double::join_digits,
    layout::DOUBLE_MIN_COLUMNS,
    pack_page::{OpenedPack, PackHead, PackHost, PackPage, PackPart, PackPending},
    pack_table::{DIGITS, PackSpec, PackTable, Second},
    page::{Partial, Partials},
    parts::joined_rows,
    registry::Protocol,
    ring_keys::RingKeys,
    target::Target,
};

/// The page.
pub struct ExppackD;

impl PackPage for ExppackD {
    const NAME: &'static str = "exppack-d";
    const SPEC: PackSpec = PackSpec { protocol: Protocol::ExppackD, second: Second::Block, folds: false };
    const PARTIALS: Partials = Partials::Together;

    fn columns(_: &PackParams, slots: usize, _: usize) -> usize {
        DOUBLE_MIN_COLUMNS.max((slots as f64).sqrt() as usize)
    }

    /// The words of its rows.
    fn part_behind(table: &PackTable, units: &Range<usize>) -> (Vec<Step>, usize) {
        (Vec::new(), table.rows_of(units).len())
    }

    fn path_behind(table: &PackTable, _: &[Range<usize>]) -> Vec<Step> {
        let (params, shape, matrix) = (table.params(), table.second_shape(), table.second_matrix());
        let (ring, n, parts) = (*params.ring(), params.lwe().n(), 1);
        let db = Tiling::new(table.second_answer_rows(), table.shape().blocks);
        let columns = table.online_columns().len();
        let hint = table.lifted_tiling(columns);
        vec![
            Step::of_batch(StepShape::LweFold { db: table.second_tiling() }),
            Step::of_query(StepShape::ReinterpretLwe { words: table.rows(), db }),
            Step::of_query(StepShape::LweFold { db }),
            // The hints of all queries' rows are there before the first is packed.
            Step::of_batch(StepShape::LweHint { db, matrix, parts }),
            Step::of_batch(StepShape::Pack { ring, hint: table.hint_tiling(), shape }),
            Step::of_query(StepShape::LiftHint { ring, n, columns, parts }),
            Step::of_query(StepShape::PackOnline { ring, hint, rows: shape.rows(), parts }),
            Step::of_query(StepShape::AddRlwe { ring, count: columns }),
            Step::of_batch(StepShape::Respond { ring, plaintexts: shape.plaintexts() }),
        ]
    }

    fn scan<B: PackOps>(
        _: &PackHost<'_, B>,
        _: &PackPart<B>,
        _: &OpenedPack<B::Words>,
        folded: LweBatch<B::Words>,
    ) -> Result<Vec<B::Words>, ProtocolError> {
        Ok(vec![folded.words])
    }

    fn finish<B: PackOps>(
        host: &PackHost<'_, B>,
        head: &PackHead<B>,
        opened: &OpenedPack<B::Words>,
        keys: &[&B::Keys],
        partials: Vec<Partial<B::Words>>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let (backend, table, shape) = (host.backend, host.table, host.table.second_shape());
        let (second_db, hint) = head.second();
        let queries = opened.expanded.len();
        let words = joined_rows(backend, queries, |units| table.rows_of(units), partials)?;
        let folded = LweBatch { rows: table.rows(), words };
        let hint_part = backend.lwe_fold(second_db, &opened.second)?; //         (1)  over M1
        let rows = |index| AnswerRows::new(host, &folded, opened, index); //     (2)(1)  over M2
        let online = (0..queries).map(rows).collect::<Result<Vec<_>, _>>()?;
        let words = online.iter().enumerate().flat_map(|(index, rows)| {
            [(&hint_part.words, hint_part.range(index)), (&rows.words, 0..rows.words.len())]
        });
        let folded = LweBatch { rows: shape.rows(), words: backend.join(&words.collect::<Vec<_>>())? };
        let (ring, plaintexts) = (&host.scheme.ring, 0..shape.plaintexts());
        let mut packed = backend.pack(ring, hint, &folded, &shape, plaintexts, &opened.selectors())?;
        for ((packed, rows), expanded) in packed.iter_mut().zip(online).zip(opened.expanded.iter()) {
            rows.pack_onto(host, packed, &expanded.selectors)?; //               (3)  one plaintext for every N rows
        }
        host.respond(keys, &packed)
    }

    /// Undoes the packing (digits), then the first fold.
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
        let decrypt = |(word, hint): (&u32, &[u32])| decrypt_byte(phase(*word, hint, &pending.lwe));
        Zeroizing::new(answer.iter().zip(hint.chunks_exact(n)).map(decrypt).collect())
    }
}

/// The rows that stem from the answer, of one query.
struct AnswerRows<W> {
    /// `M2 * q2`.
    words: W,
    /// `M2 * A2`.
    hint: W,
}

impl<W: WordStore> AnswerRows<W> {
    fn new<B: PackOps<Words = W>>(
        host: &PackHost<'_, B>,
        folded: &LweBatch<W>,
        opened: &OpenedPack<W>,
        index: usize,
    ) -> Result<Self, ProtocolError> {
        let (backend, table) = (host.backend, host.table);
        let words = backend.join(&[(&folded.words, folded.range(index))])?;
        let answer_db = backend.reinterpret_lwe(&words, table.shape().slot_bytes, DIGITS)?;
        let words = backend.lwe_fold(&answer_db, &opened.second.query(index))?.words;
        let hint = backend.lwe_hint(&answer_db, &table.second_matrix(), 0..table.second_answer_rows())?;
        Ok(Self { words, hint })
    }

    /// Adds the part of the packing that the hint of these rows makes; their words are packed already.
    fn pack_onto<B: PackOps<Words = W>>(
        &self,
        host: &PackHost<'_, B>,
        packed: &mut RlweBatch<W>,
        selectors: &RlweBatch<W>,
    ) -> Result<(), ProtocolError> {
        let (shape, n) = (host.table.second_shape(), host.table.params().lwe().n());
        let columns = host.table.online_columns();
        // Rows of the same columns that stem from the hint have no part in it.
        let before = (host.table.second_hint_rows() - shape.rows_of(columns.clone()).start) * n;
        let zeros = host.backend.keep(vec![0; before.max(shape.rows())])?;
        let hint = host.backend.join(&[(&zeros, 0..before), (&self.hint, 0..self.hint.len())])?;
        let words = LweBatch { rows: shape.rows(), words: host.backend.join(&[(&zeros, 0..shape.rows())])? };
        let part = host.pack_online(&words, &hint, columns.clone(), selectors)?;
        Ok(host.backend.add_rlwe(&host.scheme.ring, packed, columns.start, &part)?)
    }
}
