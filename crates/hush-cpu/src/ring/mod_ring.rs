//! The ring R modulo a product of primes, with the transforms of a level.

use std::sync::Arc;

use hush_math::ring::Ring;

use super::arithmetic::montgomery::Montgomery;
use crate::{Level, ntt::Ntt};

/// The transform and the arithmetic of one prime.
#[derive(Clone)]
pub(crate) struct Limb {
    pub(crate) ntt: Arc<Ntt>,
    pub(crate) montgomery: Montgomery,
}

/// The ring R modulo some primes. Polynomials are words `[limb][N]`.
#[derive(Clone)]
pub(crate) struct ModRing {
    level: Level,
    degree: usize,
    limbs: Vec<Limb>,
}

impl ModRing {
    pub(super) fn new(level: Level, ring: &Ring) -> Self {
        let limbs = ring.moduli().iter().map(|&modulus| Limb {
            ntt: Arc::new(Ntt::new(level, modulus.value(), ring.degree())),
            montgomery: Montgomery::new(modulus),
        });
        Self { level, degree: ring.degree(), limbs: limbs.collect() }
    }

    /// Returns this ring modulo its first `limbs` primes only.
    pub(super) fn first_limbs(&self, limbs: usize) -> Self {
        Self { limbs: self.limbs[..limbs].to_vec(), ..*self }
    }

    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// Returns the degree N.
    pub(crate) fn degree(&self) -> usize {
        self.degree
    }

    pub(crate) fn limbs(&self) -> &[Limb] {
        &self.limbs
    }

    /// Transforms whole polynomials to evaluation form, in place. `scratch` has [`ModRing::transform_words`].
    pub(crate) fn forward(&self, polys: &mut [u32], scratch: &mut [u64]) {
        for (limb, values) in self.limbs.iter().cycle().zip(polys.chunks_exact_mut(self.degree)) {
            limb.ntt.forward(values, scratch);
        }
    }

    /// Transforms whole polynomials to coefficient form, as [`ModRing::forward`] does to evaluation form.
    pub(crate) fn inverse(&self, polys: &mut [u32], scratch: &mut [u64]) {
        for (limb, values) in self.limbs.iter().cycle().zip(polys.chunks_exact_mut(self.degree)) {
            limb.ntt.inverse(values, scratch);
        }
    }

    /// Returns the words of scratch memory that the transforms of every prime need.
    pub(crate) fn transform_words(&self) -> usize {
        self.limbs.iter().map(|limb| limb.ntt.scratch_words()).max().unwrap_or(0)
    }

    /// Returns the words of a polynomial.
    pub(crate) fn words(&self) -> usize {
        self.limbs.len() * self.degree
    }
}
