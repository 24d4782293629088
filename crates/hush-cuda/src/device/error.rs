//! The errors of a device.

use thiserror::Error;

/// An error of a device.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum CudaError {
    #[error("no NVIDIA driver on this machine (libcuda.so is not to be found)")]
    NoDriver,
    #[error("the NVIDIA driver has CUDA {major}.{minor}; CUDA 13.0 is needed: install driver 580 or later")]
    OldDriver { major: u32, minor: u32 },
    #[error("there is no GPU {ordinal}: the driver sees {count}")]
    NoDevice { ordinal: usize, count: usize },
    #[error("{name} has compute capability {major}.{minor}; 8.0 (Ampere) or later is needed")]
    TooOld { name: String, major: u32, minor: u32 },
    #[error("this program was built without GPU support (feature `cuda`)")]
    NotBuilt,
    #[error("{wanted} bytes of device memory are needed, {free} are free")]
    OutOfMemory { wanted: usize, free: usize },
    /// Memory is short for data of the driver: code, local memory of threads, page tables, or pinned memory of the host.
    #[error("{call} failed: memory is short")]
    NoMemoryFor { call: String },
    #[error("{call} was given memory of another device")]
    OtherDevice { call: String },
    #[error("{call} failed: {reason}")]
    Driver { call: String, reason: String },
    #[error("the GPU has failed, and does nothing until this program is started again: {reason}")]
    Lost { reason: String },
    #[error("there is no kernel {0} for this device")]
    NoKernel(&'static str),
}

impl CudaError {
    /// Returns whether the call may succeed once memory is freed.
    pub(super) fn is_short_of_memory(&self) -> bool {
        matches!(self, Self::OutOfMemory { .. } | Self::NoMemoryFor { .. })
    }
}
