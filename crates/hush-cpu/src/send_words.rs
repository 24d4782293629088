//! The step that rounds the words of an answer and packs them.

use hush_ops::contract::{LweBatch, Rounding, SentRows};
use rayon::prelude::*;

use crate::Cpu;

/// The fewest rows that a thread packs, of the pieces of a query: a multiple of eight, so that parts of a piece are whole bytes.
const PART_ROWS: usize = 1 << 14;

/// Computes [`hush_ops::contract::LweOps::send_words`] for rows that `words` has.
pub(crate) fn send_words(cpu: &Cpu, words: &LweBatch, sent: &[SentRows], rounding: Rounding) -> Vec<Vec<u8>> {
    // Parts have about as many rows, whether of one long piece or of many short ones.
    let parts: Vec<SentRows> = sent.iter().flat_map(parts_of).collect();
    let at_once = PART_ROWS.div_ceil(parts.iter().map(|part| part.rows.len()).max().unwrap_or(0).max(1));
    cpu.install(|| {
        (0..words.batch())
            .into_par_iter()
            .map(|query: usize| {
                let words = &words.words[words.range(query)];
                let packed = parts.par_chunks(at_once).map(|parts| rounding.pack(words, parts));
                packed.collect::<Vec<_>>().concat()
            })
            .collect()
    })
}

/// Cuts a piece into parts of whole bytes.
fn parts_of(sent: &SentRows) -> impl Iterator<Item = SentRows> {
    let SentRows { rows, bits } = sent.clone();
    let end = rows.end;
    rows.step_by(PART_ROWS).map(move |start| SentRows { rows: start..end.min(start + PART_ROWS), bits })
}

hush_ops::footprint!(Cpu: SendWords, |step, batch| {
    // The parts of an answer, and all of it.
    2 * batch * step.bytes
});
