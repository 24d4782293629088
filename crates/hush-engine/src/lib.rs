//! Builds snapshots, opens them, and answers batches of queries: the one place where a protocol and a backend
//! become `dyn`.
//!
//! * [`mod@build`]: records to snapshot. * [`open`]: snapshot to [`Engine`]. * [`engine`]: what a server needs.

pub mod build;
mod client_keys;
pub mod engine;
mod hosted;
mod hosted_column;
mod hosted_pack;
mod hosted_ring;
mod progress;

pub use engine::*;
pub use hosted::{OpenError, open};
pub use hosted_pack::MAX_PACKED_BATCH;
pub use progress::{Progress, Silent};
