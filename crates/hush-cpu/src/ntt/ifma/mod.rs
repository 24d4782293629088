//! The transform with the 52-bit multiply-adds of AVX-512 IFMA: five instructions for eight butterflies, and no range
//! reduction before the end.
//!
//! Source: Boemer et al., "Intel HEXL: Accelerating Homomorphic Encryption with Intel AVX512-IFMA52", section 3, for the
//! multiplication. The passes and the offsets that replace reductions are described in [`forward`] and [`inverse`].

mod arithmetic;
mod forward;
mod inverse;
mod tables;

use hush_math::ntt::NttPlan;

use self::tables::Tables;

/// The number of coefficients that the passes treat alike; a degree is a multiple of four blocks.
const BLOCK: usize = 256;
/// Returns the words between blocks in scratch memory, for `radix` blocks. Words 2 KiB apart would share two sets of
/// the first cache, which hold 24 lines. So for 32 blocks, a line is left free after each block.
const fn stride(radix: usize) -> usize {
    if radix > 16 { BLOCK + 8 } else { BLOCK }
}

/// A function that transforms all of `values`.
type Kernel = unsafe fn(&Tables, values: *mut u32, scratch: *mut u64);

/// Tables and kernels for one modulus and one degree.
pub(super) struct Ifma {
    tables: Tables,
    forward: Kernel,
    inverse: Kernel,
}

impl Ifma {
    /// Creates the tables; `None` if there is no kernel for the degree.
    pub(super) fn new(plan: &NttPlan) -> Option<Self> {
        let (forward, inverse): (Kernel, Kernel) = match plan.degree() / BLOCK {
            4 => (forward::forward::<4>, inverse::inverse::<4>),
            8 => (forward::forward::<8>, inverse::inverse::<8>),
            16 => (forward::forward::<16>, inverse::inverse::<16>),
            32 => (forward::forward::<32>, inverse::inverse::<32>),
            _ => return None,
        };
        Some(Self { tables: Tables::new(plan), forward, inverse })
    }

    /// Returns the words of scratch memory that a transform needs.
    pub(super) fn scratch_words(&self) -> usize {
        self.tables.radix * stride(self.tables.radix)
    }

    /// Computes [`NttPlan::forward`].
    ///
    /// # Safety
    /// The CPU must have AVX-512 F and IFMA; `values` is as long as the degree, `scratch` at least
    /// [`Ifma::scratch_words`].
    pub(super) unsafe fn forward(&self, values: &mut [u32], scratch: &mut [u64]) {
        // SAFETY: the caller promises so.
        unsafe { (self.forward)(&self.tables, values.as_mut_ptr(), scratch.as_mut_ptr()) };
    }

    /// Computes [`NttPlan::inverse`].
    ///
    /// # Safety
    /// The conditions of [`Ifma::forward`] must hold.
    pub(super) unsafe fn inverse(&self, values: &mut [u32], scratch: &mut [u64]) {
        // SAFETY: the caller promises so.
        unsafe { (self.inverse)(&self.tables, values.as_mut_ptr(), scratch.as_mut_ptr()) };
    }
}
