//! GPUs, and the reservations of their memory.

#[cfg_attr(not(any(feature = "cuda", feature = "emulator")), path = "no_gpu.rs")]
pub(crate) mod gpu;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod reservations;
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub(crate) mod thresholds;
