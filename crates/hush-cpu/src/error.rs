//! The error of setting up the backend.

use thiserror::Error;

use crate::features::Level;

/// Why the CPU backend could not be set up.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CpuError {
    /// `HUSH_CPU` is set to something else than a level's name.
    #[error("HUSH_CPU is {value:?}, expected scalar, avx2, avx512, avx512ifma or amx")]
    UnknownLevel {
        /// What it is set to.
        value: String,
    },
    /// A level was asked for that this machine does not have.
    #[error(
        "this machine has no {wanted}; its best level is {best} (set HUSH_CPU to that or a lower one, or unset it)"
    )]
    MissingLevel {
        /// The level asked for.
        wanted: Level,
        /// The best level of the machine.
        best: Level,
    },
    /// The threads could not be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        reason: String,
    },
}
