//! Opens snapshots and answers batches of queries: the one place where a protocol and a backend become `dyn`.
//!
//! * [`Backends`]: what computes. [`open`]: snapshot to [`Engine`]. [`engine`]: what a server needs.
//! * [`parts`]: a table whose parts are elsewhere.
//!
//! Snapshots are built by `hush-build`, whose documentation has a table from its records to an answer.

mod backend;
pub mod engine;
#[cfg_attr(not(any(feature = "cuda", feature = "emulator")), path = "no_gpu.rs")]
mod gpu;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod gpu_thresholds;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod gpus;
mod hosted;
mod machine;
mod mapped_files;
mod memory_choice;
mod memory_plan;
pub mod parts;
mod place;
mod progress;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod promises;
mod public_reason;
mod server_memory;
mod spread;
mod units;

pub use backend::{BackendChoice, BackendError, Backends, CUDA_VARIABLE, Seat};
pub use engine::*;
pub use gpu::Gpu;
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub use gpu::{open_devices, room_for_tables};
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub use gpu_thresholds::{keep_thresholds, measured_thresholds, suited_backend};
pub use hosted::{OpenError, check, host_batch, open, open_after};
pub use hush_store::cancel::{Cancel, Cancelled};
pub use machine::{Memory, cpu_model, free_disk, memory};
pub use memory_choice::{MemoryChoice, UnknownMemory};
pub use memory_plan::{DoesNotFit, MemoryPlan, Part};
pub use place::{GpuSet, Place};
pub use progress::{Progress, Quiet, Silent};
pub use public_reason::FILES_CHANGED;
pub use server_memory::server_bytes;
pub use units::{Bytes, Seconds};
