//! The ring switch: an answer over a large ring becomes one over a small ring.

use hush_math::{gadget::Gadget, ring::Ring};

use crate::{
    codec::packed_bytes,
    entities::MatrixStructure,
    params::{ErrorDistribution, LatticeProblem, ResponseBits, SecretDistribution},
};

/// A switch from a ciphertext over R of degree N to one of module rank `rank` over the subring of `degree` coefficients. It
/// keeps the coefficients `j N / degree` of the message and no others. Secrets and errors have the distributions of the set.
///
/// Source: Gentry, Halevi, Peikert, Smart (2012), here to a module. PPIR has no switch; its answers are whole polynomials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingSwitch {
    pub(in crate::params) degree: usize,
    pub(in crate::params) rank: usize,
    pub(in crate::params) primes: &'static [u32],
    pub(in crate::params) gadget: Gadget,
    pub(in crate::params) response: ResponseBits,
}

impl RingSwitch {
    /// Returns the degree of the small ring, which divides N.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns the module rank: the polynomials of a mask, and of a secret.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the small ring modulo Q_s.
    pub fn ring(&self) -> Ring {
        Ring::new(self.degree, self.primes)
    }

    /// Returns the number of primes of Q_s.
    pub fn limbs(&self) -> usize {
        self.primes.len()
    }

    /// Returns the gadget of the switch, modulo Q_s.
    pub fn gadget(&self) -> Gadget {
        self.gadget
    }

    /// Returns the bits of the coefficients of an answer.
    pub fn response_bits(&self) -> ResponseBits {
        self.response
    }

    /// Returns Q_s.
    pub fn modulus(&self) -> u128 {
        self.primes.iter().map(|&prime| u128::from(prime)).product()
    }

    /// Returns the number of words of the key for a ring of degree `from`, masks and bodies.
    pub fn key_words(&self, from: usize) -> usize {
        from / self.degree * self.gadget.digits * (self.rank + 1) * self.limbs() * self.degree
    }

    /// Returns the bytes of the bodies of the key for a ring of degree `from`.
    pub(in crate::params) fn key_words_bytes(&self, from: usize) -> usize {
        let bits = u128::BITS - self.modulus().leading_zeros();
        from / self.degree * self.gadget.digits * packed_bytes(self.degree, bits)
    }

    /// Returns the part of [`super::RingParams::key_context`] that describes this key.
    pub(in crate::params) fn key_context(&self) -> String {
        let Self { degree, rank, primes, gadget: Gadget { width, digits, dropped }, .. } = self;
        format!("switched to {rank} of degree {degree}; primes {primes:?}; by {width},{digits},{dropped}")
    }

    /// Returns the lattice problem of the key and of switched answers.
    pub(in crate::params) fn problem(&self, secret: SecretDistribution, error_std: f64) -> LatticeProblem {
        LatticeProblem {
            n: self.rank * self.degree,
            modulus: self.modulus(),
            secret,
            error: ErrorDistribution::Gaussian(error_std),
            structure: MatrixStructure::Ring { degree: self.degree },
            max_samples: None,
        }
    }
}
