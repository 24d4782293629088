//! Builds snapshots, opens them, and answers batches of queries: the one place where a protocol and a backend
//! become `dyn`.
//!
//! * [`Backends`]: what computes. * `Job`: a file of records to a table. * `builder`: records to snapshot, `planner`: which
//!   (feature `ingest`).
//! * [`open`]: snapshot to [`Engine`]. * [`engine`]: what a server needs.

mod backend;
#[cfg(feature = "ingest")]
pub mod builder;
pub mod engine;
#[cfg(feature = "ingest")]
mod fetched;
#[cfg_attr(not(any(feature = "cuda", feature = "emulator")), path = "no_gpu.rs")]
mod gpu;
mod hosted;
#[cfg(feature = "ingest")]
mod job;
mod machine;
mod memory_plan;
#[cfg(feature = "ingest")]
mod mirror;
mod place;
#[cfg(feature = "ingest")]
pub mod planner;
mod progress;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod promises;
mod public_reason;
#[cfg(feature = "ingest")]
mod push;
mod units;
#[cfg(feature = "ingest")]
mod update;

pub use backend::{BackendChoice, BackendError, Backends, CUDA_VARIABLE};
pub use engine::*;
#[cfg(feature = "ingest")]
pub use fetched::fetched;
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub use gpu::{open_devices, room_for_tables};
pub use hosted::{OpenError, host_batch, open, open_after};
pub use hush_store::cancel::{Cancel, Cancelled};
#[cfg(feature = "ingest")]
pub use job::{Built, Job, JobError, JobRequest};
#[cfg(feature = "ingest")]
pub use machine::cpu_model;
pub use machine::{Memory, memory};
pub use memory_plan::{DoesNotFit, MemoryPlan, Part};
#[cfg(feature = "ingest")]
pub use mirror::{MirrorError, mirror};
pub use place::Place;
pub use progress::{Progress, Silent};
#[cfg(feature = "ingest")]
pub use push::push;
pub use units::Seconds;
#[cfg(feature = "ingest")]
pub use update::{ApplyRequest, CompactRequest, Update, UpdateError, Updated};
