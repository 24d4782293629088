//! The CUDA backend: one file for each step, with its kernels in `kernels/`. Everything also runs without a GPU, in the emulator.
//!
//! * [`device`]: a GPU or the emulator, with its memory, copies and launches.
//! * [`Cuda`]: the backend.
//!
//! Every function that uses the device returns an error if the device fails or has no memory left: [`device::CudaError`], and in
//! steps `OpsError::Backend`. The docs of private functions list only further errors.
//!
//! Without the features `driver` (GPUs) and `emulator` (tests) this crate is empty.
#![cfg(any(feature = "driver", feature = "emulator"))]

pub mod baselines;
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
