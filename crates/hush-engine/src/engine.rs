//! What a server needs from a table: the one place where a protocol and a backend become `dyn`.

use std::{fs::File, sync::Arc};

use hush_protocol::wire::{self, QuerySizes};
use thiserror::Error;

/// Why a batch was not answered. Carries positions and lengths, never data.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineError {
    /// One query of the batch is not a query of this table.
    ///
    /// Engines check all queries before they scan: the caller drops this one and asks again for the
    /// others, so that one client cannot spoil the answers of those it shares a batch with.
    #[error("query {index} of the batch: {reason}")]
    Query {
        /// Position in the batch.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The engine failed; no query is to blame.
    #[error("the engine failed: {0}")]
    Internal(String),
}

/// A public file that clients of a table download once, such as a hint.
#[derive(Clone, Debug)]
pub struct Blob {
    /// The file's name in the protocol: the hash of its content.
    pub hash: [u8; 32],
    /// The open file of the verified snapshot. Not its path: another file may take its place on
    /// disk while the engine lives, and would then be served under the hash of this one.
    pub file: Arc<File>,
    /// Length of the file in bytes.
    pub bytes: u64,
}

/// A table that is ready to answer. Immutable: everything but [`Engine::answer`] returns the same
/// value each time.
pub trait Engine: Send + Sync {
    /// The descriptor: exactly the bytes that clients get, a JSON object.
    fn descriptor_json(&self) -> Arc<[u8]>;

    /// Hash of the table's content and parameters.
    fn epoch(&self) -> [u8; 32];

    /// Name of the protocol: "simple", "frodo", ...
    fn protocol(&self) -> &str;

    /// Exact lengths of [`wire::Query::first`] and [`wire::Query::second`].
    fn query_bytes(&self) -> QuerySizes;

    /// Exact length of an answer.
    fn answer_bytes(&self) -> usize;

    /// Queries that are worth collecting for one scan; at least 1.
    fn max_batch(&self) -> usize;

    /// The files that clients download, named by the descriptor.
    fn blobs(&self) -> Vec<Blob>;

    /// Answers a batch with one scan of the table: one answer of [`Engine::answer_bytes`] for each
    /// query, in order. `queries` has 1 to [`Engine::max_batch`] entries of [`Engine::query_bytes`].
    ///
    /// Blocks until done; the work runs on the engine's own pool.
    ///
    /// # Errors
    /// [`EngineError::Query`] if the bytes of a query are no ciphertext of this table, before any
    /// scan; [`EngineError::Internal`] otherwise.
    fn answer(&self, queries: &[wire::Query]) -> Result<Vec<Vec<u8>>, EngineError>;
}
