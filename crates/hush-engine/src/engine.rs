//! The interface of a server to a table: the one place where a protocol and a backend become `dyn`.

use std::{any::Any, fmt, fs::File, sync::Arc, time::SystemTime};

use hush_ops::OpsError;
use hush_protocol::{
    ProtocolError,
    wire::{self, QuerySizes},
};
use thiserror::Error;

use crate::{Device, Placement};

/// A reason why a batch was not answered, or keys were rejected. Carries positions and lengths, never data.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineError {
    /// A query of the batch is invalid for this table.
    ///
    /// Engines check all queries before they scan. The caller drops this query and asks again for the
    /// others, so that one client cannot spoil the answers of the clients that share its batch.
    #[error("query {index} of the batch: {reason}")]
    Query {
        /// The position in the batch.
        index: usize,
        /// The reason why the query is invalid.
        reason: String,
    },
    /// The uploaded bytes are invalid as evaluation keys of this table.
    #[error("the evaluation keys cannot be used: {reason}")]
    Keys {
        /// The reason why the keys are invalid.
        reason: String,
    },
    /// The engine failed; no query is to blame.
    #[error("the engine failed: {0}")]
    Internal(String),
    /// A remote part of the table does not answer; it may answer later.
    #[error("a part of the table does not answer: {reason}")]
    Unavailable {
        /// The part, and the reason.
        reason: String,
    },
    /// There is not enough memory for the batch now.
    #[error("the batch needs {bytes} bytes of memory, which are not there now")]
    Memory {
        /// The bytes that the batch needs.
        bytes: usize,
    },
    /// A file that the table is read from has changed since the table was opened. Nothing is answered until the table is
    /// loaded again.
    #[error("the table cannot be read any more: {reason}")]
    Damaged {
        /// The file, and the remedy.
        reason: String,
    },
    /// The table's GPU has failed for good. Nothing is answered until the process is started again.
    #[error("the table's GPU has failed, and does nothing until this program is started again: {reason}")]
    Lost {
        /// The first failure.
        reason: String,
    },
}

impl From<ProtocolError> for EngineError {
    /// Blames a query, or the engine.
    fn from(error: ProtocolError) -> Self {
        match error {
            ProtocolError::Query { index, source } => Self::Query { index, reason: source.to_string() },
            error => Self::Internal(error.to_string()),
        }
    }
}

impl EngineError {
    /// Returns the error for uploaded keys that are not opened: blames the keys, or the engine.
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
    /// The open file of the verified snapshot. A path would not do: another file may take its place on
    /// disk while the engine lives, and would then be served under the hash of this one.
    pub file: Arc<File>,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The time of the last write when the file was verified; `None` if the file system has none.
    written: Option<SystemTime>,
}

impl Blob {
    /// Creates the blob of a file that was verified just now.
    pub fn new(hash: [u8; 32], file: File, bytes: u64) -> Self {
        let written = last_write(&file);
        Self { hash, file: Arc::new(file), bytes, written }
    }

    /// Returns why clients can download the file no more, or `None` if they can.
    pub(crate) fn damaged(&self) -> Option<String> {
        let is_whole = self.file.metadata().is_ok_and(|now| now.len() >= self.bytes);
        let is_same = is_whole && last_write(&self.file) == self.written;
        let how = if is_whole { "written to" } else { "cut off" };
        (!is_same).then(|| format!("the file of {} bytes that clients download was {how}", self.bytes))
    }
}

fn last_write(file: &File) -> Option<SystemTime> {
    file.metadata().and_then(|now| now.modified()).ok()
}

/// The evaluation keys that a table's clients upload before they ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeySpec {
    /// The name of the parameter set. Tables of one set on the same devices accept each other's keys: opened by
    /// one of them, keys serve the queries of all.
    pub preset: String,
    /// The exact length of the encoded [`wire::EvaluationKeys`], which the set determines.
    pub bytes: usize,
    /// The devices that have opened keys, in the order of the placement. The same bytes are opened once for each list.
    pub devices: Arc<[Device]>,
}

/// The evaluation keys of one client, checked and ready for [`Engine::answer`]. Opaque to all but the
/// engines of their [`KeySpec`]; clones share the keys.
#[derive(Clone)]
pub struct ClientKeys {
    /// The devices that have the keys.
    pub devices: Arc<[Device]>,
    /// The keys as the backends of these devices hold them.
    pub keys: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for ClientKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKeys(..)")
    }
}

