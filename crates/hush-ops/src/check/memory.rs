//! Checks of [`crate::contract::Memory`].

use std::ops::Range;

use crate::{
    OpsError,
    contract::{WordCopy, WordStore},
};

/// A range is one of `words` words.
pub(crate) fn join(words: usize, range: &Range<usize>) -> Result<(), OpsError> {
    is_within("join", words, range)
}

/// A copy goes from one of `memories` memories to another, and has the words.
pub(crate) fn exchange<W: WordStore>(memories: usize, copy: &WordCopy<'_, W>) -> Result<(), OpsError> {
    for memory in [copy.from, copy.to] {
        OpsError::check_shape(
            "exchange",
            "number of a memory",
            memory.min(memories.saturating_sub(1)),
            memory,
        )?;
    }
    is_within("exchange", copy.words.len(), &copy.range)
}

fn is_within(step: &'static str, words: usize, range: &Range<usize>) -> Result<(), OpsError> {
    OpsError::check_shape(step, "end of a range", range.end.min(words), range.end)?;
    OpsError::check_shape(step, "start of a range", range.start.min(range.end), range.start)
}
