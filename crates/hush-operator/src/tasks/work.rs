//! The work of each kind of task.

use std::{
    ffi::OsString,
    fs,
    io::BufReader,
    panic::AssertUnwindSafe,
    panic::catch_unwind,
    path::{Path, PathBuf},
    sync::Arc,
};

use hush_build::{Job, Update, apply_lines, mirror};
use hush_cpu::Cpu;
use hush_engine::{Backends, Cancel, Progress};
use hush_ingest::{Input, mirror::RemoteTable};
use hush_protocol::{Name, wording::neutrally};
use hush_server::{OperatorError, Task, TaskStatus};
use hush_store::snapshot::{ArrivingSnapshot, Snapshot, Trust, Verify};
use rustix::process::setpriority_process;
use serde_json::{Map, Value};

use super::{
    Tasks,
    request::{Request, TaskInput, TaskInputs, check_options},
};
use crate::Frontend;

/// The lowest priority, since look-ups come first.
const LOWEST_PRIORITY: i32 = 19;

/// Returns the name of a status.
pub(super) fn told(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Enqueued => "enqueued",
        TaskStatus::Processing => "processing",
        TaskStatus::Succeeded => "succeeded",
        TaskStatus::Failed => "failed",
        TaskStatus::Canceled => "canceled",
        TaskStatus::Interrupted => "interrupted",
    }
}

/// Checks a request as far as possible before its turn.
pub(super) fn check(tasks: &Tasks, request: &Request) -> Result<(), OperatorError> {
    let table = request.table();
    match request {
        Request::Build { input, options, .. } => {
            is_kept_or_new(tasks, table)?;
            check_options(options)?;
            let request = frontend(tasks).build(options, &places(tasks, input)?, "table".as_ref());
            let request = request.map_err(OperatorError::Invalid)?;
            allowed(tasks, request.input).map(drop)
        }
        Request::Apply { input, delete, options, .. } => {
            if input.is_none() && delete.is_none() {
                return Err(OperatorError::Invalid("changes are an input, or a delete, or both".into()));
            }
            for input in [input, delete].into_iter().flatten() {
                allowed(tasks, Input::from(place(tasks, input)?.as_os_str()))?;
            }
            check_options(options)?;
            frontend(tasks).apply(options, None, None).map(drop).map_err(OperatorError::Invalid)
        }
        Request::Changes { input: TaskInput::Upload { .. }, .. } => tasks.folders.own_dir(table).map(drop),
        Request::Changes { .. } => Err(OperatorError::Invalid("a stream of changes is uploaded".into())),
        Request::Compact { options, .. } => {
            check_options(options)?;
            frontend(tasks).compact(options).map(drop).map_err(OperatorError::Invalid)
        }
        Request::Load { url: Some(url), epoch, .. } => {
            if epoch.is_some() {
                return Err(OperatorError::Invalid(
                    "what is at a URL has an epoch of its own: give one of both".into(),
                ));
            }
            is_kept_or_new(tasks, table)?;
            remote(tasks, url).map(drop)
        }
        Request::Load { .. } | Request::Unload { .. } | Request::Delete { .. } => Ok(()),
    }
}

/// Refuses a table that is not kept by the server, since tasks must not change it.
fn is_kept_or_new(tasks: &Tasks, table: &Name) -> Result<(), OperatorError> {
    if tasks.folders.dir(table).is_none() || tasks.kept.has(table) {
        return Ok(());
    }
    Err(OperatorError::Refused(format!(
        "the table {table} is in a folder of its own, which 'hushdb build' fills: choose another name"
    )))
}

/// Returns the remote table at a URL. Refuses a URL that tasks may not fetch from.
fn remote(tasks: &Tasks, url: &str) -> Result<RemoteTable, OperatorError> {
    let table = RemoteTable::under(url.as_ref(), &tasks.sources);
    let table = table.map_err(|error| OperatorError::Invalid(error.to_string()))?;
    table.ok_or_else(|| {
        OperatorError::Invalid(format!("{url}: a table's URL is s3://, gs://, az:// or https://"))
    })
}

/// Runs a task. Returns the epoch that is served afterwards, if any.
pub(super) fn run(
    tasks: &Tasks,
    task: &Task,
    cancel: &Cancel,
    progress: &dyn Progress,
) -> Result<Option<[u8; 32]>, String> {
    // On Linux the priority applies to this thread and those that it starts. If the call fails, the priority stays as it is.
    let _ = setpriority_process(None, LOWEST_PRIORITY);
    let done = neutrally(|| catch_unwind(AssertUnwindSafe(|| done(tasks, task, cancel, progress))));
    let done = done.unwrap_or_else(|_| Err("the program failed; its log has the cause".into()));
    if done.is_err()
        && let Ok(request) = Request::of(&task.request)
    {
        tasks.kept.remove_empty(request.table());
    }
    done
}

