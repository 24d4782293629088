//! The tasks of the admin API. The server runs one after another, and each survives a restart.
//!
//! | file | what |
//! |---|---|
//! | `request.rs` | the request of a task, in JSON |
//! | `store.rs` | the tasks on disk, a file each |
//! | `kept.rs` | the tables that the server keeps, with builds to go back to |
//! | `uploads.rs` | the files that are uploaded in parts |
//! | `work.rs` | the work of each kind of task |
//! | `watch.rs` | the progress of the running task |

mod kept;
mod request;
mod store;
mod uploads;
mod watch;
mod work;

#[cfg(feature = "openapi")]
pub use request::DescribedTask;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fs::File,
    io,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use hush_engine::Cancel;
use hush_ingest::{Input, remote::SourcePolicy};
use hush_protocol::{
    Name,
    wording::{Slot, neutrally},
};
use hush_server::{Background, Caller, KeptTable, Operator, OperatorError, Scope, Task, TaskStatus, Upload};
use hush_store::durable::create_folders;
use parking_lot::{Condvar, Mutex};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use tracing::Level;

use self::{
    kept::Kept,
    request::{Request, TaskInput},
    store::Store,
    uploads::Uploads,
    watch::Watch,
};
use crate::Folders;

/// The most attempts of a task: if the server stopped in the middle of each one, the task may be the cause.
const MAX_ATTEMPTS: u32 = 3;

/// The interval at which uploads are checked for their age.
const UPLOAD_LOOK: Duration = Duration::from_secs(60);

/// The default source of tasks: web servers at public addresses, under TLS.
const DEFAULT_SOURCE: &str = "https://";

/// Returns the sources that tasks may fetch from. `advice` ends the error for any other source.
pub fn task_sources(given: &[String], advice: &'static str) -> Result<SourcePolicy, String> {
    let default = [DEFAULT_SOURCE.to_owned()];
    let sources = if given.is_empty() { &default[..] } else { given };
    SourcePolicy::only(sources, advice)
}

/// The tasks of a server, with the tables and the uploads that they work on.
pub struct Tasks {
    folders: Arc<Folders>,
    kept: Kept,
    uploads: Uploads,
    store: Store,
    threads: usize,
    /// The time for which an upload stays that no task waits for.
    upload_lifetime: Duration,
    /// The allowed sources of inputs and tables.
    sources: SourcePolicy,
    state: Mutex<TaskState>,
    changed: Condvar,
    /// The lock that keeps other servers out of the folder.
    _lock: File,
}

#[derive(Default)]
struct TaskState {
    tasks: BTreeMap<u64, Task>,
    /// The task that is running.
    running: Option<RunningTask>,
}

struct RunningTask {
    id: u64,
    cancel: Cancel,
    watch: Arc<Watch>,
}

/// Opens the file that a server locks while it uses the folder.
fn open_lock(data: &Path) -> io::Result<File> {
    File::options().write(true).create(true).truncate(false).open(data.join("lock"))
}

/// Returns whether a server uses the folder `data`.
pub fn is_in_use(data: &Path) -> bool {
    let lock = File::open(data.join("lock"));
    lock.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err())
}

