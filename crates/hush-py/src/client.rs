//! A server over HTTP, and its tables.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hush_client::{
    Acceptance, Found, Trust, Wanted,
    http::{
        BearerToken, Event, HintCache, HttpClient, HttpError, HttpOptions, HttpTable, RelayOptions,
        TlsIdentity, TlsOptions,
    },
    parse_epoch,
};
use hush_protocol::descriptor::Lookup;
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};
use zeroize::Zeroizing;

use crate::{
    arrow::{self, ArrowStream},
    error::{Kind, of_client},
    interrupt::interruptible,
    lookup::{found, wanted},
};

/// A server.
#[pyclass(frozen)]
pub(crate) struct Client(Arc<HttpClient>);

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (
        url, *, token=None, timeout=None, ca_cert=None, client_cert=None, client_key=None, insecure=false, relay=None,
        ohttp_keys=None, cache=None, no_cache=false, trust=None, epoch=None, allow_weak=None, max_hint=None,
        lookups_per_key=None, on_progress=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        url: String,
        token: Option<String>,
        timeout: Option<f64>,
        ca_cert: Option<PathBuf>,
        client_cert: Option<PathBuf>,
        client_key: Option<PathBuf>,
        insecure: bool,
        relay: Option<String>,
        ohttp_keys: Option<PathBuf>,
        cache: Option<PathBuf>,
        no_cache: bool,
        trust: Option<String>,
        epoch: Option<String>,
        allow_weak: Option<String>,
        max_hint: Option<u64>,
        lookups_per_key: Option<u32>,
        on_progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let refused = |reason: String| Kind::Option.raised(py, reason);
        let file = |path: PathBuf| {
            std::fs::read(&path).map_err(|error| refused(format!("cannot read {}: {error}", path.display())))
        };
        let identity = match (client_cert, client_key) {
            (Some(cert), Some(key)) => {
                Some(TlsIdentity { cert: file(cert)?, key: Zeroizing::new(file(key)?) })
            }
            (None, None) => None,
            _ => return Err(refused("client_cert and client_key go together".into())),
        };
        let token = token.map(Zeroizing::new).map(|text| text.parse::<BearerToken>()).transpose();
        let mut options = HttpOptions {
            cache: match cache {
                _ if no_cache => HintCache::Off,
                Some(folder) => HintCache::Directory(folder),
                None => HintCache::User,
            },
            acceptance: Acceptance {
                weak_preset: allow_weak,
                epoch: epoch
                    .map(|hex| parse_epoch(&hex))
                    .transpose()
                    .map_err(|reason| refused(reason.into()))?,
                trust: trust
                    .map(|text| text.parse::<Trust>())
                    .transpose()
                    .map_err(|error| refused(error.to_string()))?,
            },
            token: token.map_err(|error| refused(error.into()))?,
            tls: TlsOptions { ca_cert: ca_cert.map(file).transpose()?, identity, is_insecure: insecure },
            relay: relay
                .map(|url| Ok::<_, PyErr>(RelayOptions { url, keys: ohttp_keys.map(file).transpose()? }))
                .transpose()?,
            ..HttpOptions::default()
        };
        if let Some(seconds) = timeout {
            let limit = Duration::try_from_secs_f64(seconds).ok().filter(|limit| !limit.is_zero());
            let limit = limit.ok_or_else(|| refused("timeout is a number of seconds above 0".into()))?;
            (options.connect_timeout, options.silence_timeout) = (limit, limit);
        }
        if let Some(bytes) = max_hint {
            options.max_hint_bytes = bytes;
        }
        if let Some(lookups) = lookups_per_key {
            options.lookups_per_key = lookups;
        }
        if let Some(callback) = on_progress {
            options.observer = Arc::new(move |event| tell(&callback, event));
        }
        let connected = interruptible(py, move || HttpClient::connect(&url, options), || ())?;
        connected.map(|client| Self(client.into())).map_err(|error| of_client(py, &error))
    }

    /// Name, state, protocol and number of records of every table.
    fn tables(&self) -> Vec<(String, String, Option<String>, Option<u64>)> {
        let tables = self.0.tables().iter();
        tables
            .map(|table| (table.name.clone(), table.state.clone(), table.protocol.clone(), table.records))
            .collect()
    }

    #[pyo3(signature = (name=None))]
    fn table(&self, py: Python<'_>, name: Option<String>) -> PyResult<RemoteTable> {
        let client = self.0.clone();
        let opened = interruptible(py, move || client.open(name.as_deref()), || ())?;
        opened.map(|table| RemoteTable(Arc::new(Mutex::new(table)))).map_err(|error| of_client(py, &error))
    }
}

