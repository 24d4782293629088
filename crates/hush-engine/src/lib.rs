//! Builds snapshots, opens them, and answers batches of queries: the one place where a protocol and a backend
//! become `dyn`.
//!
//! * [`Backends`]: what computes. * `Job`: a file of records to a table. * `builder`: records to snapshot, `planner`: which
//!   (feature `ingest`).
//! * [`open`]: snapshot to [`Engine`]. * [`engine`]: what a server needs. * [`parts`]: a table whose parts are elsewhere.
//!
#![cfg_attr(
    feature = "ingest",
    doc = r#"
```
use std::{fs, sync::Arc};

use hush_client::{Acceptance, Table, Wanted};
use hush_engine::{Backends, Cancel, Job, JobRequest, Silent, builder::BuildOptions, open};
use hush_protocol::{Protocol, descriptor::Descriptor};
use hush_store::{ingest::{IngestOptions, Input, OnDuplicate}, snapshot::Verify};

# fn main() -> Result<(), Box<dyn std::error::Error>> {
let folder = tempfile::tempdir()?;
let (input, out) = (folder.path().join("people.csv"), folder.path().join("people"));
fs::write(&input, "email,name
alice@example.org,Alice
bob@example.org,Bob
")?;

// A table.
let backends = Backends::cpu_only(Arc::new(hush_cpu::Cpu::new(1)?));
let request = JobRequest {
    input: Input::Path(input),
    ingest: IngestOptions { key: vec!["email".into()], ..IngestOptions::default() },
    on_duplicate: OnDuplicate::Error,
    out: out.clone(),
    force: false,
    options: BuildOptions { protocol: Some(Protocol::Colpack), ..BuildOptions::default() },
};
Job::open(request, &Cancel::new())?.run(&backends, &Silent)?;

// What answers, and a client of it.
let engine = open(&out, Verify::Full, &backends, &Silent)?;
let client = Table::new(Descriptor::from_json(&engine.served().descriptor_json)?, [], &Acceptance::default())?;
let (query, pending) = client.query(&Wanted::Key(b"bob@example.org".to_vec()))?;
let answers = engine.answer(&[query], &[None])?;
assert_eq!(client.decode(&pending, &answers[0])?, Some(b"Bob".to_vec()));
# Ok(())
# }
```
"#
)]

mod backend;
#[cfg(feature = "ingest")]
pub mod builder;
pub mod engine;
#[cfg(feature = "ingest")]
mod fetched;
#[cfg_attr(not(any(feature = "cuda", feature = "emulator")), path = "no_gpu.rs")]
mod gpu;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod gpu_thresholds;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod gpus;
mod hosted;
#[cfg(feature = "ingest")]
mod job;
mod machine;
mod mapped_files;
mod memory_choice;
mod memory_plan;
#[cfg(feature = "ingest")]
mod mirror;
pub mod parts;
mod place;
#[cfg(feature = "ingest")]
pub mod planner;
mod progress;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod promises;
mod public_reason;
#[cfg(feature = "ingest")]
mod push;
mod server_memory;
mod spread;
mod units;
#[cfg(feature = "ingest")]
mod update;

pub use backend::{BackendChoice, BackendError, Backends, CUDA_VARIABLE};
pub use engine::*;
#[cfg(feature = "ingest")]
pub use fetched::fetched;
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub use gpu::{open_devices, room_for_tables};
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub use gpu_thresholds::{keep_thresholds, measured_thresholds, suited_backend};
pub use hosted::{OpenError, check, host_batch, open, open_after};
pub use hush_store::cancel::{Cancel, Cancelled};
#[cfg(feature = "ingest")]
pub use job::{Built, Job, JobError, JobRequest};
#[cfg(feature = "ingest")]
pub use machine::cpu_model;
pub use machine::{Memory, memory};
pub use memory_choice::{MemoryChoice, UnknownMemory};
pub use memory_plan::{DoesNotFit, MemoryPlan, Part};
#[cfg(feature = "ingest")]
pub use mirror::{MirrorError, mirror};
pub use place::{GpuSet, Place};
pub use progress::{Progress, Silent};
pub use public_reason::FILES_CHANGED;
#[cfg(feature = "ingest")]
pub use push::push;
pub use server_memory::server_bytes;
pub use units::Seconds;
#[cfg(feature = "ingest")]
pub use update::{ApplyRequest, CompactRequest, Update, UpdateError, Updated};
