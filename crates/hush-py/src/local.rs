//! A table in a folder of this machine, without a server: the engine and a client of it in one process.

use std::{
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use hush_client::{Acceptance, Found, Table, TableFacts, Wanted};
use hush_cpu::Cpu;
use hush_engine::{Backends, ClientKeys, Engine, Silent};
use hush_protocol::{client::Hint, descriptor::Descriptor};
use hush_store::snapshot::Verify;
use pyo3::prelude::*;
use zeroize::Zeroizing;

use crate::{
    arrow::{self, ArrowStream},
    client::{as_dicts, in_flight},
    error::{Code, CodedError, failed, raised},
    interrupt::{Cancel, interruptible},
    lookup::{self, Form, SoughtRows, wanted},
};

/// A table that is open here. Its queries are encrypted, answered and decrypted as over a network.
#[pyclass(frozen)]
pub(crate) struct LocalTable(Arc<Open>);

struct Open {
    engine: Arc<dyn Engine>,
    client: Table,
    keys: Option<ClientKeys>,
    /// Look-ups of several threads come one after another.
    turn: Mutex<()>,
}

impl Open {
    fn at(path: PathBuf, threads: usize) -> Result<Self, CodedError> {
        let cpu = Cpu::new(threads).map_err(failed(Code::ClientFailed))?;
        let backends = Backends::cpu_only(Arc::new(cpu));
        let engine = hush_engine::open(&path, Verify::Full, &backends, &Silent);
        let engine = engine.map_err(failed(Code::Input))?;
        let served = engine.served();
        let mut blobs = Vec::new();
        for blob in &served.blobs {
            let mut content = vec![0; blob.bytes as usize];
            blob.file.read_exact_at(&mut content, 0).map_err(failed(Code::Input))?;
            blobs.push(Arc::new(content) as Hint);
        }
        let descriptor = Descriptor::from_json(&served.descriptor_json).map_err(failed(Code::Input))?;
        let mut client = Table::new(descriptor, blobs, &Acceptance::default())
            .map_err(|error| (error.code(), error.to_string()))?;
        client.use_stored_form(true);
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *seed).map_err(failed(Code::NoRandomness))?;
        client.use_keys(&seed).map_err(failed(Code::ClientFailed))?;
        let keys = client.key_upload().map(|(_, body)| engine.open_keys(&body)).transpose();
        let keys = keys.map_err(failed(Code::ClientFailed))?;
        Ok(Self { engine, client, keys, turn: Mutex::default() })
    }

    fn look_up(
        &self,
        wanted: &[Wanted],
        max_in_flight: Option<usize>,
        cancel: &Cancel,
    ) -> Result<Vec<Found>, CodedError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |error: hush_client::ClientError| (error.code(), error.to_string());
        let mut found = Vec::with_capacity(wanted.len());
        let most = self.engine.served().max_batch;
        for batch in wanted.chunks(max_in_flight.map_or(most, |asked| asked.min(most))) {
            if cancel.calls.is_cancelled() {
                return Err((Code::Aborted, "the call was given up".into()));
            }
            let asked = batch.iter().map(|wanted| self.client.query(wanted)).collect::<Result<Vec<_>, _>>();
            let (queries, pending): (Vec<_>, Vec<_>) = asked.map_err(refused)?.into_iter().unzip();
            let keys = vec![self.keys.clone(); queries.len()];
            let answers = self.engine.answer(&queries, &keys);
            let answers = answers.map_err(failed(Code::ClientFailed))?;
            for (pending, answer) in pending.iter().zip(answers) {
                found.push(self.client.decode(pending, &answer).map_err(refused)?);
            }
        }
        Ok(found)
    }
}

impl LocalTable {
    fn look_up(
        &self,
        py: Python<'_>,
        wanted: Vec<Wanted>,
        max_in_flight: Option<usize>,
        cancel: &Cancel,
    ) -> PyResult<Vec<Found>> {
        let open = self.0.clone();
        let own = cancel.clone();
        let most = in_flight(py, max_in_flight)?;
        let found = interruptible(py, cancel, move || open.look_up(&wanted, most, &own))?;
        found.map_err(|(code, error)| raised(py, code, error))
    }
}

#[pymethods]
impl LocalTable {
    #[new]
    #[pyo3(signature = (path, threads, cancel=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        threads: usize,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Self> {
        let open = interruptible(py, &Cancel::of(cancel), move || Open::at(path, threads))?;
        let open = open.map_err(|(code, error)| raised(py, code, error))?;
        Ok(Self(Arc::new(open)))
    }

    #[pyo3(signature = (keys, max_in_flight=None, cancel=None, rows=None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Bound<'py, PyAny>>,
        max_in_flight: Option<usize>,
        cancel: Option<&Bound<'py, Cancel>>,
        rows: Option<&str>,
    ) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let rows = SoughtRows::of(py, rows)?;
        let form = Form::of(&self.0.client);
        let keys = wanted(py, &keys, &rows, &form)?;
        let found = self.look_up(py, keys, max_in_flight, &Cancel::of(cancel))?;
        lookup::found(py, found, &rows, &form)
    }

    /// Returns the name of the only column of the key, if there is one.
    fn key_name(&self) -> Option<String> {
        Form::of(&self.0.client).key_name()
    }

    /// Returns the records of the keys in the columns of a stream of Arrow.
    #[pyo3(signature = (frame, text, max_in_flight=None, cancel=None))]
    fn lookup(
        &self,
        py: Python<'_>,
        frame: &Bound<'_, PyAny>,
        text: bool,
        max_in_flight: Option<usize>,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<ArrowStream> {
        let form = Form::of(&self.0.client);
        let cancel = Cancel::of(cancel);
        arrow::look_up(py, frame, &form, text, |keys| {
            Ok((self.look_up(py, keys, max_in_flight, &cancel)?, form.clone()))
        })
    }

    /// Returns the names of the columns of values that have several.
    fn fields(&self) -> Option<Vec<String>> {
        Form::of(&self.0.client).fields()
    }

    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        as_dicts(py, &TableFacts::from(&self.0.client))
    }
}
