//! Checks of [`crate::contract::Memory`].

use std::ops::Range;

use crate::OpsError;

/// A range is one of `words` words.
pub(crate) fn join(words: usize, range: &Range<usize>) -> Result<(), OpsError> {
    OpsError::check_shape("join", "end of a range", range.end.min(words), range.end)?;
    OpsError::check_shape("join", "start of a range", range.start.min(range.end), range.start)
}
