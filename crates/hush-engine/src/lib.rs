//! Builds snapshots, opens them, and answers batches of queries: the one place where a protocol and a backend
//! become `dyn`.
//!
//! * [`Backends`]: what computes. * [`Job`]: a file of records to a table. * [`mod@build`]: records to snapshot.
//! * [`open`]: snapshot to [`Engine`]. * [`engine`]: what a server needs.

mod backend;
pub mod build;
mod client_keys;
pub mod engine;
#[cfg_attr(not(any(feature = "cuda", feature = "emulator")), path = "no_gpu.rs")]
mod gpu;
mod hosted;
mod hosted_column;
mod hosted_pack;
mod hosted_ring;
mod job;
mod memory_plan;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod on_gpu;
mod progress;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod promises;
mod public_reason;

pub use backend::{Backend, BackendChoice, BackendError, Backends, CUDA_VARIABLE};
pub use engine::*;
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub use gpu::{open_device, room_for_tables};
pub use hosted::{OpenError, open};
pub use hosted_pack::MAX_PACKED_BATCH;
pub use hush_store::cancel::{Cancel, Cancelled};
pub use job::{Built, Job, JobError, JobRequest};
pub use memory_plan::{DoesNotFit, MemoryPlan, Part};
pub use progress::{Progress, Silent};
