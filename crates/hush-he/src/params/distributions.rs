//! The distributions of secrets and errors.

use hush_math::{
    csprng::Csprng,
    samplers::{GaussianTable, sample_binary, sample_ternary},
};

/// The distribution of the entries of an LWE secret, or of the coefficients of an RLWE secret.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SecretDistribution {
    /// Zero: only for tests without encryption.
    Zero,
    /// Uniform over {0, 1}.
    Binary,
    /// Uniform over {-1, 0, 1}.
    Ternary,
    /// Discrete Gaussian of this standard deviation (the "normal form" of LWE).
    Gaussian(f64),
}

impl SecretDistribution {
    /// Returns the standard deviation of an entry.
    pub fn std(self) -> f64 {
        match self {
            Self::Zero => 0.0,
            Self::Binary => 0.5,
            Self::Ternary => (2.0f64 / 3.0).sqrt(),
            Self::Gaussian(std) => std,
        }
    }

    /// Returns the mean of the square of an entry. It equals the variance except for binary entries, whose mean is not zero.
    pub fn mean_square(self) -> f64 {
        match self {
            Self::Zero => 0.0,
            Self::Binary => 0.5,
            Self::Ternary => 2.0 / 3.0,
            Self::Gaussian(std) => std.powi(2),
        }
    }

    /// Returns the name of the distribution as papers use it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Binary => "binary",
            Self::Ternary => "ternary",
            Self::Gaussian(_) => "gaussian",
        }
    }

    /// Fills `out`, which must be zero, with entries modulo 2^32. Constant time in the entries.
    pub(crate) fn sample(self, rng: &mut Csprng, out: &mut [u32]) {
        match self {
            Self::Zero => {}
            Self::Binary => sample_binary(rng, out),
            Self::Ternary => sample_ternary(rng, out),
            Self::Gaussian(std) => GaussianTable::new(std).add_to(rng, out),
        }
    }
}

/// The distribution of the LWE error.
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
    /// Returns the standard deviation of an entry.
    pub fn std(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Ternary => (2.0f64 / 3.0).sqrt(),
            Self::Gaussian(std) => std,
        }
    }
}
