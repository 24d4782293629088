//! What can go wrong on a device.

use thiserror::Error;

/// An error of a device.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CudaError {
    /// There is no driver on this machine.
    #[error("no NVIDIA driver on this machine (libcuda.so is not to be found)")]
    NoDriver,
    /// The driver is older than the kernels' compiler.
    #[error("the NVIDIA driver has CUDA {major}.{minor}; CUDA 13.0 is needed: install driver 580 or later")]
    OldDriver {
        /// The version of CUDA that the driver has.
        major: u32,
        /// The part after the point.
        minor: u32,
    },
    /// The driver sees no GPU of this number.
    #[error("there is no GPU {ordinal}: the driver sees {count}")]
    NoDevice {
        /// The GPU that was asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// The GPU is too old for the kernels.
    #[error("{name} has compute capability {major}.{minor}; 8.0 (Ampere) or later is needed")]
    TooOld {
        /// The GPU.
        name: String,
        /// Its compute capability.
        major: u32,
        /// The part after the point.
        minor: u32,
    },
    /// This program was built without GPU support.
    #[error("this program was built without GPU support (feature `cuda`)")]
    NotBuilt,
    /// Memory of the device is short.
    #[error("{wanted} bytes of device memory are needed, {free} are free")]
    OutOfMemory {
        /// Bytes that were asked for.
        wanted: usize,
        /// Bytes that the device had left.
        free: usize,
    },
    /// Memory is short for what the driver keeps: code, local memory of threads, tables of pages, or pinned memory of the host.
    #[error("{call} failed: memory is short")]
    NoMemoryFor {
        /// The call, with the kernel's name if it was a launch.
        call: String,
    },
    /// A device was given memory of another one.
    #[error("{call} was given memory of another device")]
    OtherDevice {
        /// The call, with the kernel's name if it was a launch.
        call: String,
    },
    /// A call of the driver failed.
    #[error("{call} failed: {reason}")]
    Driver {
        /// The call, with the kernel's name if it was a launch.
        call: String,
        /// The driver's name and text of the error.
        reason: String,
    },
    /// The device has failed for good: the process has to be started again.
    #[error("the GPU has failed, and does nothing until this program is started again: {reason}")]
    Lost {
        /// The first failure.
        reason: String,
    },
    /// No module has a kernel of this name.
    #[error("there is no kernel {0} for this device")]
    NoKernel(&'static str),
}

impl CudaError {
    /// Whether the same may be done when there is more memory.
    pub(super) fn is_short_of_memory(&self) -> bool {
        matches!(self, Self::OutOfMemory { .. } | Self::NoMemoryFor { .. })
    }
}
