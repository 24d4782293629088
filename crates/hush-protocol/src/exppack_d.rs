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
//! Source: VIPIR section 4.1 (ExpPack(D)). Ours: two bytes a word instead of three, all rows packed instead of three LWE
//! ciphertexts sent as they are, and as in `exppack-s`.

use hush_he::algorithms::{decrypt_byte, phase};
use hush_math::csprng::Csprng;
use hush_ops::contract::{LweBatch, LweOps, PackOps, RlweBatch, WordStore};
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    double::join_digits,
    pack_table::{DIGITS, PackTable},
    packing::{Opened, PackHost, Pending, decrypt, encrypt},
    ring_keys::RingKeys,
    target::Target,
    wire,
};

/// Client: encrypts `target` under fresh secrets.
pub fn query(table: &PackTable, keys: &RingKeys, target: Target, rng: &mut Csprng) -> (wire::Query, Pending) {
    let block = target.block;
    encrypt(table, keys, target, Some(block), 0, rng)
}

/// Offline: the second database M1, from the whole hint H of the first fold (rows x n words).
///
/// # Errors
/// [`ProtocolError::Ops`] if `hint` has not that shape.
pub fn second_db<B: LweOps>(backend: &B, table: &PackTable, hint: &B::Words) -> Result<B::Db, ProtocolError> {
    Ok(backend.reinterpret_lwe(hint, table.shape().slot_bytes * table.params().lwe().n(), DIGITS)?)
}

/// Server: answers a batch with one pass over the databases and one over the hint; the rows that stem from the answer are
/// every query's own.
///
/// # Errors
/// [`ProtocolError::Query`] with the position of a query that is none of this table, before anything is computed.
///
/// # Panics
/// If `host` has no second database.
pub fn answer<B: PackOps>(
    host: &PackHost<'_, B>,
    queries: &[wire::Query],
    keys: &[&B::Keys],
) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let (backend, shape) = (host.backend, host.table.second_shape());
    let second_db = host.second_db.expect("exppack-d has a second database");
    let query = host.open(queries, keys)?;
    let folded = backend.lwe_fold(host.db, &query.first)?; //               (1)  a word a row
    let hint_part = backend.lwe_fold(second_db, &query.second)?; //         (1)  over M1
    let rows = |index| AnswerRows::new(host, &folded, &query, index); //    (2)(1)  over M2
    let online = (0..queries.len()).map(rows).collect::<Result<Vec<_>, _>>()?;
    let words = online.iter().enumerate().flat_map(|(index, rows)| {
        [(&hint_part.words, hint_part.range(index)), (&rows.words, 0..rows.words.len())]
    });
    let folded = LweBatch { rows: shape.rows(), words: backend.join(&words.collect::<Vec<_>>())? };
    let mut packed =
        backend.pack(host.ring, host.hint, &folded, &shape, 0..shape.plaintexts(), &query.selectors())?;
    for ((packed, rows), expanded) in packed.iter_mut().zip(online).zip(&query.expanded) {
        rows.pack_onto(host, packed, &expanded.selectors)?; //              (3)  one plaintext for every N rows
    }
    host.respond(keys, &packed)
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
        query: &Opened<W>,
        index: usize,
    ) -> Result<Self, ProtocolError> {
        let (backend, table) = (host.backend, host.table);
        let words = backend.join(&[(&folded.words, folded.range(index))])?;
        let answer_db = backend.reinterpret_lwe(&words, table.shape().slot_bytes, DIGITS)?;
        let words = backend.lwe_fold(&answer_db, &query.second(index))?.words;
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
        let columns = host.table.second_hint_rows() / shape.degree()..shape.plaintexts();
        // Rows of the same columns that stem from the hint have no part in it.
        let before = (host.table.second_hint_rows() - shape.rows_of(columns.clone()).start) * n;
        let zeros = host.backend.keep(vec![0; before.max(shape.rows())])?;
        let hint = host.backend.join(&[(&zeros, 0..before), (&self.hint, 0..self.hint.len())])?;
        let words = LweBatch { rows: shape.rows(), words: host.backend.join(&[(&zeros, 0..shape.rows())])? };
        let part = host.pack_online(&words, &hint, columns.clone(), selectors)?;
        Ok(host.backend.add_rlwe(host.ring, packed, columns.start, &part)?)
    }
}

/// Client: the slot that was asked for. Undoes the packing (digits), then the first fold.
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
    let rows = &bytes[..table.second_shape().rows()];
    let digits = Zeroizing::new(rows.iter().map(|&byte| byte as u8).collect::<Vec<_>>());
    let words = Zeroizing::new(join_digits(&digits, DIGITS));
    let n = table.params().lwe().n();
    let (hint, answer) = words.split_at(table.shape().slot_bytes * n);
    let decrypt = |(word, hint): (&u32, &[u32])| decrypt_byte(phase(*word, hint, &pending.lwe));
    Ok(Zeroizing::new(answer.iter().zip(hint.chunks_exact(n)).map(decrypt).collect()))
}
