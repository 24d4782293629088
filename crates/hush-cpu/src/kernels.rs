//! The kernels of a level, chosen once, and what differs between architectures: no other module but `features` and the files of
//! single levels asks for the architecture.

use crate::{
    features::{Cores, Level},
    lwe_fold::FoldKernels,
    rlwe_fold::RlweFoldKernels,
};

/// The kernels that the steps run on. Running them is unsafe on a machine without the level: see [`crate::Cpu`].
pub(crate) struct Kernels {
    /// The level that the kernels are for.
    pub(crate) level: Level,
    /// The fold of the first dimension.
    pub(crate) fold: FoldKernels,
    /// The fold of the first dimension of ring elements.
    pub(crate) rlwe_fold: RlweFoldKernels,
}

impl Kernels {
    /// Returns the kernels of `level` that are best on `cores`.
    pub(crate) fn of(level: Level, cores: Cores) -> Self {
        Self { level, fold: FoldKernels::of(level, cores), rlwe_fold: RlweFoldKernels::of(level) }
    }
}

/// Evaluates the arm of a level. `x86` and `arm` have the arms of their levels; those of other architectures are not compiled.
macro_rules! by_level {
    ($level:expr, { portable: $portable:expr, x86: { $($x86:tt)* }, arm: { $($arm:tt)* } }) => {{
        #[cfg(target_arch = "x86_64")]
        {
            match $level { $crate::Level::Portable => $portable, $($x86)* }
        }
        #[cfg(target_arch = "aarch64")]
        {
            match $level { $crate::Level::Portable => $portable, $($arm)* }
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            match $level { $crate::Level::Portable => $portable }
        }
    }};
}
pub(crate) use by_level;

/// Evaluates an expression with `$lanes` as the name of the vectors of a level.
macro_rules! with_lanes {
    ($level:expr, $lanes:ident => $result:expr) => {
        $crate::kernels::by_level!($level, {
            portable: { type $lanes = $crate::lanes::Portable; $result },
            x86: {
                $crate::Level::Avx2 => { type $lanes = $crate::lanes::avx2::Avx2; $result }
                $crate::Level::Avx512 | $crate::Level::Avx512Ifma | $crate::Level::Amx => {
                    type $lanes = $crate::lanes::avx512::Avx512;
                    $result
                }
            },
            arm: {
                $crate::Level::Neon | $crate::Level::Dotprod | $crate::Level::I8mm => {
                    type $lanes = $crate::lanes::neon::Neon;
                    $result
                }
            }
        })
    };
}
pub(crate) use with_lanes;

/// Prefetches the cache line at `from` into the L1 cache. The pointer may point anywhere.
#[inline(always)]
pub(crate) fn prefetch<T>(from: *const T) {
    // SAFETY: prefetching reads nothing, and every CPU of these architectures has the instruction.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(from.cast());
    };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{from}]", from = in(reg) from, options(nostack, preserves_flags, readonly));
    };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = from;
}

/// Orders writes past the caches ([`crate::lanes::Lanes::stream`]) before all later writes.
#[inline(always)]
pub(crate) fn end_stream() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every CPU of this architecture has this instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    };
}
