//! A table that is elsewhere, and its copy here: every chunk is checked as it comes, and is not asked for again after a stop.
//!
//! The folders here are those of [`hush_store::snapshot`]: [`ArrivingSnapshot`](hush_store::snapshot::ArrivingSnapshot) for a whole
//! copy, [`SparseFolder`](hush_store::snapshot::SparseFolder) for some ranges of the files.

mod copy;
mod download;
mod push;
mod remote_table;
mod sparse;

pub use copy::Mirror;
pub use remote_table::{MirrorError, RemoteTable};
pub use sparse::SparseCopy;
