//! Servers in this process: of folders, for notebooks and tests; of tables whose parts are elsewhere.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use bytes::Bytes;
use hush_cpu::Cpu;
use hush_engine::{
    Backends, MemoryChoice,
    parts::{Unavailable, Workers, open_head},
};
use hush_protocol::Name;
use hush_server::Tables;
use hushdb::embed;
use pyo3::{prelude::*, pybacked::PyBackedBytes, types::PyBytes};
use serde_json::{Map, Value};

use crate::{
    build::parsed,
    error::{Code, CodedError, failed, raised},
    interrupt::{Cancel, interruptible},
    part::Source,
    watch::{Folder, Watch},
};

/// A server that goes on until it is stopped, or the process ends.
#[pyclass(frozen)]
pub(crate) struct Server {
    url: String,
    running: Mutex<Option<embed::Server>>,
    tables: Tables,
    cpu: Arc<Cpu>,
    /// The watch that takes new epochs up, until it is dropped.
    watch: Mutex<Option<Watch>>,
}

fn start(
    given: &Map<String, Value>,
    folders: Vec<(String, PathBuf)>,
    threads: usize,
    warn: Option<Py<PyAny>>,
) -> Result<Server, CodedError> {
    let cpu = Arc::new(Cpu::new(threads).map_err(failed(Code::ClientFailed))?);
    let memory = match given.get("memory").and_then(Value::as_str) {
        Some(name) => name.parse::<MemoryChoice>().map_err(failed(Code::Options))?,
        None => MemoryChoice::default(),
    };
    let backends = Backends::cpu_only(cpu.clone()).with_memory(memory);
    let tables = Tables::new();
    let folders: Vec<_> = folders
        .into_iter()
        .map(|(name, path): (String, PathBuf)| match name.parse::<Name>() {
            Ok(name) => Ok((name, path)),
            Err(error) => {
                Err((Code::Options, format!("{error}: give the table another one with tables={{..}}")))
            }
        })
        .collect::<Result<_, _>>()?;
    let mut watched = Vec::new();
    for (name, path) in folders {
        let mut folder = Folder::new(name, path);
        let engine = folder.open(&backends).map_err(failed(Code::Input))?;
        tables.insert(&folder.name, engine).map_err(failed(Code::Options))?;
        watched.push(folder);
    }
    let watch = warn.map(|warn| Watch::start(watched, tables.clone(), backends, warn));
    let running = embed::Server::start(given, tables.clone()).map_err(failed(Code::Options))?;
    Ok(Server {
        url: running.url().to_owned(),
        running: Mutex::new(Some(running)),
        tables,
        cpu,
        watch: Mutex::new(watch),
    })
}

impl Server {
    fn stopping(&self) -> Option<JoinHandle<()>> {
        drop(self.watch.lock().unwrap_or_else(PoisonError::into_inner).take());
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        running.map(embed::Server::tell_stop)
    }
}

fn named(py: Python<'_>, name: &str) -> PyResult<Name> {
    name.parse::<Name>().map_err(|error| raised(py, Code::Options, error))
}

/// Returns the name of a table, and refuses a text that is not one.
#[pyfunction]
pub(crate) fn table_name(py: Python<'_>, name: &str) -> PyResult<String> {
    named(py, name).map(String::from)
}

#[pymethods]
impl Server {
    /// Serves tables in folders, by their names; `given` are options of `hushdb serve` in JSON. With `warn`, new epochs in the
    /// folders are taken up, and what cannot be is told to it.
    #[new]
    #[pyo3(signature = (folders, given, threads, warn=None))]
    fn new(
        py: Python<'_>,
        folders: Vec<(String, PathBuf)>,
        given: &str,
        threads: usize,
        warn: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let given = parsed(py, given)?;
        let started = interruptible(py, &Cancel::default(), move || start(&given, folders, threads, warn))?;
        started.map_err(|(code, error)| raised(py, code, error))
    }

    /// Serves a table whose parts are elsewhere, or its next epoch: `scan` is given a batch, and returns what every part says to
    /// it. It raises an exception with the attribute `part` if one does not answer.
    fn serve_parts(&self, py: Python<'_>, name: &str, source: &Source, scan: Py<PyAny>) -> PyResult<()> {
        let workers = Arc::new(PyWorkers { scan });
        let cpu = self.cpu.clone();
        let source = source.source.clone();
        let opened = interruptible(py, &Cancel::default(), move || open_head(&source, workers, cpu))?;
        let engine = opened.map_err(|error| raised(py, Code::Input, error))?;
        let name = named(py, name)?;
        py.detach(|| self.tables.insert(&name, engine)).map_err(|error| raised(py, Code::Options, error))
    }

    /// Announces a table, and expects its parts to be seen: the server is not ready once one of them has had no live
    /// replica for `grace` seconds.
    fn expect_parts(&self, py: Python<'_>, name: &str, count: usize, grace: f64) -> PyResult<()> {
        let grace = Duration::try_from_secs_f64(grace);
        let grace = grace.map_err(|error| raised(py, Code::Options, format!("grace: {error}")))?;
        let name = named(py, name)?;
        self.tables.parts().expect(&name, count, grace);
        if !self.tables.is_resident(&name) {
            self.tables.announce(&name);
        }
        Ok(())
    }

    /// Notes how many replicas of a part are alive, and how many processes have taken the place of others since the last look.
    fn part_seen(&self, py: Python<'_>, name: &str, part: usize, live: usize, restarts: u64) -> PyResult<()> {
        self.tables.parts().seen(&named(py, name)?, part, live, restarts);
        Ok(())
    }

    /// Notes the seconds that a part took for a batch.
    fn part_replied(&self, py: Python<'_>, name: &str, part: usize, seconds: f64) -> PyResult<()> {
        let elapsed = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.tables.parts().replied(&named(py, name)?, part, elapsed);
        Ok(())
    }

    /// Returns the URL of the server.
    #[getter]
    fn url(&self) -> String {
        self.url.clone()
    }

    /// Answers what is in flight, and ends. Nothing happens if it has ended.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.stopping().map(JoinHandle::join));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody waits for it here: an interpreter that ends holds its lock.
        self.stopping();
    }
}

/// Whoever reaches the parts, in Python. What goes through it are bytes that it does not look at.
struct PyWorkers {
    scan: Py<PyAny>,
}

impl Workers for PyWorkers {
    fn scan(&self, batch: Bytes) -> Result<Vec<Bytes>, Unavailable> {
        let unavailable = |part, reason| Unavailable { part, reason };
        let said = Python::try_attach(|py| {
            let replies = self.scan.bind(py).call1((PyBytes::new(py, &batch),));
            replies.and_then(|replies| replies.extract::<Vec<PyBackedBytes>>()).map_err(|error| {
                let part = error.value(py).getattr("part").and_then(|part| part.extract()).unwrap_or(0);
                unavailable(part, error.value(py).to_string())
            })
        });
        let replies = said.unwrap_or_else(|| Err(unavailable(0, "the program is ending".into())))?;
        Ok(replies.into_iter().map(Bytes::from_owner).collect())
    }
}
