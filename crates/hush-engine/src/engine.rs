//! The interface between a server and a table: the one place where a protocol and a backend become `dyn`.

use std::{any::Any, fmt, fs::File, sync::Arc};

use hush_ops::OpsError;
use hush_protocol::{
    ProtocolError,
    wire::{self, QuerySizes},
};
use thiserror::Error;

use crate::{Device, Placement};

/// The reason why a batch was not answered, or keys were not accepted. Carries positions and lengths, never data.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineError {
    /// A query of the batch is not a query of this table.
    ///
    /// Engines check all queries before they scan: the caller drops this one and asks again for the
    /// others, so that one client cannot spoil the answers of those it shares a batch with.
    #[error("query {index} of the batch: {reason}")]
    Query {
        /// Position in the batch.
        index: usize,
        /// The reason why the query is invalid.
        reason: String,
    },
    /// The uploaded bytes are no evaluation keys of this table.
    #[error("the evaluation keys cannot be used: {reason}")]
    Keys {
        /// The reason why the keys are invalid.
        reason: String,
    },
    /// The engine failed; no query is to blame.
    #[error("the engine failed: {0}")]
    Internal(String),
    /// A part of the table that is elsewhere does not answer. It may answer again.
    #[error("a part of the table does not answer: {reason}")]
    Unavailable {
        /// Which, and why.
        reason: String,
    },
    /// A file of the table was changed after it was opened. Nothing is answered until the table is loaded again.
    #[error("the table cannot be read any more: {reason}")]
    Damaged {
        /// Which file, and what to do.
        reason: String,
    },
    /// The table's GPU has failed for good: nothing is answered until the process is started again.
    #[error("the table's GPU has failed, and does nothing until this program is started again: {reason}")]
    Lost {
        /// The first failure.
        reason: String,
    },
}

impl From<ProtocolError> for EngineError {
    /// Returns the error of a query, or of the engine.
    fn from(error: ProtocolError) -> Self {
        match error {
            ProtocolError::Query { index, source } => Self::Query { index, reason: source.to_string() },
            error => Self::Internal(error.to_string()),
        }
    }
}

impl EngineError {
    /// The reason why uploaded keys are not opened: the keys are malformed, or the engine failed.
    pub(crate) fn of_keys(error: &ProtocolError) -> Self {
        match error {
            ProtocolError::Ops(OpsError::Backend { .. }) => Self::Internal(error.to_string()),
            error => Self::Keys { reason: error.to_string() },
        }
    }
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

/// The evaluation keys that a table's clients upload before they ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeySpec {
    /// Name of the parameter set. Tables of one set on the same devices accept each other's keys: opened by
    /// one of them, keys serve the queries of all.
    pub preset: String,
    /// The exact length of the encoded [`wire::EvaluationKeys`], which the set determines.
    pub bytes: usize,
    /// The devices that open keys, in the order of the placement: the same bytes are opened once for each list of
    /// devices.
    pub devices: Arc<[Device]>,
}

/// A client's evaluation keys, checked and ready for [`Engine::answer`]. Opaque to all but the engines of their
/// [`KeySpec`]; clones share the keys.
#[derive(Clone)]
pub struct ClientKeys {
    /// The devices that have them.
    pub devices: Arc<[Device]>,
    /// The keys as the backends hold them.
    pub keys: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for ClientKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKeys(..)")
    }
}

/// The facts of a served table, as plain data.
#[derive(Clone, Debug)]
pub struct Served {
    /// The descriptor: exactly the bytes that clients get, a JSON object.
    pub descriptor_json: Arc<[u8]>,
    /// Hash of the table's content and parameters.
    pub epoch: [u8; 32],
    /// The hash that queries name: the epoch, or the geometry that the table shares with others whose queries it
    /// answers.
    pub asked: [u8; 32],
    /// The number of records; of the base, in a table that changes.
    pub records: u64,
    /// Name of the protocol: "simple", "frodo", ...
    pub protocol: String,
    /// Exact lengths of the parts of a query.
    pub query: QuerySizes,
    /// Exact length of an answer.
    pub answer_bytes: usize,
    /// Where it is.
    pub placement: Placement,
    /// Queries that are worth collecting for one scan; at least 1.
    pub max_batch: usize,
    /// The evaluation keys that queries need; `None` for protocols without.
    pub keys: Option<KeySpec>,
    /// The files that clients download, named by the descriptor; none for protocols without a hint.
    pub blobs: Vec<Blob>,
}

impl Served {
    /// Returns the keys of a batch as a backend, or whoever opened them here, holds them; none where the protocol has none.
    ///
    /// # Errors
    /// [`EngineError::Query`] for a query without keys.
    pub(crate) fn keys_of<'k, K: 'static>(
        &self,
        keys: &'k [Option<ClientKeys>],
    ) -> Result<Vec<&'k K>, EngineError> {
        let Some(spec) = &self.keys else { return Ok(Vec::new()) };
        let no_keys = |index| EngineError::Query { index, reason: "it comes without evaluation keys".into() };
        let opened = keys.iter().enumerate().map(|(index, keys)| {
            // Those on other devices are in their memory.
            let here = keys.as_ref().filter(|keys| keys.devices == spec.devices);
            here.and_then(|keys| keys.keys.downcast_ref()).ok_or_else(|| no_keys(index))
        });
        opened.collect()
    }
}

/// A table that is ready to answer. Immutable: [`Engine::served`] returns the same value each time.
pub trait Engine: Send + Sync {
    /// Returns the facts of the table.
    fn served(&self) -> &Served;

    /// Checks uploaded keys, an encoded [`wire::EvaluationKeys`] of the table's [`KeySpec`], in full
    /// (lengths, ranges of coefficients) and makes them ready. Blocks until done.
    ///
    /// # Errors
    /// [`EngineError::Keys`] if `body` is no such message, or the protocol has no keys; [`EngineError::Internal`] if there is no
    /// memory for them; [`EngineError::Lost`].
    fn open_keys(&self, body: &[u8]) -> Result<ClientKeys, EngineError>;

    /// Answers a batch with one scan of the table: one answer of [`Served::answer_bytes`] for each
    /// query, in order. `queries` has 1 to [`Served::max_batch`] entries of [`Served::query`];
    /// `keys` has an entry for each: its client's keys, opened by an engine of the same [`KeySpec`],
    /// or `None` where the protocol has no keys.
    ///
    /// Blocks until done; the work runs on the engine's own pool.
    ///
    /// # Errors
    /// [`EngineError::Query`] if the bytes of a query are no ciphertext of this table, before any
    /// scan; [`EngineError::Lost`] from a failure for good on; [`EngineError::Damaged`] if what was scanned is not the table;
    /// [`EngineError::Internal`] otherwise.
    fn answer(
        &self,
        queries: &[wire::Query],
        keys: &[Option<ClientKeys>],
    ) -> Result<Vec<Vec<u8>>, EngineError>;

    /// Returns why nothing is answered until the process is started again; `None` while the device works. A failure
    /// shows with the first work after it.
    fn lost(&self) -> Option<String> {
        None
    }

    /// Checks, without reading them, that the files of the table were not changed. Returns why the table must not be
    /// asked any more; `None` if it may.
    fn damaged(&self) -> Option<String> {
        None
    }
}
