//! An LWE parameter set.

use hush_math::{
    csprng::Csprng,
    samplers::{GaussianTable, sample_binary, sample_ternary},
};

use crate::entities::{MatrixDomain, MatrixShape, MatrixStructure};

/// Bits of the message space: a database byte.
pub const MESSAGE_BITS: u32 = 8;

/// Distribution of the entries of an LWE secret, or of the coefficients of an RLWE secret.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SecretDistribution {
    /// Zero: only for tests without encryption.
    Zero,
    /// Uniform over {0, 1}.
    Binary,
    /// Uniform over {-1, 0, 1}.
    Ternary,
    /// Discrete Gaussian of this standard deviation (the "normal form").
    Gaussian(f64),
}

impl SecretDistribution {
    /// Standard deviation.
    pub fn std(self) -> f64 {
        match self {
            Self::Zero => 0.0,
            Self::Binary => 0.5,
            Self::Ternary => (2.0f64 / 3.0).sqrt(),
            Self::Gaussian(std) => std,
        }
    }

    /// The mean of the square of an entry: the variance, but for binary ones, whose mean is not zero.
    pub fn mean_square(self) -> f64 {
        match self {
            Self::Zero => 0.0,
            Self::Binary => 0.5,
            Self::Ternary => 2.0 / 3.0,
            Self::Gaussian(std) => std.powi(2),
        }
    }

    /// What the field calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Binary => "binary",
            Self::Ternary => "ternary",
            Self::Gaussian(_) => "gaussian",
        }
    }

    /// Fills `out`, which must be zero, with entries modulo 2^32. Constant time in them.
    pub(crate) fn sample(self, rng: &mut Csprng, out: &mut [u32]) {
        match self {
            Self::Zero => {}
            Self::Binary => sample_binary(rng, out),
            Self::Ternary => sample_ternary(rng, out),
            Self::Gaussian(std) => GaussianTable::new(std).add_to(rng, out),
        }
    }
}

/// Distribution of the LWE error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorDistribution {
    /// No error at all: only for tests without encryption.
    None,
    /// Uniform over {-1, 0, 1} (FrodoPIR).
    Ternary,
    /// Discrete Gaussian of this standard deviation.
    Gaussian(f64),
}

impl ErrorDistribution {
    /// Standard deviation.
    pub fn std(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Ternary => (2.0f64 / 3.0).sqrt(),
            Self::Gaussian(std) => std,
        }
    }
}

/// An LWE set modulo q = 2^32 with message space Z_256 (Delta = 2^24).
///
/// There is no way to make one but to take a preset ([`super::ParameterSet::named`]), so a set that a peer names is
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
    /// Name of the preset.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Security in bits (lattice-estimator, MATZOV; see SECURITY.md).
    pub fn security_bits(&self) -> f64 {
        self.security_bits
    }

    /// LWE dimension n.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Distribution of the secret.
    pub fn secret(&self) -> SecretDistribution {
        self.secret
    }

    /// Distribution of the error.
    pub fn error(&self) -> ErrorDistribution {
        self.error
    }

    /// Structure of the public matrix.
    pub fn structure(&self) -> MatrixStructure {
        self.structure
    }

    /// Most samples under one secret, and so most columns; `None` if their number does not matter.
    ///
    /// An error of three values is a root of `e^3 - e`: a cubic equation in the secret for every sample, and enough of them can be
    /// solved (Arora and Ge). At n = 1774 that takes 187 bits with 2^23 samples, which is still more than lattice attacks take, but
    /// 157 with 2^24 and 111 with 2^26 (`docs/notes/security-estimates.md`).
    pub fn max_samples(&self) -> Option<usize> {
        matches!(self.error, ErrorDistribution::Ternary).then_some(1 << 23)
    }

    /// Whether words always travel at 32 bits, as in the paper that the set is from.
    pub fn full_words(&self) -> bool {
        self.full_words
    }

    /// The shape of the public matrix for `cols` columns.
    pub fn matrix_shape(&self, domain: MatrixDomain, cols: usize) -> MatrixShape {
        MatrixShape::new(domain, self.structure, cols, self.n)
    }

    /// Standard deviation of the error.
    pub fn error_std(&self) -> f64 {
        self.error.std()
    }

    /// Standard deviation of a coefficient of the secret.
    pub fn secret_std(&self) -> f64 {
        self.secret.std()
    }
}