impl Tasks {
    /// Opens the folder `data`. Its tables are served from now on, and its tasks continue after [`Operator::start`]. Fails with a
    /// message if the folder cannot be read or written, another server uses it, its tasks are malformed, or a table is refused.
    pub fn open(
        data: &Path,
        folders: &Arc<Folders>,
        threads: usize,
        upload_lifetime: Duration,
        sources: SourcePolicy,
    ) -> Result<Arc<Self>, String> {
        let option = Slot::Option("data");
        let refused = |error: io::Error| format!("cannot use {option} {}: {error}", data.display());
        create_folders(data).map_err(refused)?;
        let lock = open_lock(data).map_err(refused)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            format!("another server uses {option} {}: give each a folder of its own", data.display())
        })?;
        let store = Store::new(data.join("tasks")).map_err(refused)?;
        let tasks = store.read().map_err(|error| format!("{}: {error}", data.display()))?;
        let tasks = Self {
            folders: folders.clone(),
            kept: Kept::new(data.join("tables")).map_err(refused)?,
            uploads: Uploads::new(data.join("uploads")).map_err(refused)?,
            store,
            threads,
            upload_lifetime,
            sources,
            state: Mutex::new(TaskState { tasks, running: None }),
            changed: Condvar::new(),
            _lock: lock,
        };
        for name in tasks.kept.tables() {
            if let Some(build) = tasks.kept.current(&name) {
                tasks.folders.add(&name, tasks.kept.dir(&name, build))?;
            }
        }
        Ok(Arc::new(tasks))
    }

    /// Enqueues tasks that a stop of the server interrupted. Tasks that were interrupted too often end.
    fn go_on(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        for task in state.tasks.values_mut().filter(|task| task.status == TaskStatus::Processing) {
            task.progress = None;
            if task.attempts < MAX_ATTEMPTS {
                task.status = TaskStatus::Enqueued;
            } else {
                task.status = TaskStatus::Interrupted;
                task.ended_at = Some(now());
                task.error = Some(format!(
                    "the server stopped {MAX_ATTEMPTS} times while it was done: ask for it again"
                ));
            }
            self.store.write(task)?;
        }
        Ok(())
    }

    /// Runs the tasks, one after another, forever.
    fn do_all(&self) -> Infallible {
        // A task that is still running here was begun before a failure of this loop, and so has failed too.
        let begun = self.state.lock().running.as_ref().map(|running| (running.id, running.cancel.clone()));
        if let Some((id, cancel)) = begun {
            self.ended(id, Err("the server failed while it was done".into()), &cancel);
        }
        loop {
            self.remove_old_uploads();
            let Some((task, cancel, watch)) = self.next() else { continue };
            let outcome = work::run(self, &task, &cancel, &*watch);
            self.ended(task.id, outcome, &cancel);
        }
    }

    /// Removes uploads that are too old.
    fn remove_old_uploads(&self) {
        // The lock prevents the submission of a task meanwhile.
        let state = self.state.lock();
        self.uploads.remove_old(self.upload_lifetime, |upload| state.waits_for(upload));
    }

    /// Waits for a task, and begins it. Returns `None` after [`UPLOAD_LOOK`] without one.
    fn next(&self) -> Option<(Task, Cancel, Arc<Watch>)> {
        let waiting = |state: &TaskState| {
            state.tasks.values().find(|task| task.status == TaskStatus::Enqueued).map(|task| task.id)
        };
        let mut state = self.state.lock();
        if waiting(&state).is_none() {
            self.changed.wait_for(&mut state, UPLOAD_LOOK);
        }
        let id = waiting(&state)?;
        let cancel = Cancel::new();
        let watch = Arc::new(Watch::default());
        state.running = Some(RunningTask { id, cancel: cancel.clone(), watch: watch.clone() });
        let task = state.tasks.get_mut(&id).expect("it waits");
        task.status = TaskStatus::Processing;
        task.started_at = Some(now());
        task.attempts += 1;
        self.keep(task);
        Some((task.clone(), cancel, watch))
    }

    fn ended(&self, id: u64, outcome: Result<Option<[u8; 32]>, String>, cancel: &Cancel) {
        let mut state = self.state.lock();
        let watch = state.running.take().map(|running| running.watch);
        let task = state.tasks.get_mut(&id).expect("it was being done");
        task.ended_at = Some(now());
        task.notes = watch.map(|watch| watch.notes()).unwrap_or_default();
        match outcome {
            Ok(epoch) => {
                task.status = TaskStatus::Succeeded;
                task.epoch = epoch.map(hex::encode);
            }
            Err(_) if cancel.is_cancelled() => task.status = TaskStatus::Canceled,
            Err(error) => {
                task.status = TaskStatus::Failed;
                task.error = Some(error);
            }
        }
        let frontend = self.folders.frontend();
        match &task.error {
            None => frontend.tell(Level::INFO, None, format_args!("task {id}: {}", work::told(task.status))),
            Some(error) => frontend.tell(Level::WARN, None, format_args!("task {id}: failed: {error}")),
        }
        self.keep(task);
        let is_done = task.status == TaskStatus::Succeeded;
        // A failed task may be requested again with other options for the same upload, but for a stream of changes, which has none.
        let inputs = Request::of(&task.request).ok();
        let inputs = inputs.filter(|request| is_done || matches!(request, Request::Changes { .. }));
        self.store.prune(&mut state.tasks);
        // Who is told of the end finds no upload.
        for input in inputs.iter().flat_map(Request::inputs) {
            if let TaskInput::Upload { upload } = input
                && let Err(error) = self.uploads.remove(upload)
            {
                tracing::warn!(%upload, %error, "cannot remove the upload of a finished task");
            }
        }
    }

    fn keep(&self, task: &Task) {
        if let Err(error) = self.store.write(task) {
            tracing::error!(task = task.id, %error, "cannot write the state of a task: after a restart the task may begin again");
        }
    }
}

