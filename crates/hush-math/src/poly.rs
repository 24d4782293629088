//! Polynomials of Z_Q\[X\]/(X^N + 1) as residues, in one of two representations that the type distinguishes.

use std::marker::PhantomData;

use zeroize::Zeroize;

/// The representation by coefficients, in natural order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coeff {}
/// The representation by values at the roots of X^N + 1, in the slot order of [`crate::ntt::NttPlan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eval {}

/// A polynomial: `limbs x degree` canonical residues, limb after limb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poly<R> {
    degree: usize,
    words: Vec<u32>,
    representation: PhantomData<R>,
}

impl<R> Poly<R> {
    /// Returns the zero polynomial.
    pub fn zero(limbs: usize, degree: usize) -> Self {
        Self::from_words(vec![0; limbs * degree], degree)
    }

    /// Returns a polynomial of residues that the caller knows to be canonical, limb after limb.
    ///
    /// # Panics
    /// If `words` is not a whole number of limbs.
    pub fn from_words(words: Vec<u32>, degree: usize) -> Self {
        assert!(words.len().is_multiple_of(degree), "{} words, degree {degree}", words.len());
        Self { degree, words, representation: PhantomData }
    }

    /// Returns the degree N.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns the number of limbs.
    pub fn limbs(&self) -> usize {
        self.words.len() / self.degree
    }

    /// Returns all residues, limb after limb.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Returns the residues modulo prime `limb`.
    pub fn limb(&self, limb: usize) -> &[u32] {
        &self.words[limb * self.degree..][..self.degree]
    }

    /// Returns the residues modulo prime `limb` for writing; the caller keeps them canonical.
    pub fn limb_mut(&mut self, limb: usize) -> &mut [u32] {
        &mut self.words[limb * self.degree..][..self.degree]
    }

    /// Returns the residues.
    pub fn into_words(self) -> Vec<u32> {
        self.words
    }
}

impl<R> Zeroize for Poly<R> {
    fn zeroize(&mut self) {
        self.words.zeroize();
    }
}
