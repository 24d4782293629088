//! The transform with the 52-bit multiply-adds of AVX-512 IFMA: five instructions for eight butterflies, and no range
//! reduction before the end.
//!
//! Source: Boemer et al., "Intel HEXL: Accelerating Homomorphic Encryption with Intel AVX512-IFMA52", section 3, for the
//! multiplication. The passes and the offsets that replace reductions are described in [`forward`] and [`inverse`].
#![cfg(target_arch = "x86_64")]

mod arithmetic;
mod forward;
mod inverse;
mod tables;

use hush_math::ntt::NttPlan;

use self::tables::Tables;
use super::VectorTransform;

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
struct Ifma {
    tables: Tables,
    forward: Kernel,
    inverse: Kernel,
}

/// Returns the transform; `None` if there is no kernel for the degree. Running it on a machine without AVX-512 F and IFMA is
/// undefined behaviour: see [`crate::Cpu`].
pub(super) fn transform(plan: &NttPlan) -> Option<Box<dyn VectorTransform>> {
    let (forward, inverse): (Kernel, Kernel) = match plan.degree() / BLOCK {
        4 => (forward::forward::<4>, inverse::inverse::<4>),
        8 => (forward::forward::<8>, inverse::inverse::<8>),
        16 => (forward::forward::<16>, inverse::inverse::<16>),
        32 => (forward::forward::<32>, inverse::inverse::<32>),
        _ => return None,
    };
    Some(Box::new(Ifma { tables: Tables::new(plan), forward, inverse }))
}

impl VectorTransform for Ifma {
    fn scratch_words(&self) -> usize {
        self.tables.radix * stride(self.tables.radix)
    }

    fn forward(&self, values: &mut [u32], scratch: &mut [u64]) {
        // SAFETY: the machine has the level, as the maker of the backend promised; the caller checked the lengths.
        unsafe { (self.forward)(&self.tables, values.as_mut_ptr(), scratch.as_mut_ptr()) };
    }

    fn inverse(&self, values: &mut [u32], scratch: &mut [u64]) {
        // SAFETY: as above.
        unsafe { (self.inverse)(&self.tables, values.as_mut_ptr(), scratch.as_mut_ptr()) };
    }
}
