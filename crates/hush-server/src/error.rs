//! Errors of the server itself. Errors of a request are in `problem.rs`.

use std::path::PathBuf;

use hush_protocol::wording::Slot;
use thiserror::Error;

/// Why the server did not start, did not take a table, or did not stop in order.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum ServerError {
    #[error("{} must be at least {min}, is {actual}", Slot::Option(setting))]
    Config { setting: &'static str, min: usize, actual: usize },
    #[error("the descriptor of table {table:?} is not a JSON object: {source}")]
    Descriptor { table: String, source: serde_json::Error },
    #[error("cannot keep the keys of clients in {}: {reason}", path.display())]
    KeyFile {
        /// [`ServerConfig::keys_path`](crate::ServerConfig::keys_path).
        path: PathBuf,
        reason: String,
    },
    #[error("{unfinished} connections were cut off at shutdown")]
    Drain { unfinished: usize },
}
