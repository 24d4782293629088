//! The backend that a user asks for, and the reasons why it cannot be used.

use std::{fmt, str::FromStr};

use hush_protocol::wording::Slot;
use thiserror::Error;

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

impl BackendChoice {
    /// All choices.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Cpu, Self::Cuda];

    /// Returns the name that users give.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }
}

impl fmt::Display for BackendChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BackendChoice {
    type Err = BackendError;

    fn from_str(name: &str) -> Result<Self, BackendError> {
        Self::ALL
            .into_iter()
            .find(|choice| choice.name() == name)
            .ok_or_else(|| BackendError::Unknown(name.to_owned()))
    }
}

/// The environment variable that has a program with the emulator use it in place of a GPU.
pub const CUDA_VARIABLE: &str = "HUSH_CUDA";

/// A reason why a backend cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackendError {
    /// There is no backend of this name.
    #[error("unknown backend '{0}': use auto, cpu or cuda")]
    Unknown(String),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_have_names() {
        for choice in BackendChoice::ALL {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        for name in ["", "gpu", "CUDA", "cpu "] {
            let error = name.parse::<BackendChoice>().unwrap_err();
            assert_eq!(error.to_string(), format!("unknown backend '{name}': use auto, cpu or cuda"));
        }
    }
}
