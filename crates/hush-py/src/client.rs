//! A server over HTTP, and its tables.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hush_client::{
    Acceptance, Found, Trust, Wanted,
    http::{
        BearerToken, CallOptions, Event, HintCache, HttpClient, HttpError, HttpOptions, HttpTable,
        RelayOptions, RetryPolicy, Stats, TlsIdentity, TlsOptions,
    },
    parse_epoch,
};
use hush_protocol::descriptor::Lookup;
use pyo3::{prelude::*, types::PyDict};
use zeroize::Zeroizing;

use crate::{
    arrow::{self, ArrowStream},
    error::{Kind, of_client},
    interrupt::{Cancel, interruptible},
    lookup::{self, Form, wanted},
};

/// A server.
#[pyclass(frozen)]
pub(crate) struct Client(Arc<HttpClient>);

/// Sets how long a request may take, and how often it is made.
fn set_patience(
    options: &mut HttpOptions,
    timeout: Option<f64>,
    attempts: Option<u32>,
) -> Result<(), &'static str> {
    if let Some(seconds) = timeout {
        let limit = Duration::try_from_secs_f64(seconds).ok().filter(|limit| !limit.is_zero());
        options.timeout = Some(limit.ok_or("timeout is a number of seconds above 0")?);
    }
    match attempts {
        Some(0) => return Err("attempts is a number of at least 1"),
        Some(attempts) => options.retry = RetryPolicy { attempts, ..options.retry },
        None => {}
    }
    Ok(())
}

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
            stored_form: true,
            ..HttpOptions::default()
        };
        set_patience(&mut options, timeout, attempts).map_err(|reason| refused(reason.into()))?;
        if let Some(bytes) = max_hint {
            options.max_hint_bytes = bytes;
        }
        if let Some(lookups) = lookups_per_key {
            options.lookups_per_key = lookups;
        }
        if let Some(callback) = on_progress {
            let teller = Teller { callback, hint_bytes: Mutex::default() };
            options.observer = Arc::new(move |event| teller.tell(event));
        }
        let cancel = Cancel::of(cancel);
        let calls = cancel.calls.clone();
        let connect = move || HttpClient::connect_unless(&calls, &url, options);
        let connected = interruptible(py, &cancel, connect)?;
        connected.map(|client| Self(client.into())).map_err(|error| of_client(py, &error))
    }

    /// Name, state, protocol and number of records of every table.
    fn tables(&self) -> Vec<(String, String, Option<String>, Option<u64>)> {
        let tables = self.0.tables().iter();
        tables
            .map(|table| (table.name.clone(), table.state.clone(), table.protocol.clone(), table.records))
            .collect()
    }

    #[pyo3(signature = (name=None, cancel=None))]
    fn table(
        &self,
        py: Python<'_>,
        name: Option<String>,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<RemoteTable> {
        let (client, cancel) = (self.0.clone(), Cancel::of(cancel));
        let calls = cancel.calls.clone();
        let opened = interruptible(py, &cancel, move || client.open_unless(&calls, name.as_deref()))?;
        opened.map(RemoteTable::new).map_err(|error| of_client(py, &error))
    }
}

/// A table of a server. Look-ups of several threads come one after another.
#[pyclass(frozen)]
pub(crate) struct RemoteTable {
    name: String,
    open: Arc<Open>,
}

/// What look-ups share.
struct Open {
    table: Mutex<HttpTable>,
    /// What is told of it, so that who asks for that does not wait for a look-up.
    told: Mutex<Told>,
}

#[derive(Clone)]
struct Told {
    facts: Facts,
    form: Form,
    stats: Stats,
}

impl Told {
    fn of(table: &HttpTable) -> Self {
        let open = table.table();
        Self { facts: Facts::of(open), form: Form::of(open), stats: *table.stats() }
    }
}

/// A look-up that failed leaves nothing behind that the next one could not begin with.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Open {
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
        let (name, told) = (table.name().to_owned(), Mutex::new(Told::of(&table)));
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
        found.map_err(|error| of_client(py, &error))
    }
}

/// Returns a number of look-ups that may be under way, and refuses none.
pub(crate) fn in_flight(py: Python<'_>, most: Option<usize>) -> PyResult<Option<usize>> {
    match most {
        Some(0) => Err(Kind::Option.raised(py, "max_in_flight is a number of at least 1")),
        most => Ok(most),
    }
}

#[pymethods]
impl RemoteTable {
    #[pyo3(signature = (keys, max_in_flight=None, cancel=None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Bound<'py, PyAny>>,
        max_in_flight: Option<usize>,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let keys = wanted(py, &keys, &self.told().form)?;
        let (found, form) = self.look_up(py, keys, max_in_flight, &Cancel::of(cancel))?;
        lookup::found(py, found, &form)
    }

    /// The name of the only column of the key, if there is one.
    fn key_name(&self) -> Option<String> {
        self.told().form.key_name()
    }

    /// The records of the keys in the columns of a stream of Arrow.
    #[pyo3(signature = (frame, text, max_in_flight=None, cancel=None))]
    fn lookup(
        &self,
        py: Python<'_>,
        frame: &Bound<'_, PyAny>,
        text: bool,
        max_in_flight: Option<usize>,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<ArrowStream> {
        let (form, cancel) = (self.told().form, Cancel::of(cancel));
        arrow::look_up(py, frame, &form, text, |keys| self.look_up(py, keys, max_in_flight, &cancel))
    }

    fn name(&self) -> &str {
        &self.name
    }

    /// The names of the columns of values that have several.
    fn fields(&self) -> Option<Vec<String>> {
        self.told().form.fields()
    }

    fn facts(&self) -> Facts {
        self.told().facts
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.told().stats;
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
#[derive(Clone, IntoPyObject)]
pub(crate) struct Facts {
    protocol: String,
    parameter_set: String,
    security_bits: f64,
    records: u64,
    epoch: String,
    by_key: bool,
    query_bytes: u64,
    answer_bytes: u64,
    hint_bytes: u64,
    key_bytes: u64,
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
            query_bytes: facts.query.total() as u64,
            answer_bytes: facts.answer_bytes as u64,
            hint_bytes: descriptor.hint_bytes(),
            key_bytes: facts.key_bytes as u64,
        }
    }
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
