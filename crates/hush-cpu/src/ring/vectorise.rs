//! Plain loops, compiled for the instruction set of every level.

use crate::Level;

/// A loop over words that the compiler vectorises.
///
/// `run` and all that it calls are to be `#[inline(always)]`: only what is inlined into the functions below is
/// compiled for their instruction sets.
pub(super) trait VectorLoop {
    /// Runs the loop.
    fn run(self);
}

/// Runs a loop as it was compiled for `level`. On a machine without that level this is undefined behaviour: see
/// [`crate::Cpu`].
pub(super) fn run(level: Level, work: impl VectorLoop) {
    match level {
        Level::Scalar => work.run(),
        // SAFETY: the machine has the level, says who made the backend.
        Level::Avx2 => unsafe { run_avx2(work) },
        // SAFETY: as above.
        Level::Avx512 => unsafe { run_avx512(work) },
        // SAFETY: as above.
        Level::Avx512Ifma | Level::Amx => unsafe { run_avx512dq(work) },
    }
}

/// # Safety
/// The CPU must have AVX2.
#[target_feature(enable = "avx2")]
unsafe fn run_avx2(work: impl VectorLoop) {
    work.run();
}

/// # Safety
/// The CPU must have AVX-512 F, BW and VL.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn run_avx512(work: impl VectorLoop) {
    work.run();
}

/// # Safety
/// The CPU must have AVX-512 F, BW, VL and DQ.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
unsafe fn run_avx512dq(work: impl VectorLoop) {
    work.run();
}