impl TaskState {
    /// Returns whether an unfinished task reads an upload.
    fn waits_for(&self, upload: &Name) -> bool {
        let waiting = self.tasks.values().filter(|task| !task.status.is_final());
        let mut requests = waiting.filter_map(|task| Request::of(&task.request).ok());
        requests.any(|request| {
            request.inputs().any(|input| matches!(input, TaskInput::Upload { upload: own } if own == upload))
        })
    }

    /// Returns a task as it is shown to callers, without secrets.
    fn shown(&self, task: &Task) -> Task {
        let running = self.running.as_ref().filter(|running| running.id == task.id);
        let mut shown = task.clone();
        if let Some(RunningTask { watch, .. }) = running {
            (shown.progress, shown.notes) = (Some(watch.progress()), watch.notes());
        }
        hide_secrets(&mut shown.request);
        shown
    }
}

/// Replaces the URLs of a request by their form without secrets: they may have passwords.
fn hide_secrets(request: &mut Value) {
    match request {
        Value::Object(members) => members.iter_mut().for_each(|(name, member)| match member {
            Value::String(text) if name == "url" => {
                *text = Input::from(text.as_ref()).path().display().to_string();
            }
            Value::Object(_) | Value::Array(_) if name != "options" => hide_secrets(member),
            _ => {}
        }),
        Value::Array(elements) => elements.iter_mut().for_each(hide_secrets),
        _ => {}
    }
}

impl Operator for Tasks {
    /// Starts to run the tasks, on a thread that ends with the process.
    fn start(self: Arc<Self>) -> Result<(), String> {
        self.go_on().map_err(|error| format!("cannot keep the tasks: {error}"))?;
        let upkeep = self.folders.upkeep().clone();
        thread::spawn(move || match upkeep.keep_thread(Background::Tasks, || self.do_all()) {});
        Ok(())
    }

    fn reload(&self, table: &Name) -> Result<[u8; 32], OperatorError> {
        self.folders.reload(table)
    }

    fn compact(&self, table: &Name) -> Result<(), OperatorError> {
        self.folders.compact(table)
    }

    fn submit(&self, caller: &Caller, request: Value) -> Result<Task, OperatorError> {
        let asked = Request::of(&request)?;
        if !caller.may(Scope::Admin, asked.table()) {
            return Err(OperatorError::Forbidden);
        }
        for input in asked.inputs() {
            if let TaskInput::Upload { upload } = input {
                self.uploads.check(caller, upload)?;
            }
        }
        // Callers give options in JSON, so errors do not word them as on a command line.
        neutrally(|| work::check(self, &asked))?;
        let mut state = self.state.lock();
        for input in asked.inputs() {
            // An upload may have been removed as too old since the check.
            if let TaskInput::Upload { upload } = input {
                self.uploads.find(upload)?;
            }
        }
        let id = state.tasks.keys().next_back().map_or(1, |last| last + 1);
        let task = Task {
            id,
            request,
            status: TaskStatus::Enqueued,
            enqueued_at: now(),
            started_at: None,
            ended_at: None,
            attempts: 0,
            progress: None,
            error: None,
            epoch: None,
            notes: Vec::new(),
        };
        let kept = self.store.write(&task);
        kept.map_err(|error| OperatorError::Refused(format!("the task cannot be kept: {error}")))?;
        let shown = state.shown(&task);
        state.tasks.insert(id, task);
        self.changed.notify_one();
        Ok(shown)
    }