fn done(
    tasks: &Tasks,
    task: &Task,
    cancel: &Cancel,
    progress: &dyn Progress,
) -> Result<Option<[u8; 32]>, String> {
    let request = Request::of(&task.request).map_err(said)?;
    let table = request.table().clone();
    // The server may have stopped when the task was done and not yet ended: what it removes may be gone.
    let is_again = task.attempts > 1;
    match request {
        Request::Build { input, options, .. } => {
            build(tasks, &table, task.id, (&input, &options), cancel, progress)
        }
        Request::Apply { input, delete, options, .. } => made(tasks, &table, task.id, progress, |dir| {
            let changes = input.map(|input| place(tasks, &input)).transpose().map_err(said)?;
            let delete = delete.map(|delete| place(tasks, &delete)).transpose().map_err(said)?;
            let mut request = frontend(tasks).apply(&options, changes, delete.as_deref().map(Path::new))?;
            for input in [&mut request.changes, &mut request.delete].into_iter().flatten() {
                *input = allowed(tasks, input.clone()).map_err(said)?;
            }
            let update = Update::open(dir, None, cancel).map_err(said)?;
            update.apply(request, &backends(tasks)?, progress).map(drop).map_err(said)
        }),
        Request::Changes { input, .. } => made(tasks, &table, task.id, progress, |dir| {
            let lines = fs::File::open(place(tasks, &input).map_err(said)?).map_err(said)?;
            let lines = BufReader::new(lines);
            apply_lines(dir, lines, &backends(tasks)?, cancel, progress).map(drop).map_err(said)
        }),
        Request::Compact { options, .. } => made(tasks, &table, task.id, progress, |dir| {
            let request = frontend(tasks).compact(&options)?;
            let update = Update::open(dir, None, cancel).map_err(said)?;
            update.compact(request, &backends(tasks)?, progress).map(drop).map_err(said)
        }),
        Request::Load { url: Some(url), .. } => fetch(tasks, &table, task.id, &url, progress),
        Request::Load { epoch, url: None, .. } => load(tasks, &table, epoch.as_deref(), progress),
        Request::Unload { .. } => unload(tasks, &table, is_again),
        Request::Delete { epoch, .. } => delete(tasks, &table, epoch.as_deref(), is_again),
    }
}

/// Builds a table from an input, and serves it.
fn build(
    tasks: &Tasks,
    table: &Name,
    id: u64,
    (input, options): (&TaskInputs, &Map<String, Value>),
    cancel: &Cancel,
    progress: &dyn Progress,
) -> Result<Option<[u8; 32]>, String> {
    let out = tasks.kept.place(table, id).map_err(said)?;
    // The server may have stopped when the table was built and not yet served.
    if Snapshot::open(&out, Verify::Header).is_err() {
        let places = places(tasks, input).map_err(said)?;
        let mut request = frontend(tasks).build(options, &places, &out)?;
        request.input = allowed(tasks, request.input).map_err(said)?;
        let job = Job::open(request, cancel).map_err(said)?;
        let partial = job.partial_dir().to_owned();
        job.run(&backends(tasks)?, progress).map_err(|error| {
            // Another task builds elsewhere, so nobody continues this build.
            let _ = fs::remove_dir_all(&partial);
            error.to_string()
        })?;
    }
    promote(tasks, table, id, progress)
}

/// Fetches a table from a URL, and serves it.
fn fetch(
    tasks: &Tasks,
    table: &Name,
    id: u64,
    url: &str,
    progress: &dyn Progress,
) -> Result<Option<[u8; 32]>, String> {
    let place = tasks.kept.place(table, id).map_err(said)?;
    let from = remote(tasks, url).map_err(said)?;
    mirror(&from, &place, Trust::Copy, progress).map_err(|error| {
        // Another task fetches elsewhere, so nobody continues this copy.
        let _ = ArrivingSnapshot::forget(&place);
        error.to_string()
    })?;
    promote(tasks, table, id, progress)
}

/// Serves a kept build of a table: that of an epoch, or the newest one.
fn load(
    tasks: &Tasks,
    table: &Name,
    epoch: Option<&str>,
    progress: &dyn Progress,
) -> Result<Option<[u8; 32]>, String> {
    if tasks.kept.has(table) {
        let build = tasks.kept.find(table, epoch).map_err(said)?;
        return promote(tasks, table, build, progress);
    }
    if epoch.is_some() {
        return Err(format!("the server keeps no epochs of the table {table}: it is in a folder of its own"));
    }
    tasks.folders.load(table).map(Some)
}

