//! Tables in folders: what they are, and changes of them.

use std::{path::PathBuf, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, StringArray};
use hush_build::{Update, UpdateError};
use hush_cpu::Cpu;
use hush_engine::Backends;
use hush_ingest::{Batches, Input};
use hush_store::snapshot::{self, Header, Verify};
use hushdb::embed;
use pyo3::prelude::*;

use crate::{
    build::{failure, input, parsed},
    error::{Code, CodedError, failed, raised},
    interrupt::{Cancel, interruptible},
    progress::Told,
};

/// The facts of a table in a folder.
#[pyclass(frozen, get_all)]
pub(crate) struct Snapshot {
    path: PathBuf,
    /// The text that `hushdb inspect --json` prints.
    facts: String,
    /// The text that `hushdb inspect` prints.
    summary: String,
    /// How long it took to make.
    seconds: Option<f64>,
}

impl Snapshot {
    pub(crate) fn of(py: Python<'_>, path: PathBuf, header: &Header, seconds: Option<f64>) -> PyResult<Self> {
        let described = embed::described(header).map_err(|error| raised(py, Code::Input, error))?;
        Ok(Self { path, facts: described.0.to_string(), summary: described.1, seconds })
    }
}

/// Reads the facts of a table in a folder. With `full` every byte is checked.
#[pyfunction]
#[pyo3(signature = (path, full, cancel=None))]
pub(crate) fn inspect(
    py: Python<'_>,
    path: PathBuf,
    full: bool,
    cancel: Option<&Bound<'_, Cancel>>,
) -> PyResult<Snapshot> {
    let verify = if full { Verify::Full } else { Verify::Header };
    let place = path.clone();
    let opened = interruptible(py, &Cancel::of(cancel), move || snapshot::Snapshot::open(&place, verify))?;
    let opened = opened.map_err(|error| raised(py, Code::Input, error))?;
    Snapshot::of(py, path, opened.header(), None)
}

/// Puts a table in an object store. Returns its epoch, and where it is.
#[pyfunction]
#[pyo3(signature = (path, url, resend, on_progress=None, cancel=None))]
pub(crate) fn push(
    py: Python<'_>,
    path: PathBuf,
    url: PathBuf,
    resend: bool,
    on_progress: Option<Py<PyAny>>,
    cancel: Option<&Bound<'_, Cancel>>,
) -> PyResult<(String, String)> {
    let cancel = Cancel::of(cancel);
    let told = Told::new(on_progress, &cancel);
    let push = move || {
        let pushed = embed::push(&path, &url, resend, &told).map_err(|error| error.to_string());
        told.finish();
        pushed
    };
    interruptible(py, &cancel, push)?.map_err(|error| raised(py, Code::Input, error))
}

/// Changes the records of a table that is updatable. `options` are those of `hushdb apply` in JSON; keys to delete are read from
/// `delete`, or are the rows of `keys`.
#[pyfunction]
#[pyo3(signature = (path, changes, delete, keys, options, threads, on_progress=None, cancel=None))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn apply(
    py: Python<'_>,
    path: PathBuf,
    changes: Option<Bound<'_, PyAny>>,
    delete: Option<Bound<'_, PyAny>>,
    keys: Option<Vec<Vec<String>>>,
    options: &str,
    threads: usize,
    on_progress: Option<Py<PyAny>>,
    cancel: Option<&Bound<'_, Cancel>>,
) -> PyResult<Snapshot> {
    let changes = changes.as_ref().map(input).transpose()?;
    let delete = delete.as_ref().map(input).transpose()?;
    let options = parsed(py, options)?;
    let dir = path.clone();
    updated(py, path, threads, on_progress, cancel, move |backends, told, cancel| {
        let (mut request, signing) =
            embed::apply(&options, &dir, changes, delete).map_err(|error| of_options(&*error))?;
        if let Some(keys) = keys {
            request.delete = Some(rows(&request.ingest.key, &keys).map_err(failed(Code::Options))?);
        }
        let update = Update::open(&dir, signing, cancel).map_err(of_update)?;
        update.apply(request, backends, told).map_err(of_update)
    })
}

