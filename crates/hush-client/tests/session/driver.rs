//! A driver without sockets, and a host in memory with a clock of its own.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use hush_client::session::{
    Action, CacheError, CachedHint, Event, Head, Host, KeptKeys, KeyNote, KeyRequest, Need, Server,
    ServerUrl, SessionError, SessionOptions, Task, TransportFailure,
};
use hush_protocol::descriptor::BlobRef;

use super::{
    kept_hints::KeptHints,
    message::{Reply, Request},
};

pub(crate) const URL: &str = "http://Localhost:7700/";
/// Bytes of a body that the session takes at once.
const PART_BYTES: usize = 1000;

type Serve = Box<dyn FnMut(&Request) -> Result<Reply, TransportFailure>>;

/// Answers requests by a script, and notes what it was asked.
pub(crate) struct Driver {
    serve: Serve,
    pub(crate) host: Arc<Memory>,
    pub(crate) options: SessionOptions,
    pub(crate) requests: Vec<Request>,
    pub(crate) waits: Vec<Duration>,
    /// Bytes of the bodies that the session took.
    pub(crate) bytes_read: usize,
}

impl Driver {
    /// Creates a server that always answers.
    pub(crate) fn new(mut serve: impl FnMut(&Request) -> Reply + 'static) -> Self {
        Self::failing(move |request| Ok(serve(request)))
    }

    /// Returns a server that may be out of reach.
    pub(crate) fn failing(serve: impl FnMut(&Request) -> Result<Reply, TransportFailure> + 'static) -> Self {
        Self {
            serve: Box::new(serve),
            host: Arc::default(),
            options: SessionOptions::default(),
            requests: Vec::new(),
            waits: Vec::new(),
            bytes_read: 0,
        }
    }

    pub(crate) fn connect(&self) -> Task<'static, Result<Server, SessionError>> {
        Server::connect(ServerUrl::parse(URL).unwrap(), self.options.clone(), self.host.clone())
    }

    pub(crate) fn drive<T>(&mut self, mut task: Task<'_, T>) -> T {
        loop {
            match task.advance() {
                Action::Send(request) => {
                    let limit = request.max_response_bytes;
                    let headers =
                        request.headers.iter().map(|(name, value)| (name.to_string(), value.clone()));
                    self.requests.push(Request {
                        method: request.method.name().into(),
                        path: request.path,
                        headers: headers.collect(),
                        body: request.body,
                    });
                    self.answer(&mut task, limit);
                }
                Action::Wait(wait) => {
                    self.waits.push(wait);
                    self.host.pass(wait);
                }
                Action::Done(result) => return result,
            }
        }
    }

    fn answer<T>(&mut self, task: &mut Task<'_, T>, limit: u64) {
        let reply = match (self.serve)(self.requests.last().unwrap()) {
            Ok(reply) => reply,
            Err(failure) => return task.fail(failure),
        };
        let headers = reply.headers.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let mut more = task.begin(Head { status: reply.status, headers, body_bytes: reply.stated_length });
        let (mut read, end) = (0, reply.cut.unwrap_or(reply.body.len()));
        while more && read < end {
            let part = &reply.body[read..end.min(read + PART_BYTES)];
            more = task.body(part);
            read += part.len();
        }
        self.bytes_read += read;
        assert!(read as u64 <= limit + PART_BYTES as u64, "{read} bytes of at most {limit}");
        match (more, reply.cut) {
            (true, Some(_)) => task.fail(lost()),
            (true, None) => task.end(),
            (false, _) => {}
        }
    }

    /// Returns the requests so far whose path contains `part`.
    pub(crate) fn asked(&self, part: &str) -> Vec<&Request> {
        self.requests.iter().filter(|request| request.path.contains(part)).collect()
    }
}

/// Returns a connection that broke off.
pub(crate) fn lost() -> TransportFailure {
    TransportFailure::Unreachable { reason: "connection reset".into(), transient: true }
}

/// Keeps hints, keys and serials as long as it lives.
#[derive(Default)]
pub(crate) struct Memory {
    now: Mutex<Duration>,
    /// How far the clock goes on whenever it is read.
    tick: Duration,
    hints: KeptHints,
    keys: Mutex<Keys>,
    /// All notes on keys.
    notes: Mutex<Vec<KeyNote>>,
    serials: Mutex<HashMap<String, u64>>,
    events: Mutex<Vec<String>>,
    /// The cache says that it cannot be used.
    broken: bool,
    /// How often it says that it has to look first.
    late: Mutex<u32>,
}

