//! Readers of messages that several pages share.

use hush_he::codec::unpack_scaled_into;
use hush_ops::contract::LweQueries;
use rayon::prelude::*;

use crate::{ProtocolError, wire};

/// The number of words that one task unpacks.
const UNPACK_WORDS: usize = 1 << 15;

/// Unpacks one vector of every query, `cols` words of `bits` bits each, to words modulo 2^32.
///
/// # Errors
/// [`ProtocolError::Query`] for a query whose vector is malformed.
pub(crate) fn unpack_queries(
    queries: &[wire::Query],
    cols: usize,
    bits: u32,
    vector: impl Fn(&wire::Query) -> &[u8] + Sync,
) -> Result<LweQueries, ProtocolError> {
    let mut words = vec![0; cols * queries.len()];
    words.par_chunks_mut(cols.max(1)).zip(queries).enumerate().try_for_each(|(index, (words, query))| {
        // A piece has a multiple of 8 words, so it begins at a whole byte.
        let pieces = vector(query).par_chunks(UNPACK_WORDS / 8 * bits as usize);
        let words = words.par_chunks_mut(UNPACK_WORDS);
        let unpacked =
            words.zip(pieces).try_for_each(|(words, piece)| unpack_scaled_into(piece, bits, words));
        unpacked.map_err(|source| ProtocolError::Query { index, source })
    })?;
    Ok(LweQueries { cols, words })
}

/// Refuses a batch unless the vectors of all queries have the lengths in `sizes`.
pub(crate) fn check_vectors(sizes: wire::QuerySizes, queries: &[wire::Query]) -> Result<(), ProtocolError> {
    queries.iter().try_for_each(|query| {
        check_length("query, first vector", sizes.first, query.first.len())?;
        check_length("query, second vector", sizes.second, query.second.len())
    })
}

/// Refuses a length other than `expected`.
pub(crate) fn check_length(what: &'static str, expected: usize, actual: usize) -> Result<(), ProtocolError> {
    if expected == actual { Ok(()) } else { Err(ProtocolError::Length { what, expected, actual }) }
}
