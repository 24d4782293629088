//! The words of a hint from which a second database is made.

use std::ops::Range;

use parking_lot::Mutex;

use super::{
    hint::{step_rows, steps},
    pieces::Pieces,
};
use crate::builder::BuildError;

/// The bits of a word that is not rounded.
pub(in crate::builder) const WHOLE: u32 = u32::BITS;

/// All words of a hint of `rows` rows, in memory.
pub(in crate::builder) struct HintWords {
    words: Mutex<Vec<u32>>,
    rows: usize,
    n: usize,
}

impl HintWords {
    pub(in crate::builder) fn new(rows: usize, n: usize) -> Self {
        Self { words: Mutex::new(vec![0; rows * n]), rows, n }
    }

    /// Returns the words, row after row.
    pub(in crate::builder) fn into_words(self) -> Vec<u32> {
        self.words.into_inner()
    }

    fn place(&self, step: usize) -> Range<usize> {
        let rows = step_rows(self.rows, step);
        rows.start * self.n..rows.end * self.n
    }
}

impl Pieces for HintWords {
    fn count(&self) -> usize {
        steps(self.rows)
    }

    fn units(&self, step: usize) -> u64 {
        step_rows(self.rows, step).len() as u64
    }

    fn bytes(&self, step: usize) -> usize {
        size_of::<u32>() * self.place(step).len()
    }

    fn write(&self, step: usize, content: &[u8]) -> Result<(), BuildError> {
        let mut words = self.words.lock();
        let read = content.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        words[self.place(step)].iter_mut().zip(read).for_each(|(word, read)| *word = read);
        Ok(())
    }

    fn read(&self, step: usize, take: &mut dyn FnMut(&[u8])) {
        let words = self.words.lock();
        words[self.place(step)].iter().for_each(|word| take(&word.to_le_bytes()));
    }
}
