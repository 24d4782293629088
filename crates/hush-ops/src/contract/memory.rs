//! The memory in which a backend keeps the words of batches.

use std::{borrow::Cow, ops::Range};

use super::BatchWords;
use crate::{OpsError, steps::StepShape};

/// Words modulo 2^32 in a backend's memory.
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

/// A copy of words to another memory, or to another allocation in the same memory.
pub struct WordCopy<'a, W> {
    /// The index of the memory that holds the words.
    pub from: usize,
    /// The words in that memory.
    pub words: &'a W,
    /// The range of the words to copy.
    pub range: Range<usize>,
    /// The index of the memory to copy to.
    pub to: usize,
}

/// The memory of a backend. The result of a step stays where the next step reads it.
pub trait Memory: Send + Sync {
    /// Words in this backend's memory.
    type Words: WordStore;

    /// Moves words from the host into this memory.
    fn keep(&self, words: Vec<u32>) -> Result<Self::Words, OpsError>;

    /// Allocates `len` zero words where the backend computes.
    fn zeros(&self, len: usize) -> Result<Self::Words, OpsError> {
        self.keep(vec![0; len])
    }

    /// Returns the words on the host, borrowed if the backend computes there. Waits for the steps that compute them.
    fn read<'a>(&self, words: &'a Self::Words) -> Result<Cow<'a, [u32]>, OpsError>;

    /// Returns whether words go from each of `memories` to all others nearly as fast as a backend reads its own, as over NVLink. If
    /// not, what all need is computed by each rather than sent.
    fn are_linked(memories: &[&Self]) -> bool {
        let _ = memories;
        true
    }

    /// Copies words between several instances of this backend, `memories`, all at once. Returns one result for each of `copies`, in
    /// order, in the memory `to`. The copy starts after the steps that compute the source words, which the caller may drop at once.
    /// The default copies by way of the host; a backend may have a shorter way.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if an index is not one of `memories`, or a range is not within its words; [`OpsError::Backend`] if a
    /// backend cannot allocate its copies, or has failed.
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

    /// Copies some ranges of words, one after another, into one allocation.
    fn join(&self, parts: &[WordRange<'_, Self::Words>]) -> Result<Self::Words, OpsError> {
        parts.iter().try_for_each(|(words, range)| check_range("join", words.len(), range))?;
        self.run_join(parts)
    }

    /// Runs [`Memory::join`].
    fn run_join(&self, parts: &[WordRange<'_, Self::Words>]) -> Result<Self::Words, OpsError>;

    /// Records a step that is called, with the shape of its operands. The default does nothing.
    fn called(&self, _step: impl Into<StepShape>) {}
}

/// Returns an error unless `range` is within `words` words.
fn check_range(step: &'static str, words: usize, range: &Range<usize>) -> Result<(), OpsError> {
    OpsError::check_shape(step, "end of a range", range.end.min(words), range.end)?;
    OpsError::check_shape(step, "start of a range", range.start.min(range.end), range.start)
}

/// A backend that computes on the host: its words are [`BatchWords`], and every method of [`Memory`] is trivial.
pub trait HostMemory: Send + Sync {
    /// Records a step, as [`Memory::called`] does.
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
