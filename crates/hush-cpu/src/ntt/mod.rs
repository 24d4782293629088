//! The negacyclic number-theoretic transform modulo one prime, in the order and with the results of
//! [`hush_math::ntt::NttPlan`], bit for bit.

mod ifma;
mod narrow;
#[cfg(test)]
mod tests;

use hush_math::ntt::NttPlan;

pub(crate) use self::narrow::Words;

use self::{ifma::Ifma, narrow::Narrow};
use crate::{CpuError, Level};

/// Transforms of one degree modulo one prime at one level.
pub struct Ntt {
    plan: NttPlan,
    kernels: Kernels,
}

/// How a level transforms.
enum Kernels {
    /// [`NttPlan`] itself.
    Scalar,
    Narrow(Box<Narrow>),
    Ifma(Box<Ifma>),
}

impl Ntt {
    /// Transforms of `degree` coefficients modulo `modulus` at `level`. To run them on a machine without that level
    /// is undefined behaviour: see [`crate::Cpu`]. Every degree works; those from 1024 to 8192 are fast.
    ///
    /// # Panics
    /// As [`NttPlan::new`].
    pub(crate) fn new(level: Level, modulus: u32, degree: usize) -> Self {
        let plan = NttPlan::new(modulus, degree);
        let narrow = |narrow| Kernels::Narrow(Box::new(narrow));
        let kernels = match level {
            Level::Scalar => None,
            Level::Avx2 => Narrow::avx2(&plan).map(narrow),
            Level::Avx512 => Narrow::avx512(&plan).map(narrow),
            Level::Avx512Ifma | Level::Amx => match Ifma::new(&plan) {
                Some(ifma) => Some(Kernels::Ifma(Box::new(ifma))),
                None => Narrow::avx512(&plan).map(narrow),
            },
        };
        Self { plan, kernels: kernels.unwrap_or(Kernels::Scalar) }
    }

    /// Creates the transform on a machine that may lack the level.
    ///
    /// # Errors
    /// [`CpuError::MissingLevel`] if it does.
    ///
    /// # Panics
    /// As [`NttPlan::new`].
    pub fn at(level: Level, modulus: u32, degree: usize) -> Result<Self, CpuError> {
        Ok(Self::new(level.require()?, modulus, degree))
    }

    /// Returns the transform as portable code, with its modulus and degree.
    pub fn plan(&self) -> &NttPlan {
        &self.plan
    }

    /// Returns the words of scratch memory that [`Ntt::forward`] and [`Ntt::inverse`] need: the degree or a little more, or none.
    pub fn scratch_words(&self) -> usize {
        match &self.kernels {
            Kernels::Scalar | Kernels::Narrow(_) => 0,
            Kernels::Ifma(ifma) => ifma.scratch_words(),
        }
    }

    /// Coefficients in natural order to values in bit-reversed order, in place; slot `i` becomes the value at
    /// psi^(2 reverse(i) + 1). Input and output canonical. `scratch` is left with anything. Fastest if both are
    /// aligned to 64 bytes.
    ///
    /// # Panics
    /// If `values` is not as long as the degree, or `scratch` is shorter than [`Ntt::scratch_words`].
    pub fn forward(&self, values: &mut [u32], scratch: &mut [u64]) {
        let scratch = self.check(values, scratch);
        match &self.kernels {
            Kernels::Scalar => self.plan.forward(values),
            // SAFETY: the machine has the level, says who made this; the lengths are checked.
            Kernels::Narrow(narrow) => unsafe { narrow.forward(values) },
            // SAFETY: as above.
            Kernels::Ifma(ifma) => unsafe { ifma.forward(values, scratch) },
        }
    }

    /// Values in bit-reversed order to coefficients in natural order, in place; the inverse of [`Ntt::forward`], with
    /// the same requirements.
    ///
    /// # Panics
    /// As [`Ntt::forward`].
    pub fn inverse(&self, values: &mut [u32], scratch: &mut [u64]) {
        let scratch = self.check(values, scratch);
        match &self.kernels {
            Kernels::Scalar => self.plan.inverse(values),
            // SAFETY: the machine has the level, says who made this; the lengths are checked.
            Kernels::Narrow(narrow) => unsafe { narrow.inverse(values) },
            // SAFETY: as above.
            Kernels::Ifma(ifma) => unsafe { ifma.inverse(values, scratch) },
        }
    }

    /// Exactly the scratch memory that is needed, if the lengths are right.
    fn check<'a>(&self, values: &[u32], scratch: &'a mut [u64]) -> &'a mut [u64] {
        assert_eq!(values.len(), self.plan.degree());
        &mut scratch[..self.scratch_words()]
    }
}
