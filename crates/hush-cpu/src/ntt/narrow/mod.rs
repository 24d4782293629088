//! The transform in 32-bit lanes, for AVX2 and for AVX-512 without IFMA. It works in place: a stage at a time across vectors,
//! and the last stages within transposed squares of vectors.

mod arithmetic;
mod passes;
mod tables;
mod words;

use hush_math::ntt::NttPlan;

use self::{
    arithmetic::{Arithmetic, Canonical, Lazy, Multipliers},
    tables::Tables,
};
use crate::lanes::{Avx2, Avx512};

pub(crate) use self::words::Words;

/// The modulus below which residues up to 4 p fit a lane.
const LAZY_LIMIT: u32 = 1 << 30;

/// A function that transforms all of `values`.
type Kernel = unsafe fn(&Tables, values: &mut [u32]);

/// Tables and kernels for one modulus and one degree.
pub(super) struct Narrow {
    tables: Tables,
    forward: Kernel,
    inverse: Kernel,
}

impl Narrow {
    /// Creates the transform for AVX2; `None` if the degree is too small for squares of vectors.
    pub(super) fn avx2(plan: &NttPlan) -> Option<Self> {
        if plan.modulus().value() < LAZY_LIMIT {
            Self::new::<Lazy, 8>(plan, forward_avx2::<Lazy>, inverse_avx2::<Lazy>)
        } else {
            Self::new::<Canonical, 8>(plan, forward_avx2::<Canonical>, inverse_avx2::<Canonical>)
        }
    }

    /// Creates the transform for AVX-512 F; `None` if the degree is too small for squares of vectors.
    pub(super) fn avx512(plan: &NttPlan) -> Option<Self> {
        if plan.modulus().value() < LAZY_LIMIT {
            Self::new::<Lazy, 16>(plan, forward_avx512::<Lazy>, inverse_avx512::<Lazy>)
        } else {
            Self::new::<Canonical, 16>(plan, forward_avx512::<Canonical>, inverse_avx512::<Canonical>)
        }
    }

    fn new<A: Multipliers, const W: usize>(plan: &NttPlan, forward: Kernel, inverse: Kernel) -> Option<Self> {
        (plan.degree() >= 2 * W * W).then(|| Self { tables: Tables::new::<A, W>(plan), forward, inverse })
    }

    /// Computes [`NttPlan::forward`].
    ///
    /// # Safety
    /// The CPU must have the instruction set that this was made for; `values` is as long as the degree.
    pub(super) unsafe fn forward(&self, values: &mut [u32]) {
        // SAFETY: the caller promises so.
        unsafe { (self.forward)(&self.tables, values) };
    }

    /// Computes [`NttPlan::inverse`].
    ///
    /// # Safety
    /// The conditions of [`Narrow::forward`] must hold.
    pub(super) unsafe fn inverse(&self, values: &mut [u32]) {
        // SAFETY: the caller promises so.
        unsafe { (self.inverse)(&self.tables, values) };
    }
}

/// # Safety
/// The CPU must have AVX2; `values` is as long as the tables are for.
#[target_feature(enable = "avx2")]
unsafe fn forward_avx2<A: Arithmetic<Avx2, 8>>(tables: &Tables, values: &mut [u32]) {
    // SAFETY: the caller promises so.
    unsafe { passes::forward::<Avx2, A, 8>(tables, values) };
}

/// # Safety
/// The conditions of [`forward_avx2`] must hold.
#[target_feature(enable = "avx2")]
unsafe fn inverse_avx2<A: Arithmetic<Avx2, 8>>(tables: &Tables, values: &mut [u32]) {
    // SAFETY: the caller promises so.
    unsafe { passes::inverse::<Avx2, A, 8>(tables, values) };
}

/// # Safety
/// The CPU must have AVX-512 F; `values` is as long as the tables are for.
#[target_feature(enable = "avx512f")]
unsafe fn forward_avx512<A: Arithmetic<Avx512, 16>>(tables: &Tables, values: &mut [u32]) {
    // SAFETY: the caller promises so.
    unsafe { passes::forward::<Avx512, A, 16>(tables, values) };
}

/// # Safety
/// The conditions of [`forward_avx512`] must hold.
#[target_feature(enable = "avx512f")]
unsafe fn inverse_avx512<A: Arithmetic<Avx512, 16>>(tables: &Tables, values: &mut [u32]) {
    // SAFETY: the caller promises so.
    unsafe { passes::inverse::<Avx512, A, 16>(tables, values) };
}
