//! A server over HTTP, and its tables.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hush_client::{
    Choices, Found, TableFacts, Wanted,
    http::{
        CallOptions, Event, HintCache, HttpClient, HttpError, HttpOptions, HttpTable, Stats, TlsIdentity,
        TlsOptions,
    },
};
use pyo3::prelude::*;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::{
    arrow::{self, ArrowStream},
    error::{Code, raised},
    interrupt::{Cancel, interruptible},
    lookup::{self, Form, SoughtRows, wanted},
};

/// A server.
#[pyclass(frozen)]
pub(crate) struct Client(Arc<HttpClient>);

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (
        url, *, token=None, timeout=None, attempts=None, ca_cert=None, client_cert=None, client_key=None, insecure=false, relay=None,
        ohttp_keys=None, cache=None, no_cache=false, trust=None, epoch=None, allow_weak=None, max_hint=None,
        lookups_per_key=None, on_progress=None, cancel=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        url: String,
        token: Option<String>,
        timeout: Option<f64>,
        attempts: Option<u32>,
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
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Self> {
        let refused = |reason: String| raised(py, Code::Options, reason);
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
        let choices = Choices {
            token: token.map(Zeroizing::new),
            timeout: timeout
                .map(|seconds| {
                    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
                    time.ok_or_else(|| refused("timeout is a number of seconds above 0".into()))
                })
                .transpose()?,
            attempts,
            ohttp_keys: relay.as_ref().and(ohttp_keys).map(file).transpose()?,
            relay,
            trust,
            epoch,
            allow_weak,
            max_hint,
            max_queries: None,
            lookups_per_key,
        };
        let mut options = HttpOptions {
            cache: match cache {
                _ if no_cache => HintCache::Off,
                Some(folder) => HintCache::Directory(folder),
                None => HintCache::User,
            },
            tls: TlsOptions { ca_cert: ca_cert.map(file).transpose()?, identity, is_insecure: insecure },
            stored_form: true,
            ..HttpOptions::of(&choices).map_err(|reason| refused(reason.into()))?
        };
        if let Some(callback) = on_progress {
            let teller = Teller { callback, hint_bytes: Mutex::default() };
            options.observer = Arc::new(move |event| teller.tell(event));
        }
        let cancel = Cancel::of(cancel);
        let calls = cancel.calls.clone();
        let connected =
            interruptible(py, &cancel, move || HttpClient::connect_unless(&calls, &url, options))?;
        connected.map(|client| Self(client.into())).map_err(|error| raised(py, error.code(), error))
    }

    /// Name, state, protocol and number of records of every table.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        as_dicts(py, &self.0.tables())
    }

    #[pyo3(signature = (name=None, cancel=None))]
    fn table(
        &self,
        py: Python<'_>,
        name: Option<String>,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<RemoteTable> {
        let client = self.0.clone();
        let cancel = Cancel::of(cancel);
        let calls = cancel.calls.clone();
        let opened = interruptible(py, &cancel, move || client.open_unless(&calls, name.as_deref()))?;
        opened.map(RemoteTable::new).map_err(|error| raised(py, error.code(), error))
    }
}

/// A table of a server. Look-ups of several threads come one after another.
#[pyclass(frozen)]
pub(crate) struct RemoteTable {
    name: String,
    open: Arc<Open>,
}

/// The state that look-ups share.
struct Open {
    table: Mutex<HttpTable>,
    /// The facts and stats, apart, so that a caller who asks for them does not wait for a look-up.
    told: Mutex<Told>,
}

#[derive(Clone)]
struct Told {
    facts: TableFacts,
    form: Form,
    stats: Stats,
}

impl Told {
    fn of(table: &HttpTable) -> Self {
        let open = table.table();
        Self { facts: open.into(), form: Form::of(open), stats: table.stats() }
    }
}

/// Returns a look-up that failed leaves nothing behind that the next one could not begin with.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Open {
    fn prepare(&self, count: usize) -> Result<usize, HttpError> {
        let mut table = held(&self.table);
        let ready = table.prepare(count);
        *held(&self.told) = Told::of(&table);
        ready
    }

    fn look_up(&self, wanted: &[Wanted], options: &CallOptions) -> Result<(Vec<Found>, Form), HttpError> {
        let mut table = held(&self.table);
        let found = table.lookup_with(wanted, options);
        let told = Told::of(&table);
        let form = told.form.clone();
        *held(&self.told) = told;
        Ok((found?, form))
    }
}

