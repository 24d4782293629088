//! One part of a table, in a process that has no other.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use hush_cpu::Cpu;
use hush_engine::parts::{PartEngine, Share, open_part};
use hush_store::snapshot::Verify;
use pyo3::{prelude::*, pybacked::PyBackedBytes, types::PyBytes};

use crate::{error::Kind, interrupt::interruptible};

/// Clients whose evaluation keys a part has ready at most: as many as a server has, unless told.
const CLIENTS: usize = 256;

/// How much of a table is checked.
pub(crate) fn verify(whole: bool) -> Verify {
    if whole { Verify::Full } else { Verify::Header }
}

/// A part that is ready to scan.
#[pyclass(frozen)]
pub(crate) struct Part(Arc<dyn PartEngine>);

#[pymethods]
impl Part {
    /// Opens the part `index` of the table in a folder, of as many as there are weights.
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        index: usize,
        weights: Vec<u32>,
        threads: usize,
        whole: bool,
    ) -> PyResult<Self> {
        if index >= weights.len() || weights.iter().all(|&weight| weight == 0) {
            return Err(Kind::Option.raised(py, "weights are one number a part, and not all 0"));
        }
        let share = Share { index, weights };
        let open = move || {
            let cpu = Arc::new(Cpu::new(threads).map_err(|error| error.to_string())?);
            open_part(&path, verify(whole), &share, cpu, CLIENTS).map_err(|error| error.to_string())
        };
        let opened = interruptible(py, open, || ())?;
        opened.map(Self).map_err(|error| Kind::Input.raised(py, error))
    }

    /// The epoch of the table, in hex.
    #[getter]
    fn epoch(&self) -> String {
        hex::encode(self.0.epoch())
    }

    /// What the part says to a batch.
    fn scan<'py>(&self, py: Python<'py>, batch: PyBackedBytes) -> Bound<'py, PyBytes> {
        let reply = py.detach(|| self.0.scan(Bytes::from_owner(batch)));
        PyBytes::new(py, &reply)
    }
}
