//! An RLWE secret.

use hush_math::{
    csprng::Csprng,
    poly::{Eval, Poly},
    ring::Ring,
};
use zeroize::Zeroizing;

use crate::params::SecretDistribution;

/// A polynomial s with small coefficients. It serves many queries with fresh masks, or a single query whose masks are fixed
/// ([`super::OneTimeRingSecret`]). Wiped when dropped.
pub struct RlweSecret {
    /// The coefficients as words modulo 2^32.
    coefficients: Zeroizing<Vec<u32>>,
}

impl RlweSecret {
    /// Samples a secret of `degree` coefficients.
    pub fn sample(degree: usize, distribution: SecretDistribution, rng: &mut Csprng) -> Self {
        let mut coefficients = Zeroizing::new(vec![0; degree]);
        distribution.sample(rng, &mut coefficients);
        Self { coefficients }
    }

    /// Returns the secret with the coefficients `words`.
    pub(crate) fn from_words(words: &[u32]) -> Self {
        Self { coefficients: Zeroizing::new(words.to_vec()) }
    }

    /// Returns part `part` of `parts`: the coefficients `part + j parts`, as a secret of the subring.
    pub(crate) fn part(&self, part: usize, parts: usize) -> Self {
        let coefficients = self.coefficients.iter().skip(part).step_by(parts).copied().collect();
        Self { coefficients: Zeroizing::new(coefficients) }
    }

    /// Returns s in evaluation form.
    pub fn eval(&self, ring: &Ring) -> Zeroizing<Poly<Eval>> {
        let coefficients = Zeroizing::new(ring.from_signed(&self.coefficients));
        // `forward` consumes its argument and returns it transformed, so wiping the result wipes this copy too.
        Zeroizing::new(ring.forward((*coefficients).clone()))
    }
}
