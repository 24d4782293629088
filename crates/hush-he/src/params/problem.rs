//! The lattice problems behind the security of a parameter set.

use super::distributions::{ErrorDistribution, SecretDistribution};
use crate::entities::MatrixStructure;

/// Samples `(a, <a, s> + e)` modulo q under one secret s. An attacker who tells them from random pairs breaks the set.
///
/// `scripts/security.py` estimates the security of a set from this problem. It leaves out rounding, which only adds to the error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatticeProblem {
    /// The number of entries of s.
    pub n: usize,
    /// The modulus q.
    pub modulus: u128,
    /// The distribution of the entries of s.
    pub secret: SecretDistribution,
    /// The distribution of e.
    pub error: ErrorDistribution,
    /// The dependence between the entries of the vectors a.
    pub structure: MatrixStructure,
    /// The largest number of samples under one s; `None` if the security does not depend on it.
    pub max_samples: Option<usize>,
}

impl LatticeProblem {
    /// Returns the usual name of the problem: `lwe`, `module-lwe`, or `rlwe` if the rank is 1.
    pub fn kind(&self) -> &'static str {
        match self.structure {
            MatrixStructure::Plain => "lwe",
            MatrixStructure::Ring { degree } if degree == self.n => "rlwe",
            MatrixStructure::Ring { .. } => "module-lwe",
        }
    }

    /// Returns log2 of the modulus.
    pub fn log2_modulus(&self) -> f64 {
        (self.modulus as f64).log2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{
        COLPACK_N2048_Q52, DEFAULT_LWE, INSECURE_PACK_PLAIN, INSECURE_PLAIN, ONION_M31, PACK_M31,
        ParameterSet,
    };

    #[test]
    fn problems_are_those_of_the_sets() {
        let facts = |problem: &LatticeProblem| (problem.kind(), problem.n, problem.log2_modulus().round());
        let problems = COLPACK_N2048_Q52.problems();
        assert_eq!(
            problems.iter().map(facts).collect::<Vec<_>>(),
            [("rlwe", 2048, 32.0), ("rlwe", 2048, 52.0)]
        );
        let problems = PACK_M31.problems();
        assert_eq!(
            problems.iter().map(facts).collect::<Vec<_>>(),
            [("module-lwe", 1280, 32.0), ("rlwe", 4096, 93.0)]
        );
        assert_eq!(problems, [DEFAULT_LWE.problems(), ONION_M31.problems()].concat());
        assert!(INSECURE_PLAIN.problems().is_empty() && INSECURE_PACK_PLAIN.problems().is_empty());
    }
}
