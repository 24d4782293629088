//! The errors of the server itself; those of a request are in `problem.rs`.

use std::path::PathBuf;

use hush_protocol::wording::Slot;
use thiserror::Error;

/// Why the server did not start, did not take a table, or did not stop in order.
#[derive(Debug, Error)]
pub enum ServerError {
    /// A setting that cannot work.
    #[error("{} must be at least {min}, is {actual}", Slot::Option(setting))]
    Config {
        /// Name of the option.
        setting: &'static str,
        /// The least value that works.
        min: usize,
        /// Its value.
        actual: usize,
    },
    /// A table whose descriptor is not a JSON object.
    #[error("the descriptor of table {table:?} is not a JSON object: {source}")]
    Descriptor {
        /// The table's name.
        table: String,
        /// What the parser says.
        source: serde_json::Error,
    },
    /// The file of the clients' keys cannot be used.
    #[error("cannot keep the keys of clients in {}: {reason}", path.display())]
    KeyFile {
        /// [`ServerConfig::keys_path`](crate::ServerConfig::keys_path).
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// Requests that were still unanswered when the drain timeout ended.
    #[error("{unfinished} connections were cut off at shutdown")]
    Drain {
        /// Connections that were closed with a request in flight.
        unfinished: usize,
    },
}
