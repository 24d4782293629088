//! The negacyclic number-theoretic transform modulo one prime. Its order and results are those of
//! [`hush_math::ntt::NttPlan`], bit for bit.

mod ifma;
mod narrow;
#[cfg(test)]
mod tests;

use hush_math::ntt::NttPlan;

use self::narrow::Narrow;
use crate::{CpuError, Level, kernels::by_level};

/// The transforms of one degree modulo one prime at one level.
pub struct Ntt {
    plan: NttPlan,
    /// The transform with the vectors of the level; `None` for the portable code of [`NttPlan`].
    vectors: Option<Box<dyn VectorTransform>>,
}

/// A transform that a level has. Running it on a machine without that level is undefined behaviour: see [`crate::Cpu`].
trait VectorTransform: Send + Sync {
    /// Returns the words of scratch memory that both directions need.
    fn scratch_words(&self) -> usize;

    /// Computes [`NttPlan::forward`] of values as long as the degree, with exactly the scratch memory that is needed.
    fn forward(&self, values: &mut [u32], scratch: &mut [u64]);

    /// Computes [`NttPlan::inverse`] of values as long as the degree, with exactly the scratch memory that is needed.
    fn inverse(&self, values: &mut [u32], scratch: &mut [u64]);
}

/// Returns the transform in 32-bit lanes.
fn narrow(level: Level, plan: &NttPlan) -> Option<Box<dyn VectorTransform>> {
    Some(Box::new(Narrow::new(level, plan)?))
}

impl Ntt {
    /// Creates the transforms of `degree` coefficients modulo `modulus` at `level`. Running them on a machine without that level
    /// is undefined behaviour: see [`crate::Cpu`]. Every degree works; those from 1024 to 8192 are fast.
    ///
    /// # Panics
    /// Panics as [`NttPlan::new`] does.
    pub(crate) fn new(level: Level, modulus: u32, degree: usize) -> Self {
        let plan = NttPlan::new(modulus, degree);
        let vectors = by_level!(level, {
            portable: None,
            x86: {
                Level::Avx2 | Level::Avx512 => narrow(level, &plan),
                Level::Avx512Ifma | Level::Amx => ifma::transform(&plan).or_else(|| narrow(level, &plan)),
            },
            arm: { Level::Neon | Level::Dotprod | Level::I8mm => narrow(level, &plan) }
        });
        Self { plan, vectors }
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
        self.vectors.as_ref().map_or(0, |vectors| vectors.scratch_words())
    }

    /// Transforms coefficients in natural order to values in bit-reversed order, in place. Slot `i` becomes the value at
    /// psi^(2 reverse(i) + 1). Input and output are canonical. The content of `scratch` does not matter before or after. Fastest if
    /// both are aligned to 64 bytes.
    ///
    /// # Panics
    /// If `values` is not as long as the degree, or `scratch` is shorter than [`Ntt::scratch_words`].
    pub fn forward(&self, values: &mut [u32], scratch: &mut [u64]) {
        let scratch = self.check(values, scratch);
        match &self.vectors {
            None => self.plan.forward(values),
            Some(vectors) => vectors.forward(values, scratch),
        }
    }

    /// Transforms values in bit-reversed order to coefficients in natural order, in place. This is the inverse of [`Ntt::forward`],
    /// with the same requirements.
    ///
    /// # Panics
    /// Panics as [`Ntt::forward`] does.
    pub fn inverse(&self, values: &mut [u32], scratch: &mut [u64]) {
        let scratch = self.check(values, scratch);
        match &self.vectors {
            None => self.plan.inverse(values),
            Some(vectors) => vectors.inverse(values, scratch),
        }
    }

    /// Checks the lengths, and returns exactly the scratch memory that is needed.
    fn check<'a>(&self, values: &[u32], scratch: &'a mut [u64]) -> &'a mut [u64] {
        assert_eq!(values.len(), self.plan.degree());
        &mut scratch[..self.scratch_words()]
    }
}
