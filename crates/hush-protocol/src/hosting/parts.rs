//! Joins the partials of the parts of a table.

use std::ops::Range;

use hush_ops::{
    OpsError,
    contract::{Memory, RlweBatch, WordStore},
};

use crate::page::Partial;

/// Joins partials over ranges of rows, each `[query][row of the part]`, to the words of the batch, `[query][row]`.
/// `rows_of` maps the units of a part to its rows.
pub(crate) fn joined_rows<M: Memory>(
    memory: &M,
    queries: usize,
    rows_of: impl Fn(&Range<usize>) -> Range<usize>,
    mut partials: Vec<Partial<M::Words>>,
) -> Result<M::Words, OpsError> {
    if partials.len() == 1 {
        return Ok(partials.remove(0).words.remove(0));
    }
    let partials = &partials;
    let rows_of = &rows_of;
    let ranges = (0..queries).flat_map(|query| {
        partials.iter().map(move |partial| {
            let rows = rows_of(&partial.units).len();
            (&partial.words[0], query * rows..(query + 1) * rows)
        })
    });
    memory.join(&ranges.collect::<Vec<_>>())
}

/// Returns the ciphertexts of each query: those of all parts, one part after another.
pub(crate) fn joined_ciphertexts<M: Memory>(
    memory: &M,
    queries: usize,
    ciphertext_words: usize,
    partials: Vec<Partial<M::Words>>,
) -> Result<Vec<RlweBatch<M::Words>>, OpsError> {
    let batch = |words| RlweBatch { ciphertext_words, words };
    if let [_] = partials[..] {
        return Ok(partials.into_iter().flat_map(|partial| partial.words).map(batch).collect());
    }
    (0..queries)
        .map(|query: usize| {
            let parts: Vec<_> = partials
                .iter()
                .map(|partial| (&partial.words[query], 0..partial.words[query].len()))
                .collect();
            memory.join(&parts).map(batch)
        })
        .collect()
}
