//! The orders that an operator gives a server.

use std::sync::Arc;

use hush_protocol::{Name, wording::Wording};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::access::caller::Caller;

/// Why it was not done.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OperatorError {
    /// No table of this name.
    #[error("no table of this name is served here")]
    UnknownTable,
    /// No task, or no upload, of this name.
    #[error("there is no {0} of this name")]
    Unknown(&'static str),
    /// The caller may not act on this table.
    #[error("the token is for other tables")]
    Forbidden,
    /// The request is invalid: why, and what to do.
    #[error("{0}")]
    Invalid(String),
    /// The request cannot be fulfilled: why, for the operator.
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
    /// Returns whether nothing more will come of it.
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

/// The program around the server, which knows where tables come from and does what the admin endpoints are asked for. A method that
/// takes a caller acts on the tables that the caller may operate ([`Caller::may`]), and on the caller's own uploads; a caller who
/// operates all tables has all uploads. Other tasks and uploads are unknown. A method without a caller is only called for one who
/// may operate the table.
pub trait Operator: Send + Sync {
    /// Takes up what has taken a table's place. Returns the epoch that is served.
    ///
    /// # Errors
    /// [`OperatorError`]. The table is then served as it was.
    fn reload(&self, table: &Name) -> Result<[u8; 32], OperatorError>;

    /// Begins to fold the changes of a table into a new base, in the background.
    fn compact(&self, table: &Name) -> Result<(), OperatorError>;

    /// Begins the tasks that were asked for before, and later ones. The program that starts the server calls it once.
    fn start(self: Arc<Self>) -> Result<(), String> {
        Ok(())
    }

    /// Appends a task to the queue.
    ///
    /// # Errors
    /// [`OperatorError::Invalid`] if the request is invalid.
    fn submit(&self, caller: &Caller, request: Value) -> Result<Task, OperatorError> {
        let _ = (caller, request);
        Err(no_data())
    }

    /// Returns the last tasks before one, or the last of all, the newest first.
    fn tasks(&self, caller: &Caller, before: Option<u64>, most: usize) -> Vec<Task> {
        let _ = (caller, before, most);
        Vec::new()
    }

    /// Returns a task.
    ///
    /// # Errors
    /// [`OperatorError::Unknown`].
    fn task(&self, caller: &Caller, id: u64) -> Result<Task, OperatorError> {
        let _ = (caller, id);
        Err(OperatorError::Unknown("task"))
    }

    /// Has a task given up. One that is being processed ends soon.
    ///
    /// # Errors
    /// [`OperatorError`], also if it has ended.
    fn cancel(&self, caller: &Caller, id: u64) -> Result<Task, OperatorError> {
        let _ = (caller, id);
        Err(OperatorError::Unknown("task"))
    }

    /// Returns the tables that the server keeps.
    fn kept(&self, caller: &Caller) -> Vec<KeptTable> {
        let _ = caller;
        Vec::new()
    }

    /// Begins an upload, of a file with this name.
    fn begin_upload(&self, caller: &Caller, name: &Name) -> Result<Upload, OperatorError> {
        let _ = (caller, name);
        Err(no_data())
    }

    /// Returns an upload.
    ///
    /// # Errors
    /// [`OperatorError::Unknown`].
    fn upload(&self, caller: &Caller, id: &Name) -> Result<Upload, OperatorError> {
        let _ = (caller, id);
        Err(OperatorError::Unknown("upload"))
    }

    /// Adds bytes to an upload that has `offset` so far.
    ///
    /// # Errors
    /// [`OperatorError::Refused`] if it has another count.
    fn append(&self, caller: &Caller, id: &Name, offset: u64, bytes: &[u8]) -> Result<Upload, OperatorError> {
        let _ = (caller, id, offset, bytes);
        Err(OperatorError::Unknown("upload"))
    }

    /// Removes an upload.
    ///
    /// # Errors
    /// [`OperatorError::Unknown`].
    fn remove_upload(&self, caller: &Caller, id: &Name) -> Result<(), OperatorError> {
        let _ = (caller, id);
        Err(OperatorError::Unknown("upload"))
    }
}

fn no_data() -> OperatorError {
    let advice = Wording("start it with {data=DIR}");
    OperatorError::Refused(format!("this server keeps no tables of its own: {advice}"))
}