    fn tasks(&self, caller: &Caller, before: Option<u64>, most: usize) -> Vec<Task> {
        let state = self.state.lock();
        let tasks = state.tasks.range(..before.unwrap_or(u64::MAX)).rev().map(|(_, task)| task);
        tasks.filter(|task| may_see(caller, task)).take(most).map(|task| state.shown(task)).collect()
    }

    fn task(&self, caller: &Caller, id: u64) -> Result<Task, OperatorError> {
        let state = self.state.lock();
        let task = state.tasks.get(&id).filter(|task| may_see(caller, task));
        task.map(|task| state.shown(task)).ok_or(OperatorError::Unknown("task"))
    }

    fn cancel(&self, caller: &Caller, id: u64) -> Result<Task, OperatorError> {
        let mut state = self.state.lock();
        let task = state.tasks.get_mut(&id).filter(|task| may_see(caller, task));
        let task = task.ok_or(OperatorError::Unknown("task"))?;
        match task.status {
            TaskStatus::Enqueued => {
                (task.status, task.ended_at) = (TaskStatus::Canceled, Some(now()));
                self.keep(task);
            }
            TaskStatus::Processing => {
                state
                    .running
                    .iter()
                    .filter(|running| running.id == id)
                    .for_each(|running| running.cancel.cancel());
            }
            ended => {
                return Err(OperatorError::Refused(format!(
                    "the task has ended already: {}",
                    work::told(ended)
                )));
            }
        }
        Ok(state.shown(&state.tasks[&id]))
    }

    fn kept(&self, caller: &Caller) -> Vec<KeptTable> {
        let mut kept = Vec::new();
        for name in self.kept.tables() {
            if caller.may(Scope::Admin, &name) {
                let serves = self.folders.epoch(&name).map(hex::encode);
                let builds = self.kept.builds(&name);
                kept.push(KeptTable { serves, builds, name });
            }
        }
        kept
    }

    fn begin_upload(&self, caller: &Caller, name: &Name) -> Result<Upload, OperatorError> {
        self.uploads.begin(caller.token_id(), name)
    }

    fn upload(&self, caller: &Caller, id: &Name) -> Result<Upload, OperatorError> {
        self.uploads.check(caller, id)?;
        self.uploads.find(id).map(|(upload, _)| upload)
    }

    fn append(&self, caller: &Caller, id: &Name, offset: u64, bytes: &[u8]) -> Result<Upload, OperatorError> {
        self.uploads.check(caller, id)?;
        self.uploads.append(id, offset, bytes)
    }

    fn remove_upload(&self, caller: &Caller, id: &Name) -> Result<(), OperatorError> {
        self.uploads.check(caller, id)?;
        if self.state.lock().waits_for(id) {
            let reason = "a task reads the upload: wait for its end, or cancel it first";
            return Err(OperatorError::Refused(reason.into()));
        }
        self.uploads.remove(id)
    }
}

/// Returns whether the caller may operate the table of a task. A task of an earlier version whose table has an invalid name is only
/// for callers that operate all tables.
fn may_see(caller: &Caller, task: &Task) -> bool {
    match task.request["table"].as_str().unwrap_or("").parse() {
        Ok(table) => caller.may(Scope::Admin, &table),
        Err(_) => caller.may_all(Scope::Admin),
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn passwords_in_urls_are_not_shown() {
        let secret = "postgres://me:secret@db/shop";
        let mut request =
            json!({"kind": "build", "input": [{"url": secret}], "delete": {"url": secret}, "url": secret});
        hide_secrets(&mut request);
        assert!(!request.to_string().contains("secret"), "{request}");
        assert!(request["input"][0]["url"].as_str().unwrap().contains("db/shop"), "{request}");
    }
}
