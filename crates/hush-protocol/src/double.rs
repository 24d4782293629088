//! DoublePIR, path (1)(2)(1): the result of a first fold becomes a small database that is folded again.
//!
//! After step (1) the client needs one row block of the hint H and of the answer; both are LWE words. They are cut
//! into bytes (2) and laid out with a column for every block, so that a second query, under a fresh secret and an
//! independent A2, selects the block. The hint that a client downloads is that of the second fold: its size does
//! not depend on the table, but grows by `n * digits * n` words with every byte of a slot. So it is for tiny slots.
//!
//! ```text
//!   H  (blocks x slot x n)  --(2), at build-->  M1  (slot*n*digits x blocks)   hint = M1 * A2
//!   a1 (blocks x slot)      --(2), online --->  M2  (slot*digits   x blocks)
//!   answer = [ M1 * q2 | M2 * q2 | M2 * A2 ]
//! ```
//!
//! Source: SimplePIR paper section 5; VIPIR section 4.1. Ours: 2 digits (16 bits) instead of the whole words.

use hush_he::{
    algorithms::{decrypt_byte, encrypt_lwe, phase},
    codec::{pack_rounded, packed_bytes, unpack_scaled},
    entities::{LweDecryptionKey, OneTimeLweSecret},
};
use hush_math::csprng::Csprng;
use hush_ops::contract::{LweOps, LweQueries};
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    lwe_table::LweTable,
    simple::{answers, check_length, decode_first, hint_row, unpack_queries},
    target::Target,
    wire,
};

/// What the client keeps between query and answer.
pub struct Pending {
    first: LweDecryptionKey,
    second: LweDecryptionKey,
}

/// Client: the columns under one fresh secret, the block under another.
pub fn query(params: &LweTable, target: &Target, rng: &mut Csprng) -> (wire::Query, Pending) {
    let (lwe, widths) = (params.lwe(), params.widths());
    let secret = OneTimeLweSecret::sample(lwe, rng);
    let (first, first_key) = encrypt_lwe(lwe, &params.first_matrix(), secret, &target.columns, rng);
    let secret = OneTimeLweSecret::sample(lwe, rng);
    let block = [(target.block as u32, 1)];
    let (second, second_key) = encrypt_lwe(lwe, &params.second_matrix(), secret, &block, rng);
    let pack = |words: &[u32]| pack_rounded(words, widths.query).into();
    let query = wire::Query { first: pack(&first), second: pack(&second), ..Default::default() };
    (query, Pending { first: first_key, second: second_key })
}

/// Offline: the second database M1, from the whole hint H of the first fold (rows x n words).
///
/// # Errors
/// [`ProtocolError::Ops`] if `hint` has not that shape.
pub fn second_db<B: LweOps>(backend: &B, params: &LweTable, hint: &B::Words) -> Result<B::Db, ProtocolError> {
    Ok(backend.reinterpret_lwe(hint, params.shape().slot_bytes * params.lwe().n(), params.digits())?)
}

/// Server: answers a batch.
///
/// # Errors
/// [`ProtocolError::Length`] if a query has not the lengths that the table's shape gives.
pub fn answer<B: LweOps>(
    backend: &B,
    db: &B::Db,
    second_db: &B::Db,
    params: &LweTable,
    queries: &[wire::Query],
) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let first_queries = decode_first(params, queries)?;
    let (slot_bytes, cols) = (params.shape().slot_bytes, params.shape().blocks);
    let second_queries = unpack_queries(queries, cols, params.widths().query, |query| &query.second)?;
    let folded = backend.lwe_fold(db, &first_queries)?; // (1)
    let hint_part = backend.lwe_fold(second_db, &second_queries)?; //        (1) over M1, whole batch
    let hint_part_words = backend.read(&hint_part.words)?;
    let second_matrix = params.second_matrix();
    let mut out = Vec::with_capacity(queries.len());
    for (index, part) in answers(&hint_part_words, hint_part.rows).enumerate() {
        let words = backend.join(&[(&folded.words, folded.range(index))])?;
        let online = backend.reinterpret_lwe(&words, slot_bytes, params.digits())?; // (2): M2
        let query = LweQueries { cols, words: second_queries.words[index * cols..][..cols].to_vec() };
        let answer_part = backend.lwe_fold(&online, &query)?; //                     (1) over M2
        let rows = params.second_answer_rows();
        let online_hint = backend.lwe_hint(&online, &second_matrix, 0..rows)?;
        let mut bytes = pack_rounded(part, params.widths().answer);
        bytes.extend(pack_rounded(&backend.read(&answer_part.words)?, params.widths().answer));
        bytes.extend(pack_rounded(&backend.read(&online_hint)?, params.widths().hint));
        out.push(bytes);
    }
    Ok(out)
}

/// Client: the slot that was asked for. Undoes the second fold (digits), then the first.
///
/// # Errors
/// [`ProtocolError::Length`] if answer or hint are not as long as the shape says.
pub fn recover(
    params: &LweTable,
    hint: &[u8],
    pending: &Pending,
    answer: &[u8],
) -> Result<Vec<u8>, ProtocolError> {
    check_length("hint", params.hint_bytes(), hint.len())?;
    check_length("answer", params.answer_bytes(), answer.len())?;
    let (widths, n, digits) = (params.widths(), params.lwe().n(), params.digits());
    let (hint_rows, answer_rows) = (params.second_hint_rows(), params.second_answer_rows());
    let (hint_part, rest) = answer.split_at(packed_bytes(hint_rows, widths.answer));
    let (answer_part, online_hint) = rest.split_at(packed_bytes(answer_rows, widths.answer));

    let words = unpack_scaled(hint_part, hint_rows, widths.answer)?;
    let decrypt = |row: usize| -> Result<u8, ProtocolError> {
        Ok(decrypt_byte(phase(words[row], &hint_row(params, hint, row)?, &pending.second)))
    };
    // What is decrypted here belongs to the block that was asked for: wiped like the secrets.
    let hint_digits = Zeroizing::new((0..hint_rows).map(decrypt).collect::<Result<Vec<u8>, _>>()?);

    let words = unpack_scaled(answer_part, answer_rows, widths.answer)?;
    let online_hint = unpack_scaled(online_hint, answer_rows * n, widths.hint)?;
    let decrypt = |(row, &word)| decrypt_byte(phase(word, &online_hint[row * n..][..n], &pending.second));
    let answer_digits = Zeroizing::new(words.iter().enumerate().map(decrypt).collect::<Vec<u8>>());

    let first_hint = Zeroizing::new(join_digits(&hint_digits, digits));
    let first_answer = Zeroizing::new(join_digits(&answer_digits, digits));
    Ok(first_answer
        .iter()
        .enumerate()
        .map(|(byte, &word)| decrypt_byte(phase(word, &first_hint[byte * n..][..n], &pending.first)))
        .collect())
}

/// Words modulo 2^32 from their top `digits` bytes, least significant first.
pub(crate) fn join_digits(bytes: &[u8], digits: usize) -> Vec<u32> {
    bytes
        .chunks_exact(digits)
        .map(|word| {
            word.iter().rev().fold(0u32, |acc, &byte| acc << 8 | u32::from(byte)) << (32 - 8 * digits)
        })
        .collect()
}
