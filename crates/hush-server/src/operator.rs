//! The orders that an operator gives a server.

use std::sync::Arc;

use hush_protocol::{Name, wording::Wording};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::access::caller::Caller;

/// Why an order was not fulfilled.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OperatorError {
    /// The server has no table of this name.
    #[error("no table of this name is served here")]
    UnknownTable,
    /// The server has no task, or no upload, of this name. Holds which of the two.
    #[error("there is no {0} of this name")]
    Unknown(&'static str),
    /// The caller may not act on this table.
    #[error("the token is for other tables")]
    Forbidden,
    /// The request is invalid. Holds the reason and the remedy.
    #[error("{0}")]
    Invalid(String),
    /// The request cannot be fulfilled. Holds the reason, for the operator.
    #[error("{0}")]
    Refused(String),
}

/// A job in the background. Tasks are processed one after the other.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Task {
    /// The number of the task, greater than the numbers of earlier tasks.
    pub id: u64,
    /// The request (`TaskRequest`), as it came.
    pub request: Value,
    /// How far it is.
    pub status: TaskStatus,
    /// When it was asked for, in seconds since 1970.
    pub enqueued_at: u64,
    /// When it began, the last time if a stop of the server came between.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started_at: Option<u64>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_at: Option<u64>,
    /// How often it has begun: again after the server stopped.
    #[serde(default)]
    pub attempts: u32,
    /// The progress, while the task is processed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub progress: Option<TaskProgress>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    /// The epoch that is served as it has succeeded, in hex.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub epoch: Option<String>,
    /// The notes of the task.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// The task waits for earlier ones.
    Enqueued,
    /// The task is being processed.
    Processing,
    /// The task is done.
    Succeeded,
    /// The task failed.
    Failed,
    /// The task was canceled by an operator.
    Canceled,
    /// The server stopped in its midst, more often than it is tried again.
    Interrupted,
}

impl TaskStatus {
    /// Returns whether the status never changes again.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Enqueued | Self::Processing)
    }
}

/// The progress of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskProgress {
    /// The stage.
    pub stage: String,
    /// Units of it that are done.
    pub done: u64,
    /// Units that it has; 0 if nobody knows.
    pub total: u64,
    /// The name of a unit.
    pub unit: String,
}

/// A file that is being uploaded, for a task to read.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Upload {
    /// The ID of the upload.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::Name))]
    pub id: Name,
    /// The name that it was given; its ending says the format.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::Name))]
    pub name: Name,
    /// Bytes that are here.
    pub bytes: u64,
}

/// A table that the server keeps, with what was made of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeptTable {
    /// The name of the table.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::Name))]
    pub name: Name,
    /// The epoch that is served, in hex, if it is loaded.
    pub serves: Option<String>,
    /// The builds that are kept, newest first.
    pub builds: Vec<KeptBuild>,
}

/// The result of one task for a table.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeptBuild {
    /// The task that made it.
    pub task: u64,
    /// The epoch of the build, in hex.
    pub epoch: String,
    /// The number of records.
    pub records: u64,
    /// Bytes on disk.
    pub bytes: u64,
}

/// The program around the server, which knows where tables come from and fulfils the requests of the admin endpoints.
///
/// A method that takes a caller acts on the tables that the caller may operate ([`Caller::may`]), and on the caller's own
/// uploads. A caller who operates all tables has all uploads. Other tasks and uploads are unknown. A method without a caller is
/// only called for a caller who may operate the table.
pub trait Operator: Send + Sync {
    /// Loads the table that is in the place of `table` now. Returns the epoch that is served.
    ///
    /// # Errors
    /// [`OperatorError`] if the table cannot be served. The current table is then served as before.
    fn reload(&self, table: &Name) -> Result<[u8; 32], OperatorError>;

    /// Begins to fold the changes of a table into a new base, in the background. Fails with [`OperatorError`] if that cannot
    /// begin.
    fn compact(&self, table: &Name) -> Result<(), OperatorError>;

    /// Starts the tasks that were submitted before, and later ones. The program that starts the server calls it once. Fails with
    /// the reason if the tasks cannot start.
    fn start(self: Arc<Self>) -> Result<(), String> {
        Ok(())
    }

    /// Appends a task to the queue. `request` is a `TaskRequest` in JSON. Returns the task.
    ///
    /// # Errors
    /// [`OperatorError::Invalid`] if the request is invalid; another [`OperatorError`] if it cannot be fulfilled.
    fn submit(&self, caller: &Caller, request: Value) -> Result<Task, OperatorError> {
        let _ = (caller, request);
        Err(no_data())
    }

    /// Returns at most `most` tasks, the newest first: the last tasks before the number `before`, or the last of all.
    fn tasks(&self, caller: &Caller, before: Option<u64>, most: usize) -> Vec<Task> {
        let _ = (caller, before, most);
        Vec::new()
    }

    /// Returns a task.
    ///
    /// # Errors
    /// [`OperatorError::Unknown`] if there is no such task.
    fn task(&self, caller: &Caller, id: u64) -> Result<Task, OperatorError> {
        let _ = (caller, id);
        Err(OperatorError::Unknown("task"))
    }

    /// Cancels a task. A task that is being processed ends soon.
    ///
    /// # Errors
    /// [`OperatorError`], also if the task has ended.
    fn cancel(&self, caller: &Caller, id: u64) -> Result<Task, OperatorError> {
        let _ = (caller, id);
        Err(OperatorError::Unknown("task"))
    }

    /// Returns the tables that the server keeps.
    fn kept(&self, caller: &Caller) -> Vec<KeptTable> {
        let _ = caller;
        Vec::new()
    }

    /// Begins an upload of a file with this name. Fails with [`OperatorError::Refused`] if the server keeps no tables.
    fn begin_upload(&self, caller: &Caller, name: &Name) -> Result<Upload, OperatorError> {
        let _ = (caller, name);
        Err(no_data())
    }

    /// Returns the state of an upload.
    ///
    /// # Errors
    /// [`OperatorError::Unknown`] if there is no such upload.
    fn upload(&self, caller: &Caller, id: &Name) -> Result<Upload, OperatorError> {
        let _ = (caller, id);
        Err(OperatorError::Unknown("upload"))
    }

    /// Appends `bytes` to an upload that has `offset` bytes so far.
    ///
    /// # Errors
    /// [`OperatorError::Refused`] if the upload has another number of bytes, [`OperatorError::Unknown`] if there is no such
    /// upload.
    fn append(&self, caller: &Caller, id: &Name, offset: u64, bytes: &[u8]) -> Result<Upload, OperatorError> {
        let _ = (caller, id, offset, bytes);
        Err(OperatorError::Unknown("upload"))
    }

    /// Removes an upload.
    ///
    /// # Errors
    /// [`OperatorError::Unknown`] if there is no such upload.
    fn remove_upload(&self, caller: &Caller, id: &Name) -> Result<(), OperatorError> {
        let _ = (caller, id);
        Err(OperatorError::Unknown("upload"))
    }
}

/// Returns the error of a server that keeps no tables.
fn no_data() -> OperatorError {
    let advice = Wording("start it with {data=DIR}");
    OperatorError::Refused(format!("this server keeps no tables of its own: {advice}"))
}
