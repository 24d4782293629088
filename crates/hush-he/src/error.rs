//! The error of the scheme layer.

use thiserror::Error;

/// What is wrong with parameters or with bytes that were to be decoded. Carries no secret.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum HeError {
    /// A packed vector has the wrong length.
    #[error("packed words are {actual} bytes, expected {expected}")]
    PackedLength {
        /// Bytes that the shape needs.
        expected: usize,
        /// Bytes that came.
        actual: usize,
    },
    /// A bit behind the last word of a packed vector is set.
    #[error("a bit behind the last packed word is set: these bits are zero")]
    PackedPadding,
    /// A coefficient is not below the modulus.
    #[error("coefficient {index} is not below the modulus")]
    Coefficient {
        /// Its place among those that were packed together.
        index: usize,
    },
    /// No preset of that name.
    #[error("unknown parameter preset '{name}'; known: {known}")]
    UnknownPreset {
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
}
