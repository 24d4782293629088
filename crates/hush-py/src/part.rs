//! A part of a table, in a process that has no other.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use hush_build::{RemoteSource, planner::part_bytes};
use hush_cpu::Cpu;
use hush_engine::{
    BackendChoice, Backends, Silent, host_batch,
    parts::{self, PartEngine, Share, open_part},
};
use hush_ingest::mirror::RemoteTable;
use hush_protocol::{InvalidName, Name};
use hush_store::snapshot::Verify;
use hushdb::embed;
use pyo3::{prelude::*, pybacked::PyBackedBytes, types::PyBytes};

use crate::{
    error::{Code, raised},
    interrupt::{Cancel, interruptible},
};

/// Clients whose evaluation keys a part has ready at most: as many as a server has, unless told.
const CLIENTS: usize = 256;

/// Where a table is: a folder, of whose files what is read is checked if `verify` says so, or a URL, of which copies are kept in
/// `cache`.
#[pyclass(frozen)]
pub(crate) struct Source {
    pub(crate) source: parts::Source,
    name: Result<Name, InvalidName>,
    shown: String,
}

#[pymethods]
impl Source {
    #[new]
    fn new(py: Python<'_>, place: PathBuf, verify: bool, cache: Option<PathBuf>) -> PyResult<Self> {
        let table = RemoteTable::of(&place).map_err(|error| raised(py, Code::Input, error))?;
        let Some(table) = table else {
            let verify = if verify { Verify::Full } else { Verify::Header };
            return Ok(Self {
                name: Name::last_of(&place),
                shown: place.display().to_string(),
                source: parts::Source::Folder(place, verify),
            });
        };
        let cache = cache.or_else(embed::tables_cache);
        let cache =
            cache.ok_or_else(|| raised(py, Code::Options, "no home directory is known: name a cache"))?;
        let name = table.name();
        let shown = table.shown().display().to_string();
        Ok(Self { name, shown, source: parts::Source::Remote(Arc::new(RemoteSource { url: place, cache })) })
    }

    /// Returns the name under which clients know the table, unless told otherwise.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<&str> {
        self.name
            .as_deref()
            .map_err(|error| raised(py, Code::Options, format!("{error}: give the table a name")))
    }

    /// Returns where it is, without what is secret in it.
    #[getter]
    fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns whether it is looked at over a network that is not the cluster's.
    #[getter]
    fn is_remote(&self) -> bool {
        matches!(self.source, parts::Source::Remote(..))
    }

    /// Returns the epoch that is there now, in hex.
    fn epoch(&self, py: Python<'_>) -> PyResult<String> {
        let there = py.detach(|| self.source.descriptor()).map_err(|error| raised(py, Code::Input, error))?;
        Ok(hex::encode(there.epoch))
    }

    /// Returns the bytes of memory that each part of these weights takes, with the largest batches.
    fn memory(&self, py: Python<'_>, weights: Vec<u32>) -> PyResult<Vec<u64>> {
        check(py, &weights)?;
        let bytes = py.detach(|| -> Result<_, String> {
            let there = self.source.descriptor().map_err(|error| error.to_string())?;
            let table = there.params().map_err(|error| error.to_string())?;
            Ok(part_bytes(&table, &weights, CLIENTS, host_batch(&table)))
        });
        bytes.map_err(|error| raised(py, Code::Input, error))
    }
}

fn check(py: Python<'_>, weights: &[u32]) -> PyResult<()> {
    match weights.iter().all(|&weight| weight == 0) {
        true => Err(raised(py, Code::Options, "weights are one number a part, and not all 0")),
        false => Ok(()),
    }
}

/// A part that is ready to scan.
#[pyclass(frozen)]
pub(crate) struct Part(Arc<dyn PartEngine>);

#[pymethods]
impl Part {
    /// Opens the part `index` of a table, of as many as there are weights, on `backend`: cpu, cuda or auto.
    #[new]
    fn new(
        py: Python<'_>,
        source: &Source,
        index: usize,
        weights: Vec<u32>,
        threads: usize,
        backend: &str,
    ) -> PyResult<Self> {
        check(py, &weights)?;
        let choice: BackendChoice = backend.parse().map_err(|error| raised(py, Code::Options, error))?;
        if index >= weights.len() {
            return Err(raised(py, Code::Options, "weights are one number a part"));
        }
        let source = source.source.clone();
        let share = Share { index, weights };
        let opened = interruptible(py, &Cancel::default(), move || {
            let cpu = Arc::new(Cpu::new(threads).map_err(|error| error.to_string())?);
            let backends = Backends::choose(choice, cpu).map_err(|error| error.to_string())?;
            let backends = backends.for_clients(CLIENTS);
            open_part(&source, &share, &backends, &Silent).map_err(|error| error.to_string())
        })?;
        opened.map(Self).map_err(|error| raised(py, Code::Input, error))
    }

    /// Returns the epoch of the table, in hex.
    #[getter]
    fn epoch(&self) -> String {
        hex::encode(self.0.epoch())
    }

    /// Returns the device that has it: cpu, or cuda.
    #[getter]
    fn place(&self) -> String {
        self.0.device().to_string()
    }

    /// Why it answers nothing any more until the process is started again; None as long as all is well.
    #[getter]
    fn lost(&self) -> Option<String> {
        self.0.lost()
    }

    /// Returns the part's reply to a batch.
    fn scan<'py>(&self, py: Python<'py>, batch: PyBackedBytes) -> Bound<'py, PyBytes> {
        let reply = py.detach(|| self.0.scan(Bytes::from_owner(batch)));
        PyBytes::new(py, &reply)
    }
}
