//! A table whose parts are in other processes: on other machines, or on other devices of one machine.
//!
//! | file | what |
//! |------|------|
//! | `message.rs` | the messages to a part, and its replies |
//! | `source.rs` | the place of the table: a folder, or a remote table, of which the read ranges are fetched |
//! | `part.rs` | one part: takes a batch, returns its partials |
//! | `elsewhere.rs` | all parts: sends a batch to each of them |
//! | `head.rs` | opens the table whose answers are finished here |
//!
//! The transport of messages is not this crate's concern. The caller's [`Workers`] starts the parts, knows which of several has a
//! part, and asks another one if one is gone. Messages are read only by the same version of the program. Each batch names the
//! table's epoch, so that a part of another epoch is refused.

pub(crate) mod elsewhere;
mod head;
mod message;
mod part;
mod source;

pub use head::open_head;
pub use hush_protocol::share::Share;
pub use part::{PartEngine, open_part};
pub use source::{RemoteTable, Source, SparseFiles};

use prost::bytes::Bytes;
use thiserror::Error;

/// The error of a part that does not answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("part {part}: {reason}")]
pub struct Unavailable {
    /// The number of the part.
    pub part: usize,
    /// The reason.
    pub reason: String,
}

/// The transport that carries a batch to the parts of a table.
pub trait Workers: Send + Sync {
    /// Returns the replies of [`PartEngine::scan`] of every part to `batch`, in order. Several calls may be in flight at once.
    /// Blocks until all parts have replied.
    ///
    /// # Errors
    /// [`Unavailable`] if no process that has the part answers.
    fn scan(&self, batch: Bytes) -> Result<Vec<Bytes>, Unavailable>;
}
