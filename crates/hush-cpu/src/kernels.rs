//! The kernels of a level, chosen once.

use crate::{
    features::{Cores, Level},
    lwe_fold::FoldKernels,
    lwe_hint::{RingKernel, ring_kernel_of},
    rlwe_fold::RlweFoldKernels,
};

/// The kernels that the steps run on. Running them is unsafe on a machine without the level: see [`crate::Cpu`].
pub(crate) struct Kernels {
    /// The level that the kernels are for.
    pub(crate) level: Level,
    /// The fold of the first dimension.
    pub(crate) fold: FoldKernels,
    /// The hint for an A of ring elements.
    pub(crate) ring_hint: RingKernel,
    /// The fold of the first dimension of ring elements.
    pub(crate) rlwe_fold: RlweFoldKernels,
}

impl Kernels {
    /// Returns the kernels of `level` that are best on `cores`.
    pub(crate) fn of(level: Level, cores: Cores) -> Self {
        Self {
            level,
            fold: FoldKernels::of(level, cores),
            ring_hint: ring_kernel_of(level),
            rlwe_fold: RlweFoldKernels::of(level),
        }
    }
}
