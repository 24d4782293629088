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
    /// A call of the driver failed.
    #[error("{call} failed: {reason}")]
    Driver {
        /// The call, with the kernel's name if it was a launch.
        call: String,
        /// The driver's name and text of the error.
        reason: String,
    },
    /// No module has a kernel of this name.
    #[error("there is no kernel {0} for this device")]
    NoKernel(&'static str),
}
