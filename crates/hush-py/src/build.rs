//! A table from records.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use hush_build::{
    Job, JobError,
    builder::{self, BuildError, Computers, Crew},
};
use hush_cpu::Cpu;
use hush_engine::Backends;
use hush_ingest::{Batches, Input};
use hushdb::embed;
use pyo3::{
    prelude::*,
    pybacked::PyBackedBytes,
    types::{PyBytes, PyList, PyString},
};
use serde_json::{Map, Value};

use crate::{
    arrow,
    error::{Code, CodedError, failed, raised},
    interrupt::{Cancel, interruptible},
    progress::Told,
    snapshot::Snapshot,
};

/// The name of a frame's records in a table's header.
const FRAME: &str = "frame.arrow";

/// Builds a table in the folder `out`. `options` are those of `hushdb build` in JSON.
#[pyfunction]
#[pyo3(signature = (data, out, options, threads, on_progress=None, crew=None, cancel=None))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn build(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    out: PathBuf,
    options: &str,
    threads: usize,
    on_progress: Option<Py<PyAny>>,
    crew: Option<Py<PyAny>>,
    cancel: Option<&Bound<'_, Cancel>>,
) -> PyResult<Snapshot> {
    let input = input(data)?;
    let options = parsed(py, options)?;
    let cancel = Cancel::of(cancel);
    let told = Told::new(on_progress, &cancel);
    let own = cancel.work.clone();
    let place = out.clone();
    let build = move || {
        let request = embed::build(&options, input, &out, &told).map_err(failed(Code::Options))?;
        let cpu = Cpu::new(threads).map_err(failed(Code::ClientFailed))?;
        let job = Job::open(request, &own).map_err(failure)?;
        let backends = Backends::cpu_only(Arc::new(cpu));
        let crew = crew.map(|crew| PyCrew { crew });
        let computers = Computers { backends: &backends, crew: crew.as_ref().map(|crew| crew as &dyn Crew) };
        let built = job.run(computers, &told).map_err(failure)?;
        told.finish();
        Ok(built)
    };
    let built = interruptible(py, &cancel, build)?;
    let built = built.map_err(|(code, error): CodedError| raised(py, code, error))?;
    Snapshot::of(py, place, &built.header, Some(built.seconds))
}

/// For a crew: does a task of a build, and gives what comes of it.
#[pyfunction]
pub(crate) fn work(py: Python<'_>, task: PyBackedBytes, threads: usize) -> PyResult<Vec<Bound<'_, PyBytes>>> {
    let contents = interruptible(py, &Cancel::default(), move || {
        let cpu = Cpu::new(threads).map_err(|error| error.to_string())?;
        builder::work(Bytes::from_owner(task), &cpu).map_err(|error| error.to_string())
    })?;
    let contents = contents.map_err(|error| raised(py, Code::ClientFailed, error))?;
    Ok(contents.iter().map(|content| PyBytes::new(py, content)).collect())
}

/// Others who compute, in Python: an object with the methods of a [`Crew`]. What goes through it is not looked at there.
struct PyCrew {
    crew: Py<PyAny>,
}

impl PyCrew {
    fn call<T>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T, BuildError> {
        Python::attach(|py| call(self.crew.bind(py))).map_err(|error| BuildError::Crew(error.to_string()))
    }
}

impl Crew for PyCrew {
    fn places(&self) -> usize {
        self.call(|crew| crew.call_method0("places")?.extract()).unwrap_or(1)
    }

    fn ask(&self, number: usize, task: Bytes) -> Result<(), BuildError> {
        self.call(|crew| {
            let task = PyBytes::new(crew.py(), &task);
            crew.call_method1("ask", (number, task)).map(drop)
        })
    }

    fn next(&self) -> Result<Option<(usize, Vec<Bytes>)>, BuildError> {
        let came: Option<(usize, Vec<PyBackedBytes>)> =
            self.call(|crew| crew.call_method0("next")?.extract())?;
        Ok(came.map(|(number, contents)| (number, contents.into_iter().map(Bytes::from_owner).collect())))
    }
}

pub(crate) fn failure(error: JobError) -> CodedError {
    let code = match error {
        JobError::Build(BuildError::Crew(_)) => Code::ClientFailed,
        JobError::Build(_) => Code::Options,
        _ => Code::Input,
    };
    (code, error.to_string())
}

/// Returns a path, a URL, a list of these, or a stream of Arrow.
pub(crate) fn input(data: &Bound<'_, PyAny>) -> PyResult<Input> {
    if let Ok(several) = data.cast::<PyList>() {
        return Ok(Input::of_all(several.iter().map(|data| input(&data)).collect::<PyResult<_>>()?));
    }
    if let Ok(text) = data.cast::<PyString>() {
        return Ok(Input::from(text.to_str()?.as_ref()));
    }
    if data.hasattr("__fspath__")? {
        return Ok(Input::Path(data.extract()?));
    }
    Ok(Input::Batches(Batches::new(FRAME, arrow::reader(data)?)))
}

/// Options, which Python has written.
pub(crate) fn parsed(py: Python<'_>, options: &str) -> PyResult<Map<String, Value>> {
    serde_json::from_str(options).map_err(|error| raised(py, Code::Options, error))
}
