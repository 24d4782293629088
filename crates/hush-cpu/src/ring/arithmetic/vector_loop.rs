//! Loops over words, compiled for the vectors of every level.

use crate::{
    Level,
    lanes::{Avx2, Avx512, Lanes, Scalar},
};

/// A loop over vectors of words.
pub(crate) trait VectorLoop {
    /// Runs the loop. The loop and all that it calls must be `#[inline(always)]`: only inlined code is compiled for the instruction
    /// sets of the functions below.
    ///
    /// # Safety
    /// The CPU must have the instruction set of `L`.
    unsafe fn run<L: Lanes>(self);
}

/// Runs a loop in the form compiled for `level`. Running it on a machine without that level is undefined behaviour: see
/// [`crate::Cpu`].
pub(crate) fn run(level: Level, work: impl VectorLoop) {
    // SAFETY: the maker of the backend promised that the machine has the level.
    unsafe {
        match level {
            Level::Scalar => work.run::<Scalar>(),
            Level::Avx2 => run_avx2(work),
            Level::Avx512 | Level::Avx512Ifma | Level::Amx => run_avx512(work),
        }
    }
}

/// # Safety
/// The CPU must have AVX2.
#[target_feature(enable = "avx2")]
unsafe fn run_avx2(work: impl VectorLoop) {
    // SAFETY: the caller promises so.
    unsafe { work.run::<Avx2>() };
}

/// # Safety
/// The CPU must have AVX-512 F, BW and VL.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn run_avx512(work: impl VectorLoop) {
    // SAFETY: the caller promises so.
    unsafe { work.run::<Avx512>() };
}
