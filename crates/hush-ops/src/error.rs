//! The error of a step.

use thiserror::Error;

/// Why a step refused its input. Carries shapes only, never data.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OpsError {
    /// An operand has the wrong shape.
    #[error("{step}: {what} is {actual}, expected {expected}")]
    Shape {
        /// The step that refused.
        step: &'static str,
        /// Which operand or dimension.
        what: &'static str,
        /// What the step needs.
        expected: usize,
        /// What it got.
        actual: usize,
    },
    /// The rows of a filter's linear system are dependent: build it again under another seed.
    #[error("the filter's linear system is singular; another seed is needed")]
    Singular,
    /// An entry of a pack column does not fit into its balanced digits: the table needs another shape.
    #[error(
        "an entry of a pack column does not fit into four balanced bytes: build the table with another number of columns"
    )]
    PackColumns,
    /// The device of a backend failed: it has no memory left, or it is gone.
    #[error("the device failed: {reason}")]
    Backend {
        /// What it said, in words for a person who looks after the machine.
        reason: String,
    },
}

impl OpsError {
    /// `Ok` if `actual == expected`, a [`OpsError::Shape`] otherwise.
    pub fn check_shape(
        step: &'static str,
        what: &'static str,
        expected: usize,
        actual: usize,
    ) -> Result<(), OpsError> {
        if expected == actual { Ok(()) } else { Err(OpsError::Shape { step, what, expected, actual }) }
    }
}
