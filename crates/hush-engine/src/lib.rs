//! Opens snapshots and answers batches of queries: the one place where a protocol and a backend become `dyn`.
//!
//! * [`Backends`]: the devices that compute. [`open()`]: from a snapshot to an [`Engine`], at its [`Placement`]. [`engine`]: the
//!   interface of a server. [`parts`]: a table whose parts are in other processes.
//!
//! * `placement/`: shares and their devices. `memory/`: what a share takes. `gpus/`: their reservations and thresholds.
//!
//! Snapshots are built by `hush-build`, whose documentation has a table from its records to an answer.

mod backend;
mod choice;
mod copies;
pub mod engine;
mod gpus;
mod machine;
mod memory;
mod named;
mod open;
mod open_error;
mod opening;
pub mod parts;
mod placement;
mod progress;
mod stored;
mod table;
mod units;

pub use backend::Backends;
pub use choice::{BackendChoice, BackendError, CUDA_VARIABLE};
pub use engine::*;
pub use gpus::gpu::Gpu;
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub use gpus::gpu::{open_devices, room_for_tables};
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub use gpus::thresholds::{keep_thresholds, measured_thresholds, suited_backend};
pub use hush_store::cancel::{Cancel, Cancelled};
pub use machine::{Memory, cpu_model, free_disk, memory};
pub use memory::choice::MemoryChoice;
pub use memory::plan::{DoesNotFit, MemoryPlan, Part};
pub use memory::server::{host_batch, server_bytes};
pub use named::UnknownName;
pub use open::{check, open, open_after};
pub use open_error::{FILES_CHANGED, OpenError};
pub use placement::{BATCHES_IN_FLIGHT, Device, PlacedShare, Placement, Rates, SpreadChoice, SpreadTimes};
pub use progress::{Progress, Quiet, Silent};
pub use units::{Bytes, Seconds};
