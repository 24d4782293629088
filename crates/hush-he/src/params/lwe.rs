//! An LWE parameter set.

use super::{
    distributions::{ErrorDistribution, SecretDistribution},
    problem::LatticeProblem,
};
use crate::entities::{MatrixDomain, MatrixShape, MatrixStructure};

/// The bits of the message space: a message is a database byte.
pub const MESSAGE_BITS: u32 = 8;

/// An LWE set modulo q = 2^32 with message space Z_256 (Delta = 2^24).
///
/// The only way to obtain a set is to take a preset ([`super::ParameterSet::named`]), so a set that a peer names is
/// always one that this program knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LweParams {
    pub(super) name: &'static str,
    pub(super) security_bits: f64,
    pub(super) n: usize,
    pub(super) secret: SecretDistribution,
    pub(super) error: ErrorDistribution,
    pub(super) structure: MatrixStructure,
    pub(super) full_words: bool,
}

impl LweParams {
    /// Returns the name of the preset.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the security in bits (lattice-estimator, MATZOV; see SECURITY.md).
    pub fn security_bits(&self) -> f64 {
        self.security_bits
    }

    /// Returns the LWE dimension n.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Returns the distribution of the secret.
    pub fn secret(&self) -> SecretDistribution {
        self.secret
    }

    /// Returns the distribution of the error.
    pub fn error(&self) -> ErrorDistribution {
        self.error
    }

    /// Returns the structure of the public matrix.
    pub fn structure(&self) -> MatrixStructure {
        self.structure
    }

    /// Returns the largest number of samples (columns) under one secret; `None` if it does not affect security.
    ///
    /// An error of three values is a root of `e^3 - e`, so every sample gives a cubic equation in the secret, and enough of
    /// them can be solved (Arora and Ge). At n = 1774 that attack costs 2^187 with 2^23 samples, still more than lattice attacks,
    /// but 2^157 with 2^24 and 2^111 with 2^26 (`docs/explanation/notes/security-estimates.md`).
    pub fn max_samples(&self) -> Option<usize> {
        matches!(self.error, ErrorDistribution::Ternary).then_some(1 << 23)
    }

    /// Returns whether words always travel at 32 bits, as in the set's paper.
    pub fn full_words(&self) -> bool {
        self.full_words
    }

    /// Returns the shape of the public matrix for `cols` columns.
    pub fn matrix_shape(&self, domain: MatrixDomain, cols: usize) -> MatrixShape {
        MatrixShape::new(domain, self.structure, cols, self.n)
    }

    /// Returns the standard deviation of the error.
    pub fn error_std(&self) -> f64 {
        self.error.std()
    }

    /// Returns the standard deviation of a coefficient of the secret.
    pub fn secret_std(&self) -> f64 {
        self.secret.std()
    }
}

impl LweParams {
    /// Returns the lattice problem behind the words of a query; `None` without encryption.
    pub fn problem(&self) -> Option<LatticeProblem> {
        let problem = LatticeProblem {
            n: self.n,
            modulus: 1 << u32::BITS,
            secret: self.secret,
            error: self.error,
            structure: self.structure,
            max_samples: self.max_samples(),
        };
        (self.secret != SecretDistribution::Zero).then_some(problem)
    }
}
