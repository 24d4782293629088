//! A remote table and its local copy. Every chunk is checked as it arrives, and is not requested again after a stop.
//!
//! The local folders are those of [`hush_store::snapshot`]: [`ArrivingSnapshot`](hush_store::snapshot::ArrivingSnapshot) for a
//! complete copy, [`SparseFolder`](hush_store::snapshot::SparseFolder) for some ranges of the files.

mod copy;
mod download;
mod push;
mod remote_table;
mod sparse;

pub use copy::Mirror;
pub use push::{LeftObjects, PushPlan};
pub use remote_table::{MirrorError, RemoteTable};
pub use sparse::SparseCopy;