/// Folds the changes of a table into a new base. `options` are those of `hushdb compact` in JSON.
#[pyfunction]
#[pyo3(signature = (path, options, threads, on_progress=None, cancel=None))]
pub(crate) fn compact(
    py: Python<'_>,
    path: PathBuf,
    options: &str,
    threads: usize,
    on_progress: Option<Py<PyAny>>,
    cancel: Option<&Bound<'_, Cancel>>,
) -> PyResult<Snapshot> {
    let options = parsed(py, options)?;
    let dir = path.clone();
    updated(py, path, threads, on_progress, cancel, move |backends, told, cancel| {
        let (request, signing) = embed::compact(&options, &dir).map_err(|error| of_options(&*error))?;
        let update = Update::open(&dir, signing, cancel).map_err(of_update)?;
        update.compact_beside(request, backends, told).map_err(of_update)
    })
}

/// Puts an epoch that was kept in the place of a table. `options` are those of `hushdb rollback` in JSON.
#[pyfunction]
#[pyo3(signature = (path, options, on_progress=None, cancel=None))]
pub(crate) fn rollback(
    py: Python<'_>,
    path: PathBuf,
    options: &str,
    on_progress: Option<Py<PyAny>>,
    cancel: Option<&Bound<'_, Cancel>>,
) -> PyResult<Snapshot> {
    let options = parsed(py, options)?;
    let dir = path.clone();
    updated(py, path, 1, on_progress, cancel, move |_, told, cancel| {
        let (to, signing) = embed::rollback(&options, &dir).map_err(|error| of_options(&*error))?;
        let update = Update::open(&dir, signing, cancel).map_err(of_update)?;
        update.rollback(&to, told).map_err(of_update)
    })
}

fn updated(
    py: Python<'_>,
    path: PathBuf,
    threads: usize,
    on_progress: Option<Py<PyAny>>,
    cancel: Option<&Bound<'_, Cancel>>,
    work: impl FnOnce(&Backends, &Told, &hush_engine::Cancel) -> Result<hush_build::Updated, CodedError>
    + Send
    + 'static,
) -> PyResult<Snapshot> {
    let cancel = Cancel::of(cancel);
    let told = Told::new(on_progress, &cancel);
    let own = cancel.work.clone();
    let updated = interruptible(py, &cancel, move || {
        let cpu = Cpu::new(threads).map_err(failed(Code::ClientFailed))?;
        let updated = work(&Backends::cpu_only(Arc::new(cpu)), &told, &own)?;
        told.finish();
        Ok(updated)
    })?;
    let updated = updated.map_err(|(code, error): CodedError| raised(py, code, error))?;
    Snapshot::of(py, path, &updated.header, Some(updated.seconds))
}

fn of_update(error: UpdateError) -> CodedError {
    match error {
        UpdateError::Job(error) => failure(error),
        error => (Code::Input, error.to_string()),
    }
}

/// Converts the error of a folder; a folder without a table is not an option.
fn of_options(error: &(dyn std::error::Error + 'static)) -> CodedError {
    let code = if error.is::<snapshot::SnapshotError>() { Code::Input } else { Code::Options };
    (code, error.to_string())
}

/// Rows of text as records of these columns.
fn rows(columns: &[String], rows: &[Vec<String>]) -> Result<Input, String> {
    if let Some(row) = rows.iter().find(|row| row.len() != columns.len()) {
        return Err(format!(
            "a key of this table has {} columns, and one to delete has {}",
            columns.len(),
            row.len()
        ));
    }
    let column =
        |at: usize| Arc::new(rows.iter().map(|row| Some(&row[at])).collect::<StringArray>()) as ArrayRef;
    let named = columns.iter().enumerate().map(|(at, name)| (name, column(at)));
    let batch = RecordBatch::try_from_iter(named).map_err(|error| error.to_string())?;
    let schema = batch.schema();
    Ok(Input::Batches(Batches::new("delete", Box::new(RecordBatchIterator::new([Ok(batch)], schema)))))
}