impl RemoteTable {
    fn new(table: HttpTable) -> Self {
        let name = table.name().to_owned();
        let told = Mutex::new(Told::of(&table));
        Self { name, open: Arc::new(Open { table: Mutex::new(table), told }) }
    }

    fn told(&self) -> Told {
        held(&self.open.told).clone()
    }

    fn look_up(
        &self,
        py: Python<'_>,
        wanted: Vec<Wanted>,
        max_in_flight: Option<usize>,
        cancel: &Cancel,
    ) -> PyResult<(Vec<Found>, Form)> {
        let options =
            CallOptions { cancel: cancel.calls.clone(), max_queries: in_flight(py, max_in_flight)? };
        let open = self.open.clone();
        let found = interruptible(py, cancel, move || open.look_up(&wanted, &options))?;
        found.map_err(|error| raised(py, error.code(), error))
    }
}

/// Returns a number of look-ups that may be under way, and refuses none.
pub(crate) fn in_flight(py: Python<'_>, most: Option<usize>) -> PyResult<Option<usize>> {
    match most {
        Some(0) => Err(raised(py, Code::Options, "max_in_flight is a number of at least 1")),
        most => Ok(most),
    }
}

#[pymethods]
impl RemoteTable {
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
        let keys = wanted(py, &keys, &rows, &self.told().form)?;
        let (found, form) = self.look_up(py, keys, max_in_flight, &Cancel::of(cancel))?;
        lookup::found(py, found, &rows, &form)
    }

    /// Prepares queries. Returns how many are ready.
    fn prepare(&self, py: Python<'_>, count: i64) -> PyResult<usize> {
        let count = usize::try_from(count);
        let count = count.map_err(|_| raised(py, Code::Options, "prepare takes a number of at least 0"))?;
        let open = self.open.clone();
        let ready = interruptible(py, &Cancel::of(None), move || open.prepare(count))?;
        ready.map_err(|error| raised(py, error.code(), error))
    }

    /// Returns the name of the only column of the key, if there is one.
    fn key_name(&self) -> Option<String> {
        self.told().form.key_name()
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
        let form = self.told().form;
        let cancel = Cancel::of(cancel);
        arrow::look_up(py, frame, &form, text, |keys| self.look_up(py, keys, max_in_flight, &cancel))
    }

    fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names of the columns of values that have several.
    fn fields(&self) -> Option<Vec<String>> {
        self.told().form.fields()
    }

    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        as_dicts(py, &self.told().facts)
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        as_dicts(py, &self.told().stats)
    }
}

/// Returns a structure as a dict, and several as a list of these.
pub(crate) fn as_dicts<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(value).map_err(|error| raised(py, Code::ClientFailed, error))?;
    py.import("json")?.call_method1("loads", (text,))
}

/// Tells a callback what happens: a stage, how much of it is done, of how much, and what is counted; a note has no unit.
struct Teller {
    callback: Py<PyAny>,
    /// Bytes of the hint that is downloaded.
    hint_bytes: Mutex<Option<u64>>,
}

impl Teller {
    fn tell(&self, event: &Event<'_>) {
        let mut hint_bytes = held(&self.hint_bytes);
        let (stage, done, total, unit) = match *event {
            Event::HintStart { bytes, present } => {
                *hint_bytes = Some(bytes);
                ("hint".into(), present, Some(bytes), "bytes")
            }
            Event::HintProgress { present } => ("hint".into(), present, *hint_bytes, "bytes"),
            Event::HintEnd => ("hint".into(), hint_bytes.unwrap_or_default(), *hint_bytes, "bytes"),
            Event::HintLocked => ("another process downloads the same hint".into(), 0, None, "note"),
            Event::KeysUpload { bytes } => ("keys".into(), 0, Some(bytes), "bytes"),
            Event::Retry { error, wait } => (format!("again in {wait:?}: {error}"), 0, None, "note"),
        };
        drop(hint_bytes);
        told(&self.callback, (stage, done, total, unit));
    }
}

/// Calls a callback. What it raises is printed.
pub(crate) fn told(callback: &Py<PyAny>, what: (String, u64, Option<u64>, &'static str)) {
    Python::attach(|py| {
        if let Err(error) = callback.call1(py, what) {
            error.write_unraisable(py, Some(callback.bind(py)));
        }
    });
}
