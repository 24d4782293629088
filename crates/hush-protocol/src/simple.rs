//! SimplePIR, path (1): the answer is the database times the query.
//!
//! The table is a matrix of bytes; a query encrypts a small vector over its columns. The answer holds one word for
//! every row; the client decrypts the rows of the block that it wants with its copy of the hint `H = db * A`.
//!
//! | message | words            | width                            |
//! |---------|------------------|----------------------------------|
//! | query   | columns (D0)     | `query_bits`                     |
//! | answer  | blocks x slot    | `answer_bits`                    |
//! | hint    | rows x n         | `hint_bits`, downloaded once     |
//!
//! Source: SimplePIR (Henzinger, Hong, Corrigan-Gibbs, Meiklejohn, Vaikuntanathan) section 4.
//! Ours: words travel rounded to the widths that the noise allows, and the query may be any small vector
//! (a key look-up), not only a one-hot.

use hush_he::{
    HeError,
    algorithms::{decrypt_byte, encrypt_lwe, phase},
    codec::{pack_rounded, unpack_scaled, unpack_scaled_into},
    entities::{LweDecryptionKey, OneTimeLweSecret},
};
use hush_math::csprng::Csprng;
use hush_ops::contract::{LweOps, LweQueries};
use rayon::prelude::*;

use crate::{ProtocolError, lwe_table::LweTable, target::Target, wire};

/// Words that one task unpacks.
const UNPACK_WORDS: usize = 1 << 15;

/// What the client keeps between query and answer.
pub struct Pending {
    key: LweDecryptionKey,
    block: usize,
}

/// Client: encrypts `target` under a fresh secret.
pub fn query(params: &LweTable, target: &Target, rng: &mut Csprng) -> (wire::Query, Pending) {
    let secret = OneTimeLweSecret::sample(params.lwe(), rng);
    let (words, key) = encrypt_lwe(params.lwe(), &params.first_matrix(), secret, &target.columns, rng);
    let first = pack_rounded(&words, params.widths().query).into();
    (wire::Query { first, ..Default::default() }, Pending { key, block: target.block })
}

/// Server: answers a batch with one pass over the database.
///
/// # Errors
/// [`ProtocolError::Length`] if a query has not the length that the table's shape gives.
pub fn answer<B: LweOps>(
    backend: &B,
    db: &B::Db,
    params: &LweTable,
    queries: &[wire::Query],
) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let queries = decode_first(params, queries)?;
    let folded = backend.lwe_fold(db, &queries)?; // (1)
    let words = backend.read(&folded.words)?;
    Ok(words
        .par_chunks(folded.rows.max(1))
        .map(|words| pack_rounded(words, params.widths().answer))
        .collect())
}

/// Client: the slot that was asked for, from the answer and the hint (all of it, packed).
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
    let shape = params.shape();
    let words = unpack_scaled(answer, params.rows(), params.widths().answer)?;
    let first_row = pending.block * shape.slot_bytes;
    (first_row..first_row + shape.slot_bytes)
        .map(|row| Ok(decrypt_byte(phase(words[row], &hint_row(params, hint, row)?, &pending.key))))
        .collect()
}

/// The queries' first dimension as words modulo 2^32.
pub(crate) fn decode_first(params: &LweTable, queries: &[wire::Query]) -> Result<LweQueries, ProtocolError> {
    let (first, second) = params.query_bytes();
    let cols = params.shape().columns;
    for query in queries {
        check_length("query, first dimension", first, query.first.len())?;
        check_length("query, second dimension", second, query.second.len())?;
    }
    Ok(unpack_queries(queries, cols, params.widths().query, |query| &query.first)?)
}

/// One dimension of every query, `cols` words of `bits` bits each, as words modulo 2^32.
pub(crate) fn unpack_queries(
    queries: &[wire::Query],
    cols: usize,
    bits: u32,
    dimension: impl Fn(&wire::Query) -> &[u8] + Sync,
) -> Result<LweQueries, HeError> {
    let mut words = vec![0; cols * queries.len()];
    words.par_chunks_mut(cols).zip(queries).try_for_each(|(words, query)| {
        // Pieces of a multiple of 8 words begin at a whole byte.
        let pieces = dimension(query).par_chunks(UNPACK_WORDS / 8 * bits as usize);
        let words = words.par_chunks_mut(UNPACK_WORDS);
        words.zip(pieces).try_for_each(|(words, piece)| unpack_scaled_into(piece, bits, words))
    })?;
    Ok(LweQueries { cols, words })
}

/// The words of each query of a fold to `rows` rows.
pub(crate) fn answers(words: &[u32], rows: usize) -> impl Iterator<Item = &[u32]> {
    words.chunks(rows.max(1))
}

/// Row `row` of a packed hint.
pub(crate) fn hint_row(params: &LweTable, hint: &[u8], row: usize) -> Result<Vec<u32>, ProtocolError> {
    let bytes = params.hint_row_bytes();
    Ok(unpack_scaled(&hint[row * bytes..][..bytes], params.lwe().n(), params.widths().hint)?)
}

/// `Ok` if `actual == expected`.
pub(crate) fn check_length(what: &'static str, expected: usize, actual: usize) -> Result<(), ProtocolError> {
    if expected == actual { Ok(()) } else { Err(ProtocolError::Length { what, expected, actual }) }
}
