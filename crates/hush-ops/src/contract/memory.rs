//! Where the words of batches live.

use std::{borrow::Cow, ops::Range};

use super::BatchWords;
use crate::{OpsError, steps::StepShape};

/// Words modulo 2^32 where a backend has them.
pub trait WordStore: Send + Sync {
    /// Returns the number of words.
    fn len(&self) -> usize;

    /// Returns whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A range of words, as an operand of [`Memory::join`].
pub type WordRange<'a, W> = (&'a W, Range<usize>);

/// Words that go from one of several memories to another, or to a place of their own in the same.
pub struct WordCopy<'a, W> {
    /// The memory that has them.
    pub from: usize,
    /// The words there.
    pub words: &'a W,
    /// Which of them.
    pub range: Range<usize>,
    /// The memory where they go.
    pub to: usize,
}

/// The memory of a backend: what a step returns stays where the next step reads it.
pub trait Memory: Send + Sync {
    /// Words as this backend holds them.
    type Words: WordStore;

    /// Takes words over.
    fn keep(&self, words: Vec<u32>) -> Result<Self::Words, OpsError>;

    /// So many words that are zero, where the backend computes.
    fn zeros(&self, len: usize) -> Result<Self::Words, OpsError> {
        self.keep(vec![0; len])
    }

    /// Returns the words on the host: borrowed from a backend that computes there. Waits for the steps that make them.
    fn read<'a>(&self, words: &'a Self::Words) -> Result<Cow<'a, [u32]>, OpsError>;

    /// Copies of words of some instances of this backend, `memories`, for others, all at once: one for each of `copies`, in order,
    /// in the memory where it goes. It is made after whatever makes the words where they are, which may be dropped at once. By way
    /// of the host, unless a backend has a shorter one.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if there is no such instance, or a range is none of its words; [`OpsError::Backend`] if a backend has no
    /// room for its copies, or one has failed.
    fn exchange(
        memories: &[&Self],
        copies: &[WordCopy<'_, Self::Words>],
    ) -> Result<Vec<Self::Words>, OpsError> {
        for copy in copies {
            for memory in [copy.from, copy.to] {
                let last = memories.len().saturating_sub(1);
                OpsError::check_shape("exchange", "number of a memory", memory.min(last), memory)?;
            }
            check_range("exchange", copy.words.len(), &copy.range)?;
        }
        Self::run_exchange(memories, copies)
    }

    /// Runs [`Memory::exchange`].
    fn run_exchange(
        memories: &[&Self],
        copies: &[WordCopy<'_, Self::Words>],
    ) -> Result<Vec<Self::Words>, OpsError> {
        copies
            .iter()
            .map(|copy: &WordCopy<'_, Self::Words>| {
                let words = memories[copy.from].read(copy.words)?[copy.range.clone()].to_vec();
                memories[copy.to].keep(words)
            })
            .collect()
    }

    /// Returns a copy of some ranges of words, one after another.
    fn join(&self, parts: &[WordRange<'_, Self::Words>]) -> Result<Self::Words, OpsError> {
        parts.iter().try_for_each(|(words, range)| check_range("join", words.len(), range))?;
        self.run_join(parts)
    }

    /// Runs [`Memory::join`].
    fn run_join(&self, parts: &[WordRange<'_, Self::Words>]) -> Result<Self::Words, OpsError>;

    /// Is told every step that is called, with the shape of its operands.
    fn called(&self, _step: impl Into<StepShape>) {}
}

/// Checks that a range is one of `words` words.
fn check_range(step: &'static str, words: usize, range: &Range<usize>) -> Result<(), OpsError> {
    OpsError::check_shape(step, "end of a range", range.end.min(words), range.end)?;
    OpsError::check_shape(step, "start of a range", range.start.min(range.end), range.start)
}

/// A backend that computes on the host: its words are [`BatchWords`], and all that [`Memory`] does is trivial.
pub trait HostMemory: Send + Sync {
    /// [`Memory::called`].
    fn called(&self, _step: impl Into<StepShape>) {}
}

impl<B: HostMemory> Memory for B {
    type Words = BatchWords;

    fn keep(&self, words: Vec<u32>) -> Result<BatchWords, OpsError> {
        Ok(words.into())
    }

    fn read<'a>(&self, words: &'a BatchWords) -> Result<Cow<'a, [u32]>, OpsError> {
        Ok(Cow::Borrowed(words))
    }

    fn run_join(&self, parts: &[WordRange<'_, BatchWords>]) -> Result<BatchWords, OpsError> {
        let mut joined = Vec::with_capacity(parts.iter().map(|(_, range)| range.len()).sum());
        for (words, range) in parts {
            joined.extend_from_slice(&words[range.clone()]);
        }
        Ok(joined.into())
    }

    fn called(&self, step: impl Into<StepShape>) {
        HostMemory::called(self, step);
    }
}

impl WordStore for BatchWords {
    fn len(&self) -> usize {
        (**self).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Reference;

    #[test]
    fn ranges_are_joined_in_order() {
        let [x, y] = [vec![1, 2, 3], vec![4, 5]].map(BatchWords::from);
        let joined = Reference.join(&[(&y, 1..2), (&x, 0..3), (&x, 1..1), (&x, 1..2)]).unwrap();
        assert_eq!(Reference.read(&joined).unwrap()[..], [5, 1, 2, 3, 2]);
        assert_eq!(Reference.join(&[]).unwrap().len(), 0);
        assert_eq!(Reference.zeros(2).unwrap()[..], [0, 0]);
        for (start, end) in [(0, 4), (4, 4), (3, 2)] {
            let range = start..end;
            assert!(matches!(Reference.join(&[(&x, range)]), Err(OpsError::Shape { .. })));
        }
    }

    #[test]
    fn ranges_go_to_other_memories() {
        let words = BatchWords::from(vec![1, 2, 3]);
        let copy = |from, range, to| WordCopy { from, words: &words, range, to };
        let copied =
            Memory::exchange(&[&Reference; 2], &[copy(0, 1..3, 1), copy(1, 0..3, 1), copy(1, 2..2, 0)]);
        assert_eq!(
            copied.unwrap().iter().map(|words| words.to_vec()).collect::<Vec<_>>(),
            [vec![2, 3], vec![1, 2, 3], vec![]]
        );
        let start = 3;
        let end = 2;
        for wrong in [copy(2, 0..1, 0), copy(0, 0..1, 2), copy(0, 0..4, 1), copy(0, start..end, 1)] {
            let refused = Memory::exchange(&[&Reference; 2], &[copy(0, 0..1, 1), wrong]);
            assert!(matches!(refused, Err(OpsError::Shape { .. })));
        }
    }
}
