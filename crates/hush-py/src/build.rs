//! A table from records.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use hush_cpu::Cpu;
use hush_engine::{
    Backends, Cancel, Cancelled, Job, JobError, Progress,
    builder::{self, BuildError, Crew},
};
use hush_store::ingest::{Batches, Input};
use hushdb::embed;
use pyo3::{
    prelude::*,
    pybacked::PyBackedBytes,
    types::{PyBytes, PyString},
};
use serde_json::{Map, Value};

use crate::{arrow, error::Kind, interrupt::interruptible};

/// What records of a frame are called in a table's header.
const FRAME: &str = "frame.arrow";

/// Builds a table in the folder `out`. `options` are those of `hushdb build` in JSON.
#[pyfunction]
#[pyo3(signature = (data, out, options, threads, on_progress=None, crew=None))]
pub(crate) fn build(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    out: PathBuf,
    options: &str,
    threads: usize,
    on_progress: Option<Py<PyAny>>,
    crew: Option<Py<PyAny>>,
) -> PyResult<String> {
    let input = input(data)?;
    let options = parsed(py, options)?;
    let cancel = Cancel::new();
    let (told, own) = (Told { on_progress, cancel: cancel.clone() }, cancel.clone());
    let build = move || {
        let request =
            embed::build(&options, input, &out, &told).map_err(|error| (Kind::Option, error.to_string()))?;
        let cpu = Cpu::new(threads).map_err(|error| (Kind::Hush, error.to_string()))?;
        let job = Job::open(request, &own).map_err(failure)?;
        let backends = Backends::cpu_only(Arc::new(cpu));
        let backends = match crew {
            Some(crew) => backends.with_crew(Arc::new(PyCrew { crew })),
            None => backends,
        };
        job.run(&backends, &told).map_err(failure)
    };
    let built = interruptible(py, build, || cancel.cancel())?;
    let built = built.map_err(|(kind, error)| kind.raised(py, error))?;
    Ok(hex::encode(built.header.descriptor.epoch))
}

/// For a crew: does a task of a build, and gives what comes of it.
#[pyfunction]
pub(crate) fn work(py: Python<'_>, task: PyBackedBytes, threads: usize) -> PyResult<Vec<Bound<'_, PyBytes>>> {
    let compute = move || {
        let cpu = Cpu::new(threads).map_err(|error| error.to_string())?;
        builder::work(Bytes::from_owner(task), &cpu).map_err(|error| error.to_string())
    };
    let contents = interruptible(py, compute, || ())?.map_err(|error| Kind::Hush.raised(py, error))?;
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

fn failure(error: JobError) -> (Kind, String) {
    let kind = match error {
        JobError::Build(BuildError::Crew(_)) => Kind::Hush,
        JobError::Build(_) => Kind::Option,
        _ => Kind::Input,
    };
    (kind, error.to_string())
}

/// A path, a URL, or a stream of Arrow.
pub(crate) fn input(data: &Bound<'_, PyAny>) -> PyResult<Input> {
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
    serde_json::from_str(options).map_err(|error| Kind::Option.raised(py, error))
}

/// Tells a callback: the stage, how much of it is done, of how much, and what is counted; a note has no unit.
pub(crate) struct Told {
    pub(crate) on_progress: Option<Py<PyAny>>,
    pub(crate) cancel: Cancel,
}

impl Told {
    fn tell(&self, stage: &str, done: u64, total: u64, unit: &str) {
        let Some(callback) = &self.on_progress else { return };
        Python::attach(|py| {
            if let Err(error) = callback.call1(py, (stage, done, total, unit)) {
                error.write_unraisable(py, Some(callback.bind(py)));
            }
        });
    }
}

impl Progress for Told {
    fn start(&self, stage: &str, total: u64, unit: &'static str) {
        self.tell(stage, 0, total, unit);
    }

    fn advance(&self, units: u64) {
        self.tell("", units, 0, "");
    }

    fn note(&self, line: &str) {
        self.tell(line, 0, 0, "note");
    }

    fn check(&self) -> Result<(), Cancelled> {
        self.cancel.check()
    }
}
