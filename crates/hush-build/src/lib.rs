//! Builds tables from records, changes tables, and plans which table the records get.
//!
//! * [`Job`]: builds a table from a file of records. [`Update`]: changes a table.
//! * [`builder`]: turns records into a snapshot. [`planner`]: lists every table that the records could have, with its costs.
//! * [`follow()`], [`apply_lines()`]: streams of changes. [`SortRequest`]: sorted tables, whose records are leaves of rows.
//! * [`mirror()`], [`push()`], [`RemoteSource`]: tables at a URL.
//!
//! ```
//! use std::{fs, sync::Arc};
//!
//! use hush_client::{Acceptance, Table, Wanted};
//! use hush_build::{Job, JobRequest, builder::BuildOptions};
//! use hush_engine::{Backends, Silent, open};
//! use hush_protocol::{Protocol, descriptor::Descriptor};
//! use hush_ingest::{IngestOptions, Input, OnDuplicate};
//! use hush_store::{cancel::Cancel, snapshot::Verify};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let (input, out) = (folder.path().join("people.csv"), folder.path().join("people"));
//! fs::write(&input, "email,name
//! alice@example.org,Alice
//! bob@example.org,Bob
//! ")?;
//!
//! // A table.
//! let backends = Backends::cpu_only(Arc::new(hush_cpu::Cpu::new(1)?));
//! let request = JobRequest {
//!     input: Input::Path(input),
//!     ingest: IngestOptions { key: vec!["email".into()], ..IngestOptions::default() },
//!     on_duplicate: OnDuplicate::Error,
//!     sorted: None,
//!     out: out.clone(),
//!     force: false,
//!     options: BuildOptions { protocol: Some(Protocol::Colpack), ..BuildOptions::default() },
//! };
//! Job::open(request, &Cancel::new())?.run(&backends, &Silent)?;
//!
//! // The engine that answers queries, and a client.
//! let engine = open(&out, Verify::Full, &backends, &Silent)?;
//! let client = Table::new(Descriptor::from_json(&engine.served().descriptor_json)?, [], &Acceptance::default())?;
//! let (query, pending) = client.query(&Wanted::Key(b"bob@example.org".to_vec()))?;
//! let answers = engine.answer(&[query], &[None])?;
//! assert_eq!(client.decode(&pending, &answers[0])?, Some(b"Bob".to_vec()));
//! # Ok(())
//! # }
//! ```

pub mod builder;
mod compact_beside;
mod fetched;
mod follow;
#[cfg(feature = "remote")]
mod follow_database;
mod job;
mod job_error;
mod mirror;
pub mod planner;
mod push;
mod remote_source;
mod sorted;
mod update;
mod update_error;

pub use fetched::fetched;
pub use follow::{FollowError, FollowOptions, FollowedEpoch, apply_lines, follow};
#[cfg(feature = "remote")]
pub use follow_database::{FollowedTable, follow_database};
pub use job::{Built, Job, JobRequest};
pub use job_error::JobError;
pub use mirror::{MirrorError, mirror};
pub use push::push;
pub use remote_source::RemoteSource;
pub use sorted::{SortError, SortRequest, SortedTable};
pub use update::{ApplyRequest, CompactRequest, Update, Updated};
pub use update_error::UpdateError;
