//! Opens snapshots and answers batches of queries: the one place where a protocol and a backend become `dyn`.
//!
//! * [`Backends`]: what computes. [`open()`]: snapshot to [`Engine`]. [`engine`]: what a server needs.
//! * [`parts`]: a table whose parts are elsewhere.
//!
//! Snapshots are built by `hush-build`, whose documentation has a table from its records to an answer.

mod backend;
mod choice;
pub mod engine;
mod gpus;
mod hosted;
mod machine;
mod memory;
mod open;
pub mod parts;
mod place;
mod progress;
mod public_reason;
mod units;

pub use backend::Backends;
pub use choice::{BackendChoice, BackendError, CUDA_VARIABLE};
pub use engine::*;
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub use gpus::gpu::{open_devices, room_for_tables};
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub use gpus::thresholds::{keep_thresholds, measured_thresholds, suited_backend};
pub use gpus::{gpu::Gpu, seats::Seat};
pub use hosted::{OpenError, host_batch};
pub use hush_store::cancel::{Cancel, Cancelled};
pub use machine::{Memory, cpu_model, free_disk, memory};
pub use memory::choice::{MemoryChoice, UnknownMemory};
pub use memory::plan::{DoesNotFit, MemoryPlan, Part};
pub use memory::server::server_bytes;
pub use open::{check, open, open_after};
pub use place::{GpuSet, Place};
pub use progress::{Progress, Quiet, Silent};
pub use public_reason::FILES_CHANGED;
pub use units::{Bytes, Seconds};
