//! The backend that a user asks for, and the reasons why it cannot be used.

use hush_protocol::wording::Slot;
use thiserror::Error;

use crate::named::named;

/// The backend that a user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// A GPU for tables that fit into its memory, if there is one; otherwise the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The GPU; an error if there is none, or a table does not fit.
    Cuda,
}

named!(BackendChoice, "a backend", [Auto = "auto", Cpu = "cpu", Cuda = "cuda"]);

/// The environment variable that has a program with the emulator use it in place of a GPU.
pub const CUDA_VARIABLE: &str = "HUSH_CUDA";

/// A reason why a backend cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackendError {
    /// [`CUDA_VARIABLE`] has a value that this program does not know.
    #[error("HUSH_CUDA is '{0}', which this program does not know: unset it{emulator}", emulator = emulator_hint())]
    Variable(String),
    /// The program has no CUDA backend.
    #[error("this program was built without GPU support: build it with `make build-cuda`")]
    NotBuilt,
    /// The user has chosen the CPU.
    #[error("the CPU is asked for")]
    NotAskedFor,
    /// There is no driver of GPUs.
    #[error("{0}")]
    NoDriver(String),
    /// There is a driver or a GPU, which cannot be used.
    #[error("{0}")]
    Device(String),
    /// The GPU was asked for, and there is none.
    #[error("{backend} is not available: {0}", backend = Slot::Setting("backend", &"cuda"))]
    Unavailable(String),
}

fn emulator_hint() -> &'static str {
    if cfg!(feature = "emulator") { ", or set it to emulator" } else { "" }
}
