//! The CUDA backend: one file a step, its kernels in `kernels/`. All of it runs without a GPU as well, through the emulator.
//!
//! * [`device`]: a GPU or the emulator: memory, copies, launches. * [`Cuda`]: the backend.
//!
//! Whatever uses the device fails if the device does, or has no memory left: with [`device::CudaError`], and in steps with
//! `OpsError::Backend`. Functions that are not public say only what they refuse beyond that.
//!
//! Without the features `driver` (GPUs) and `emulator` (tests) there is nothing in it.
#![cfg(any(feature = "driver", feature = "emulator"))]

mod column;
mod cuda;
pub mod device;
pub mod footprint;
mod lwe;
mod memory;
mod pack;
mod random;
pub mod ring;
mod squares;
mod thresholds;

pub use column::{ChainPlan, CudaChain};
pub use cuda::Cuda;
pub use lwe::{CudaDb, FoldKernel, PreparedQueries, matrix_bytes};
pub use pack::lift_tile_bytes;
pub use random::fill_random;
pub use ring::Stages;
pub use thresholds::Thresholds;
