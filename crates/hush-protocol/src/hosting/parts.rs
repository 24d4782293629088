//! Parts of a table put together again.

use std::ops::Range;

use hush_ops::{
    OpsError,
    contract::{Memory, RlweBatch, WordStore},
};

use crate::page::Partial;

/// Returns the words of a batch of `queries` queries, `[query][row]`, from those of parts of the rows, `[query][row of the part]`.
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
        let of_query = move |partial: &Partial<M::Words>| {
            let rows = rows_of(&partial.units).len();
            query * rows..(query + 1) * rows
        };
        partials.iter().map(move |partial| (&partial.words[0], of_query(partial)))
    });
    memory.join(&ranges.collect::<Vec<_>>())
}

/// Returns the ciphertexts of each query, from those of the parts, one after another.
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