/// The properties of a table that a server needs: plain data.
#[derive(Clone, Debug)]
pub struct Served {
    /// The descriptor: exactly the bytes that clients get, a JSON object.
    pub descriptor_json: Arc<[u8]>,
    /// The hash of the table's content and parameters.
    pub epoch: [u8; 32],
    /// The hash that queries name: the epoch, or a hash shared with other epochs whose queries this table answers.
    pub asked: [u8; 32],
    /// The number of records; in a table that changes, those of the base.
    pub records: u64,
    /// The name of the protocol: "simple", "frodo", ...
    pub protocol: String,
    /// The exact lengths of the parts of a query.
    pub query: QuerySizes,
    /// The exact length of an answer.
    pub answer_bytes: usize,
    /// The placement of the table.
    pub placement: Placement,
    /// The number of queries that are worth collecting for one scan; at least 1.
    pub max_batch: usize,
    /// The evaluation keys that queries need; `None` for protocols without.
    pub keys: Option<KeySpec>,
    /// The files that clients download, named by the descriptor; none for protocols without a hint.
    pub blobs: Vec<Blob>,
}

impl Served {
    /// Returns the keys of a batch in the form in which they were opened here; empty if the protocol has none.
    ///
    /// # Errors
    /// [`EngineError::Query`] for a query without keys.
    pub(crate) fn keys_of<'k, K: 'static>(
        &self,
        keys: &'k [Option<ClientKeys>],
    ) -> Result<Vec<&'k K>, EngineError> {
        let Some(spec) = &self.keys else { return Ok(Vec::new()) };
        let opened = keys.iter().enumerate().map(|(index, keys)| {
            // Keys on other devices are in the memory of those.
            let here = keys.as_ref().filter(|keys| keys.devices == spec.devices);
            here.and_then(|keys| keys.keys.downcast_ref()).ok_or_else(|| {
                let reason = "it comes without evaluation keys".into();
                EngineError::Query { index, reason }
            })
        });
        opened.collect()
    }
}

/// A table that is ready to answer. Immutable: [`Engine::served`] returns the same value each time.
pub trait Engine: Send + Sync {
    /// Returns the properties of the table.
    fn served(&self) -> &Served;

    /// Checks uploaded keys, an encoded [`wire::EvaluationKeys`] of the table's [`KeySpec`], in full
    /// (lengths, ranges of coefficients) and makes them ready. Blocks until done.
    ///
    /// # Errors
    /// [`EngineError::Keys`] if `body` is no such message, or the protocol has no keys; [`EngineError::Internal`] if there is no
    /// memory for them; [`EngineError::Lost`] if the GPU has failed.
    fn open_keys(&self, body: &[u8]) -> Result<ClientKeys, EngineError>;

    /// Answers a batch with one scan of the table: one answer of [`Served::answer_bytes`] for each
    /// query, in order. `queries` has 1 to [`Served::max_batch`] entries of [`Served::query`].
    /// `keys` has an entry for each: its client's keys, opened by an engine of the same [`KeySpec`],
    /// or `None` if the protocol has no keys.
    ///
    /// Blocks until done; the work runs on the engine's pool.
    ///
    /// # Errors
    /// [`EngineError::Query`] if the bytes of a query are no ciphertext of this table, before any
    /// scan; [`EngineError::Lost`] after a failure for good; [`EngineError::Damaged`] if the scanned files are not the table's;
    /// [`EngineError::Internal`] otherwise.
    fn answer(
        &self,
        queries: &[wire::Query],
        keys: &[Option<ClientKeys>],
    ) -> Result<Vec<Vec<u8>>, EngineError>;

    /// Returns the reason why nothing is answered until the process is started again; `None` as long as all is well. A failure
    /// shows with the first work after it.
    fn lost(&self) -> Option<String> {
        None
    }

    /// Returns the reason why some of several copies do not answer while others do; `None` as long as all is well.
    fn degraded(&self) -> Option<String> {
        None
    }

    /// Checks whether the files that the table is read from have changed, without reading them. Returns the reason why the table
    /// must not be asked any more; `None` as long as all is well.
    fn damaged(&self) -> Option<String> {
        None
    }
}