/// By the name of the record.
type Keys = HashMap<String, KeptKeys>;

impl Memory {
    pub(crate) fn broken() -> Self {
        Self { broken: true, ..Self::default() }
    }

    /// Returns a clock that goes on by `tick` whenever it is read.
    pub(crate) fn ticking(tick: Duration) -> Self {
        Self { tick, ..Self::default() }
    }

    /// Returns a host that says so often that it has to look first.
    pub(crate) fn late(times: u32) -> Self {
        Self { late: Mutex::new(times), ..Self::default() }
    }

    pub(crate) fn pass(&self, time: Duration) {
        *self.now.lock().unwrap() += time;
    }

    pub(crate) fn put_hint(&self, blake3: [u8; 32], bytes: &[u8]) {
        self.hints.put(blake3, bytes);
    }

    pub(crate) fn hint(&self, blake3: [u8; 32]) -> Option<Vec<u8>> {
        self.hints.get(blake3)
    }

    /// Returns the names of the records of keys.
    pub(crate) fn key_names(&self) -> Vec<String> {
        self.keys.lock().unwrap().keys().cloned().collect()
    }

    /// Returns all notes on keys.
    pub(crate) fn notes(&self) -> Vec<KeyNote> {
        self.notes.lock().unwrap().clone()
    }

    /// Seconds since 1970.
    fn seconds(&self) -> u64 {
        1_000_000_000 + self.now.lock().unwrap().as_secs()
    }

    pub(crate) fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }

    fn usable(&self) -> Result<(), CacheError> {
        if self.broken { Err("the disk is full of eels".into()) } else { Ok(()) }
    }
}

impl Host for Memory {
    fn now(&self) -> Duration {
        let mut now = self.now.lock().unwrap();
        *now += self.tick;
        *now
    }

    fn date(&self) -> Duration {
        Duration::from_secs(self.seconds())
    }

    fn report(&self, event: &Event<'_>) {
        let text = match event {
            Event::Retry { error, wait } => format!("Retry {error}, {wait:?}"),
            other => format!("{other:?}"),
        };
        self.events.lock().unwrap().push(text);
    }

    fn is_ready(&self, need: &Need<'_>) -> bool {
        let mut late = self.late.lock().unwrap();
        if *late == 0 {
            return true;
        }
        *late -= 1;
        let needed = match need {
            Need::Hint(blob) => format!("needs {}", hex::encode(blob.blake3)),
            Need::Keys(request) => format!("needs {}", request.name),
            Need::Serial { serial, .. } => format!("needs serials before {serial}"),
        };
        self.events.lock().unwrap().push(needed);
        false
    }

    fn hint(&self, blob: &BlobRef) -> Result<CachedHint, CacheError> {
        assert_eq!(*self.late.lock().unwrap(), 0, "not before it is ready");
        self.usable()?;
        Ok(self.hints.cached(blob))
    }

    fn keys(&self, request: &KeyRequest) -> Result<KeptKeys, CacheError> {
        assert_eq!(*self.late.lock().unwrap(), 0, "not before it is ready");
        self.usable()?;
        let mut all = self.keys.lock().unwrap();
        let drawn = KeptKeys::draw(all.remove(&request.name), request, self.seconds());
        all.insert(request.name.clone(), drawn.clone());
        Ok(drawn)
    }

    fn note(&self, name: &str, keys: &KeptKeys, note: KeyNote) -> Result<(), CacheError> {
        self.notes.lock().unwrap().push(note);
        if let Some(kept) = self.keys.lock().unwrap().get_mut(name) {
            kept.note(keys, note);
        }
        Ok(())
    }

    fn newest_serial(&self, publication: &str, serial: u64) -> Result<u64, CacheError> {
        assert_eq!(*self.late.lock().unwrap(), 0, "not before it is ready");
        self.usable()?;
        let mut serials = self.serials.lock().unwrap();
        let newest = serials.entry(publication.to_owned()).or_default();
        *newest = serial.max(*newest);
        Ok(*newest)
    }
}
