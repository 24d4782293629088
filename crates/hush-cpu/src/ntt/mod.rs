//! The negacyclic number-theoretic transform modulo one prime. Its order and results are those of
//! [`hush_math::ntt::NttPlan`], bit for bit.

mod ifma;
mod narrow;
#[cfg(test)]
mod tests;

use hush_math::ntt::NttPlan;

pub(crate) use self::narrow::Words;

use self::{ifma::Ifma, narrow::Narrow};
use crate::{CpuError, Level};

/// The transforms of one degree modulo one prime at one level.
pub struct Ntt {
    plan: NttPlan,
    kernels: Kernels,
}

/// The implementation that a level uses.
enum Kernels {
    /// The portable code of [`NttPlan`].
    Scalar,
    Narrow(Box<Narrow>),
    Ifma(Box<Ifma>),
}

impl Ntt {
    /// Creates the transforms of `degree` coefficients modulo `modulus` at `level`. Running them on a machine without that level
    /// is undefined behaviour: see [`crate::Cpu`]. Every degree works; those from 1024 to 8192 are fast.
    ///
    /// # Panics
    /// Panics as [`NttPlan::new`] does.
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

    /// Creates the transforms of `degree` coefficients modulo `modulus` at `level`, after checking that the machine has the level.
    ///
    /// # Errors
    /// [`CpuError::MissingLevel`] if the machine lacks the level.
    ///
    /// # Panics
    /// Panics as [`NttPlan::new`] does.
    pub fn at(level: Level, modulus: u32, degree: usize) -> Result<Self, CpuError> {
        Ok(Self::new(level.require()?, modulus, degree))
    }

    /// Returns the portable form of this transform, with its modulus and degree.
    pub fn plan(&self) -> &NttPlan {
        &self.plan
    }

    /// Returns the words of scratch memory that [`Ntt::forward`] and [`Ntt::inverse`] need: the degree or a little more, or 0.
    pub fn scratch_words(&self) -> usize {
        match &self.kernels {
            Kernels::Scalar | Kernels::Narrow(_) => 0,
            Kernels::Ifma(ifma) => ifma.scratch_words(),
        }
    }

    /// Transforms coefficients in natural order to values in bit-reversed order, in place. Slot `i` becomes the value at
    /// psi^(2 reverse(i) + 1). Input and output are canonical. The content of `scratch` does not matter before or after. Fastest if
    /// both are aligned to 64 bytes.
    ///
    /// # Panics
    /// If `values` is not as long as the degree, or `scratch` is shorter than [`Ntt::scratch_words`].
    pub fn forward(&self, values: &mut [u32], scratch: &mut [u64]) {
        let scratch = self.check(values, scratch);
        match &self.kernels {
            Kernels::Scalar => self.plan.forward(values),
            // SAFETY: the maker of this promised that the machine has the level; the lengths are checked.
            Kernels::Narrow(narrow) => unsafe { narrow.forward(values) },
            // SAFETY: as above.
            Kernels::Ifma(ifma) => unsafe { ifma.forward(values, scratch) },
        }
    }

    /// Transforms values in bit-reversed order to coefficients in natural order, in place. This is the inverse of [`Ntt::forward`],
    /// with the same requirements.
    ///
    /// # Panics
    /// Panics as [`Ntt::forward`] does.
    pub fn inverse(&self, values: &mut [u32], scratch: &mut [u64]) {
        let scratch = self.check(values, scratch);
        match &self.kernels {
            Kernels::Scalar => self.plan.inverse(values),
            // SAFETY: the maker of this promised that the machine has the level; the lengths are checked.
            Kernels::Narrow(narrow) => unsafe { narrow.inverse(values) },
            // SAFETY: as above.
            Kernels::Ifma(ifma) => unsafe { ifma.inverse(values, scratch) },
        }
    }

    /// Checks the lengths, and returns exactly the scratch memory that is needed.
    fn check<'a>(&self, values: &[u32], scratch: &'a mut [u64]) -> &'a mut [u64] {
        assert_eq!(values.len(), self.plan.degree());
        &mut scratch[..self.scratch_words()]
    }
}