/// A table of a server. Look-ups of several threads come one after another.
#[pyclass(frozen)]
pub(crate) struct RemoteTable(Arc<Mutex<HttpTable>>);

impl RemoteTable {
    /// Reads something of it, once no look-up is under way.
    fn with<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&HttpTable) -> T + Send) -> T {
        py.detach(|| read(&self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn look_up(&self, py: Python<'_>, wanted: Vec<Wanted>) -> PyResult<Vec<Found>> {
        let table = self.0.clone();
        let look_up = move || table.lock().unwrap_or_else(PoisonError::into_inner).lookup(&wanted);
        let found: Result<_, HttpError> = interruptible(py, look_up, || ())?;
        found.map_err(|error| of_client(py, &error))
    }
}

#[pymethods]
impl RemoteTable {
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let keys = keys.iter().map(wanted).collect::<PyResult<_>>()?;
        Ok(found(py, self.look_up(py, keys)?))
    }

    /// The records of the keys in the columns of a stream of Arrow.
    fn lookup(&self, py: Python<'_>, frame: &Bound<'_, PyAny>, text: bool) -> PyResult<ArrowStream> {
        let fields = self.fields(py);
        arrow::look_up(py, frame, fields.as_deref(), text, |keys| self.look_up(py, keys))
    }

    fn name(&self, py: Python<'_>) -> String {
        self.with(py, |table| table.name().to_owned())
    }

    /// The names of the columns of values that have several.
    fn fields(&self, py: Python<'_>) -> Option<Vec<String>> {
        self.with(py, |table| fields(table.table()))
    }

    fn facts(&self, py: Python<'_>) -> Facts {
        self.with(py, |table| Facts::of(table.table()))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.with(py, |table| *table.stats());
        let told = PyDict::new(py);
        for (name, value) in [
            ("queries", stats.queries),
            ("answers", stats.answers),
            ("bytes_up", stats.bytes_up),
            ("bytes_down", stats.bytes_down),
            ("query_bytes", stats.query_bytes()),
            ("answer_bytes", stats.answer_bytes()),
            ("key_bytes_up", stats.key_bytes_up),
            ("setup_bytes_up", stats.setup_bytes_up),
            ("setup_bytes_down", stats.setup_bytes_down),
        ] {
            told.set_item(name, value)?;
        }
        let seconds = PyDict::new(py);
        for (name, value) in [
            ("descriptor", stats.seconds.descriptor),
            ("hint", stats.seconds.hint),
            ("keys", stats.seconds.keys),
            ("encrypt", stats.seconds.encrypt),
            ("network", stats.seconds.network),
            ("decode", stats.seconds.decode),
        ] {
            seconds.set_item(name, value)?;
        }
        told.set_item("seconds", seconds)?;
        Ok(told)
    }
}

/// What a table says of itself.
#[derive(IntoPyObject)]
pub(crate) struct Facts {
    protocol: String,
    parameter_set: String,
    security_bits: f64,
    records: u64,
    epoch: String,
    by_key: bool,
    hint_bytes: u64,
}

impl Facts {
    pub(crate) fn of(table: &hush_client::Table) -> Self {
        let (facts, descriptor) = (table.facts(), table.descriptor());
        Self {
            protocol: facts.protocol.name().into(),
            parameter_set: facts.preset.into(),
            security_bits: facts.security_bits,
            records: descriptor.records,
            epoch: hex::encode(descriptor.epoch),
            by_key: matches!(descriptor.lookup, Lookup::Key(_)),
            hint_bytes: facts.hint_bytes,
        }
    }
}

/// The names of the columns of values that have several.
pub(crate) fn fields(table: &hush_client::Table) -> Option<Vec<String>> {
    Some(table.descriptor().fields.as_ref()?.names().to_vec())
}

/// Tells a callback: what is done, how much of it, and of how much.
fn tell(callback: &Py<PyAny>, event: &Event<'_>) {
    let (what, done, total) = match *event {
        Event::HintStart { bytes, present } => ("hint", present, Some(bytes)),
        Event::HintProgress { present } => ("hint", present, None),
        Event::HintEnd => ("hint ready", 0, None),
        Event::HintLocked => ("hint locked", 0, None),
        Event::KeysUpload { bytes } => ("keys", 0, Some(bytes)),
        Event::Retry { wait, .. } => ("retry", wait.as_millis() as u64, None),
    };
    Python::attach(|py| {
        if let Err(error) = callback.call1(py, (what, done, total)) {
            error.write_unraisable(py, Some(callback.bind(py)));
        }
    });
}