/// Stops serving a table, and keeps it.
fn unload(tasks: &Tasks, table: &Name, is_again: bool) -> Result<Option<[u8; 32]>, String> {
    if tasks.kept.has(table) {
        tasks.kept.set_current(table, None).map_err(said)?;
    }
    match tasks.folders.remove(table) || is_again {
        true => Ok(None),
        false => Err(format!("the table {table} is not served")),
    }
}

/// Removes a table that tasks have built, or an epoch of it that is not served.
fn delete(
    tasks: &Tasks,
    table: &Name,
    epoch: Option<&str>,
    is_again: bool,
) -> Result<Option<[u8; 32]>, String> {
    if !tasks.kept.has(table) {
        if is_again {
            return Ok(None);
        }
        return Err(format!("the server keeps no table {table}: only what tasks have built is deleted"));
    }
    let build = match epoch.map(|epoch| tasks.kept.find(table, Some(epoch))).transpose() {
        Err(_) if is_again => return Ok(None),
        found => found.map_err(said)?,
    };
    if build.is_some() && build == tasks.kept.current(table) {
        return Err("that epoch is served: load another one first, or delete the whole table".into());
    }
    if build.is_none() {
        tasks.folders.remove(table);
    }
    tasks.kept.remove(table, build).map_err(said)?;
    Ok(None)
}

/// Serves a build in place of the current one of its table. Older builds are removed, except one to go back to.
fn promote(
    tasks: &Tasks,
    table: &Name,
    build: u64,
    progress: &dyn Progress,
) -> Result<Option<[u8; 32]>, String> {
    progress.start("load", 0, "bytes");
    let epoch = tasks.folders.put(table, tasks.kept.dir(table, build))?;
    let before = tasks.kept.current(table);
    tasks.kept.set_current(table, Some(build)).map_err(said)?;
    tasks.kept.prune(table, before);
    Ok(Some(epoch))
}

/// Changes a table by `change`, and serves the result. A kept table is changed in a new folder, removed if the change fails.
fn made(
    tasks: &Tasks,
    table: &Name,
    task: u64,
    progress: &dyn Progress,
    change: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<Option<[u8; 32]>, String> {
    let own = dir(tasks, table)?;
    let Some(build) = tasks.kept.current(table).filter(|_| tasks.kept.has(table)) else {
        change(&own)?;
        return tasks.folders.load(table).map(Some);
    };
    // The server may have stopped when the change was served and the task not yet ended: the build is the task's own.
    if build == task {
        return promote(tasks, table, task, progress);
    }
    let copied = tasks.kept.copy(table, build, task).map_err(said);
    copied.and_then(|dir| change(&dir)).inspect_err(|_| {
        // The error of the change is reported, not that of the removal.
        let _ = tasks.kept.remove(table, Some(task));
    })?;
    promote(tasks, table, task, progress)
}

/// Returns the folder of a table that is served.
fn dir(tasks: &Tasks, table: &Name) -> Result<PathBuf, String> {
    match tasks.folders.own_dir(table) {
        Err(OperatorError::UnknownTable) => Err(format!("the table {table} is not served: load it first")),
        found => found.map_err(said),
    }
}

/// Returns the inputs as a command line names them: paths or URLs.
fn places(tasks: &Tasks, inputs: &TaskInputs) -> Result<Vec<OsString>, OperatorError> {
    if inputs.all().is_empty() {
        return Err(OperatorError::Invalid("a table needs an input: the list has none".into()));
    }
    inputs.all().iter().map(|input| place(tasks, input)).collect()
}

/// Returns an input as a command line names it: a path or a URL.
fn place(tasks: &Tasks, input: &TaskInput) -> Result<OsString, OperatorError> {
    match input {
        TaskInput::Upload { upload } => tasks.uploads.find(upload).map(|(_, path)| path.into()),
        TaskInput::Url { url } if matches!(Input::from(url.as_ref()), Input::Url(_)) => Ok(url.into()),
        TaskInput::Url { .. } => Err(OperatorError::Invalid(
            "an input's URL is postgres://, s3://, gs://, az:// or https://; a file is uploaded first".into(),
        )),
    }
}

/// Returns the input. Refuses an input that tasks may not fetch.
fn allowed(tasks: &Tasks, input: Input) -> Result<Input, OperatorError> {
    input.under(&tasks.sources).map_err(|error| OperatorError::Invalid(error.to_string()))
}

fn frontend(tasks: &Tasks) -> &dyn Frontend {
    tasks.folders.frontend()
}

/// Returns backends on separate CPU threads of the task, which inherit its low priority.
fn backends(tasks: &Tasks) -> Result<Backends, String> {
    Ok(Backends::cpu_only(Arc::new(Cpu::new(tasks.threads).map_err(said)?)))
}

fn said(error: impl ToString) -> String {
    error.to_string()
}
