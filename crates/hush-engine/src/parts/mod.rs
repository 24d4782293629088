//! A table whose parts are in other processes: on other machines, or other devices of one.
//!
//! | file | what |
//! |------|------|
//! | `message.rs` | what a part is told, and says |
//! | `source.rs` | where it is found: a folder, or elsewhere, of which a part comes here |
//! | `part.rs` | one part: a batch in, what it contributes out |
//! | `elsewhere.rs` | all parts: hands a batch to each of them |
//! | `head.rs` | opens the table whose answers are finished here |
//!
//! Who carries messages to parts and back is none of this crate's concern ([`Workers`]): it starts them, knows which of several has
//! a part, and asks another one if one is gone. Messages are read by the same version of the program alone. A table's epoch is in
//! each, so that what comes of a part of another one is refused.

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

/// A part that does not answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("part {part}: {reason}")]
pub struct Unavailable {
    /// Which.
    pub part: usize,
    /// Why.
    pub reason: String,
}

/// Whoever carries a batch to the parts of a table.
pub trait Workers: Send + Sync {
    /// Sends `batch` to every part, and returns what [`PartEngine::scan`] of each says, in order. Several calls may
    /// be under way at once. Blocks until all parts have replied.
    ///
    /// # Errors
    /// [`Unavailable`] if nobody who has the part answers.
    fn scan(&self, batch: Bytes) -> Result<Vec<Bytes>, Unavailable>;
}
