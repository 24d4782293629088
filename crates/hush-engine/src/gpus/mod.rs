//! GPUs, and the tables on them: one on a GPU, or in parts on several.

#[cfg_attr(not(any(feature = "cuda", feature = "emulator")), path = "no_gpu.rs")]
pub(crate) mod gpu;
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub(crate) mod promises;
pub(crate) mod seats;
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub(crate) mod several;
pub(crate) mod spread;
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub(crate) mod thresholds;
