//! The LWE sets by name. Security by the lattice-estimator (commit 27a581bb, MATZOV, GSA shape).

use super::{
    distributions::{ErrorDistribution, SecretDistribution},
    lwe::LweParams,
};
use crate::entities::MatrixStructure;

/// Every preset. The first is the default.
pub const PRESETS: [LweParams; 6] = [
    DEFAULT_LWE,
    LWE_N1280_STD3_2_PLAIN,
    FRODOPIR_N1774_TERNARY,
    SIMPLEPIR_N1024_STD6_4_SEC121,
    INSECURE_LWE_N64,
    INSECURE_PLAIN,
];

/// The default: n = 1280, ternary secret, Gaussian error 3.2, module-LWE with ring degree 256 and rank 5.
/// 133.4 bits. Words travel at the widths that [`super::Widths::choose`] returns, which keep 12 sigma.
pub const DEFAULT_LWE: LweParams = LweParams {
    name: "LWE_N1280_STD3_2_RING256",
    security_bits: 133.4,
    n: 1280,
    secret: SecretDistribution::Ternary,
    error: ErrorDistribution::Gaussian(3.2),
    structure: MatrixStructure::Ring { degree: 256 },
    full_words: false,
};

/// [`DEFAULT_LWE`] without structure in A (plain LWE). 133.4 bits. Queries cost the client `D0 * n`
/// multiply-adds.
pub const LWE_N1280_STD3_2_PLAIN: LweParams =
    LweParams { name: "LWE_N1280_STD3_2_PLAIN", structure: MatrixStructure::Plain, ..DEFAULT_LWE };

/// FrodoPIR's and ChalametPIR's LWE set: n = 1774, ternary secret and error, full words. 176.0 bits.
pub const FRODOPIR_N1774_TERNARY: LweParams = LweParams {
    name: "FRODOPIR_N1774_TERNARY",
    security_bits: 176.0,
    n: 1774,
    secret: SecretDistribution::Ternary,
    error: ErrorDistribution::Ternary,
    structure: MatrixStructure::Plain,
    full_words: true,
};

/// SimplePIR's and DoublePIR's LWE set: n = 1024, error 6.4, secret from the error distribution, full words; messages
/// are bytes instead of the paper's p. **121.5 bits, below this project's minimum of 128**: for comparison only.
pub const SIMPLEPIR_N1024_STD6_4_SEC121: LweParams = LweParams {
    name: "SIMPLEPIR_N1024_STD6_4_SEC121",
    security_bits: 121.5,
    n: 1024,
    secret: SecretDistribution::Gaussian(6.4),
    error: ErrorDistribution::Gaussian(6.4),
    structure: MatrixStructure::Plain,
    full_words: true,
};

/// [`DEFAULT_LWE`] in a dimension that is much too small: quick tests with real noise.
pub const INSECURE_LWE_N64: LweParams = LweParams {
    name: "INSECURE_LWE_N64",
    security_bits: 0.0,
    n: 64,
    structure: MatrixStructure::Ring { degree: 32 },
    ..DEFAULT_LWE
};

/// No secret, no error: the query is the message in the clear. Tests of layouts only.
pub const INSECURE_PLAIN: LweParams = LweParams {
    name: "INSECURE_PLAIN",
    security_bits: 0.0,
    n: 1,
    secret: SecretDistribution::Zero,
    error: ErrorDistribution::None,
    structure: MatrixStructure::Plain,
    full_words: true,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ParameterSet;

    #[test]
    fn names_state_the_facts() {
        for p in PRESETS {
            assert_eq!(LweParams::named(p.name), Ok(p));
            let honest =
                p.security_bits >= 128.0 || p.name.contains("_SEC") || p.name.starts_with("INSECURE");
            assert!(honest, "{} has {} bits and does not say so", p.name, p.security_bits);
        }
        const { assert!(DEFAULT_LWE.security_bits >= 128.0) };
        assert!(LweParams::named("NO_SUCH_SET").unwrap_err().to_string().contains("LWE_N1280"));
    }
}
