//! The hint of which a second database is made, as words.

use std::{
    ops::Range,
    sync::{Mutex, PoisonError},
};

use hush_ops::contract::LweOps;
use prost::bytes::Bytes;

use super::{
    BuildError,
    hint::{Source, step_rows, steps},
    pieces::{Pieces, Worker},
};
use crate::Progress;

/// All words of a hint of `rows` rows, in memory.
pub(super) struct Words {
    words: Mutex<Vec<u32>>,
    rows: usize,
    n: usize,
}

impl Words {
    pub(super) fn new(rows: usize, n: usize) -> Self {
        Self { words: Mutex::new(vec![0; rows * n]), rows, n }
    }

    /// The words, row after row.
    pub(super) fn into_words(self) -> Vec<u32> {
        self.words.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, step: usize) -> Range<usize> {
        let rows = step_rows(self.rows, step);
        rows.start * self.n..rows.end * self.n
    }
}

impl Pieces for Words {
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
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let read = content.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        words[self.place(step)].iter_mut().zip(read).for_each(|(word, read)| *word = read);
        Ok(())
    }

    fn read(&self, step: usize, take: &mut dyn FnMut(&[u8])) {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        words[self.place(step)].iter().for_each(|word| take(&word.to_le_bytes()));
    }
}

/// Computes steps of rows.
pub(super) struct WordsWorker<'a, B: LweOps> {
    pub(super) source: Source<'a, B>,
}

impl<B: LweOps> Worker for WordsWorker<'_, B> {
    fn contents(&self, steps: Range<usize>, progress: &dyn Progress) -> Result<Vec<Bytes>, BuildError> {
        let content = |step| {
            progress.check()?;
            let words = self.source.words(self.source.step(step))?;
            let words = self.source.backend.read(&words)?;
            Ok(words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>().into())
        };
        steps.map(content).collect()
    }
}
