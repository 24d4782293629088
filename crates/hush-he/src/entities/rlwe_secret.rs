//! An RLWE secret.

use hush_math::{
    csprng::Csprng,
    poly::{Eval, Poly},
    ring::Ring,
    samplers::sample_ternary,
};
use zeroize::Zeroizing;

/// A ternary polynomial s. It serves many queries, whose masks are fresh, or a single one, whose masks are fixed
/// ([`super::OneTimeRingSecret`]). Wiped when dropped.
pub struct RlweSecret {
    /// Words modulo 2^32.
    coefficients: Zeroizing<Vec<u32>>,
}

impl RlweSecret {
    /// A uniform ternary secret of `degree` coefficients.
    pub fn sample(degree: usize, rng: &mut Csprng) -> Self {
        let mut coefficients = Zeroizing::new(vec![0; degree]);
        sample_ternary(rng, &mut coefficients);
        Self { coefficients }
    }

    /// The secret with the coefficients `words`.
    pub(crate) fn from_words(words: &[u32]) -> Self {
        Self { coefficients: Zeroizing::new(words.to_vec()) }
    }

    /// No secret: only for tests without encryption.
    pub(super) fn zero(degree: usize) -> Self {
        Self { coefficients: Zeroizing::new(vec![0; degree]) }
    }

    /// Part `part` of `parts`: the coefficients `part + j parts`, a secret of the subring of these.
    pub(crate) fn part(&self, part: usize, parts: usize) -> Self {
        let coefficients = self.coefficients.iter().skip(part).step_by(parts).copied().collect();
        Self { coefficients: Zeroizing::new(coefficients) }
    }

    /// s in evaluation form.
    pub fn eval(&self, ring: &Ring) -> Zeroizing<Poly<Eval>> {
        let coefficients = Zeroizing::new(ring.from_signed(&self.coefficients));
        // The transform takes its argument over, so this copy is the one that is wiped by the result.
        Zeroizing::new(ring.forward((*coefficients).clone()))
    }
}
