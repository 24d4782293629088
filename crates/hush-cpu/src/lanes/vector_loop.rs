//! Loops over words, compiled for the vectors of every level.

use super::Lanes;
use crate::{Level, kernels::with_lanes};

/// A loop over vectors of words.
pub(crate) trait VectorLoop {
    /// Runs the loop. The loop and all that it calls must be `#[inline(always)]`: only inlined code is compiled for the instruction
    /// set of [`Lanes::enter`].
    ///
    /// # Safety
    /// The CPU must have the instruction set of `L`.
    unsafe fn run<L: Lanes>(self);
}

/// Runs a loop in the form compiled for `level`. Running it on a machine without that level is undefined behaviour: see
/// [`crate::Cpu`].
pub(crate) fn run(level: Level, work: impl VectorLoop) {
    // SAFETY: the maker of the backend promised that the machine has the level.
    unsafe { with_lanes!(level, L => L::enter(work)) }
}
