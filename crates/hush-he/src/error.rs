//! The error of the scheme layer.

use thiserror::Error;

/// An error in parameters or in bytes to be decoded. Carries no secret.
#[derive(Clone, Debug, Error, PartialEq)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum HeError {
    #[error("packed words are {actual} bytes, expected {expected}")]
    PackedLength { expected: usize, actual: usize },
    #[error("a bit behind the last packed word is set: these bits are zero")]
    PackedPadding,
    #[error("coefficient {index} is not below the modulus")]
    Coefficient { index: usize },
    #[error("unknown parameter preset '{name}'; known: {known}")]
    UnknownPreset { name: String, known: String },
}
