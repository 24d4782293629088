//! The error of a step.

use thiserror::Error;

/// The reason why a step failed. Carries shapes only, never data.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum OpsError {
    #[error("{step}: {what} is {actual}, expected {expected}")]
    Shape { step: &'static str, what: &'static str, expected: usize, actual: usize },
    #[error("the filter's linear system is singular; another seed is needed")]
    Singular,
    #[error(
        "an entry of a pack column does not fit into four balanced bytes: build the table with another number of columns"
    )]
    PackColumns,
    #[error("the device failed: {reason}")]
    Backend { reason: String },
}

impl OpsError {
    /// Returns `Ok` if `actual == expected`, an [`OpsError::Shape`] otherwise.
    pub fn check_shape(
        step: &'static str,
        what: &'static str,
        expected: usize,
        actual: usize,
    ) -> Result<(), OpsError> {
        if expected == actual { Ok(()) } else { Err(OpsError::Shape { step, what, expected, actual }) }
    }
}
