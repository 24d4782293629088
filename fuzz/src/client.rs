//! Servers that answer anything, and files in a client's cache that anyone has written to.

use std::{
    fs,
    io::{Seek, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use hush_client::{
    Acceptance, Wanted,
    http::{FileHost, HintCache},
    session::{
        Action, CacheError, CachedHint, CheckedHint, Event, Head, Hint, Host, KeptKeys, KeyNote, KeyRequest,
        PartialHint, Request, Server, ServerUrl, SessionError, SessionOptions, Task, TransportFailure,
    },
};
use hush_protocol::{
    Protocol,
    descriptor::{BlobRef, Descriptor, Lookup},
    wire::{self, Answer, QueryRequest, QueryResponse},
};
use prost::Message;
use tempfile::TempDir;

use crate::{
    allocation::{FIXED, bounded},
    input::Input,
    on_one_thread, place, sample,
};

const URL: &str = "http://localhost:7700";
/// The statuses of replies, by a byte of an input.
pub const STATUS: [u16; 16] =
    [200, 410, 503, 429, 404, 428, 416, 206, 400, 204, 301, 302, 500, 415, 100, 999];

/// A reply.
struct Reply {
    head: Head,
    body: Vec<u8>,
    /// Whether the connection breaks off behind the body.
    is_cut: bool,
}

impl Reply {
    fn ok(body: Vec<u8>) -> Self {
        Self { head: Head { status: 200, ..Head::default() }, body, is_cut: false }
    }

    /// Status and headers as the input says, then the body.
    fn of<'a>(input: &mut Input<'a>, body: impl FnOnce(&mut Input<'a>) -> &'a [u8]) -> Self {
        const NAMES: [&str; 4] = ["Retry-After", "location", "Content-Range", "content-type"];
        let (status, what) = (STATUS[usize::from(input.byte() % 16)], input.byte());
        let mut headers = Vec::new();
        for name in NAMES.iter().take(usize::from(what & 3)) {
            headers.push((name.to_string(), String::from_utf8_lossy(input.piece()).into_owned()));
        }
        let body = body(input).to_vec();
        let body_bytes = match what >> 2 & 3 {
            0 => None,
            1 => Some(body.len() as u64),
            2 => Some(body.len() as u64 / 2),
            _ => Some(u64::MAX),
        };
        Self { head: Head { status, headers, body_bytes }, body, is_cut: what & 0x40 != 0 }
    }
}

/// Reads the refusal of a server.
pub fn problem(bytes: &[u8]) {
    static HOST: LazyLock<Arc<Memory>> = LazyLock::new(Arc::default);
    let mut input = Input::new(bytes);
    let mut reply = Some(Reply::of(&mut input, Input::rest));
    let outcome = bounded(FIXED + 64 * bytes.len(), || {
        let connecting = Server::connect(ServerUrl::parse(URL).unwrap(), options(), HOST.clone());
        drive(connecting, |_| reply.take())
    });
    match outcome {
        Ok(server) => server.tables().iter().for_each(|table| check_name(&table.name)),
        Err(error) => check_message(&error),
    }
}

/// A whole session: tables, a descriptor, a hint, look-ups. Every reply is right, spoilt, or made up.
pub fn session(bytes: &[u8]) {
    on_one_thread();
    static TABLE: LazyLock<Descriptor> =
        LazyLock::new(|| sample::descriptor(Protocol::Simple, Lookup::Index));
    let mut input = Input::new(bytes);
    let host = Arc::new(Memory::default());
    if input.byte() & 1 == 1 {
        // Some of the hint was downloaded before, or something else.
        *host.hint.lock().unwrap() = input.piece().to_vec();
    }
    let mut requests = 0;
    let mut serve = |request: Request| {
        requests += 1;
        assert!(requests < 100, "a server's answers keep a client busy");
        let kind = input.byte();
        match kind % 8 {
            1 => Some(Reply::of(&mut input, Input::piece)),
            2 => None,
            3 => {
                let mut reply = right(&TABLE, &request);
                let at = usize::from(input.word()) % reply.body.len().max(1);
                reply.body.iter_mut().skip(at).zip(input.piece()).for_each(|(byte, spoilt)| *byte ^= spoilt);
                Some(reply)
            }
            4 => {
                let mut reply = right(&TABLE, &request);
                reply.body.truncate(usize::from(input.word()));
                Some(Reply { is_cut: kind & 8 == 0, ..reply })
            }
            _ => Some(right(&TABLE, &request)),
        }
    };
    let limit = FIXED + 64 * bytes.len();
    let outcome = bounded(limit, || -> Result<(), SessionError> {
        let connecting = Server::connect(ServerUrl::parse(URL).unwrap(), options(), host.clone());
        let server = drive(connecting, &mut serve)?;
        server.tables().iter().for_each(|table| check_name(&table.name));
        let mut session = drive(server.open(None), &mut serve)?;
        let wanted = [Wanted::Index(0), Wanted::Index(23)];
        let found = drive(session.look_up(&wanted), &mut serve)?;
        assert_eq!(found.len(), wanted.len());
        Ok(())
    });
    if let Err(error) = outcome {
        check_message(&error);
    }
}

fn options() -> SessionOptions {
    SessionOptions {
        acceptance: Acceptance::of_weak("INSECURE_PLAIN"),
        max_hint_bytes: 1 << 16,
        ..SessionOptions::default()
    }
}

/// Answers as a server of the table does; the answers are zeros.
fn right(table: &Descriptor, request: &Request) -> Reply {
    let name = "t";
    match request.path.as_str() {
        "/v1/tables" => Reply::ok(format!(r#"{{"tables":[{{"name":"{name}","state":"resident"}}]}}"#).into()),
        "/v1/tables/t" => Reply::ok(table.to_json()),
        "/v1/tables/t/query" => {
            let request = QueryRequest::decode(&*request.body).expect("a client's request");
            let answer_bytes = table.params().expect("a table").facts().answer_bytes;
            let answers = request.queries.iter().map(|_| Answer { words: vec![0; answer_bytes].into() });
            let (version, epoch) = (wire::VERSION, table.epoch.to_vec().into());
            Reply::ok(QueryResponse { version, epoch, answers: answers.collect() }.encode_to_vec())
        }
        path if path.starts_with("/v1/blobs/") => {
            let hint = sample::hint(table.hint.as_ref().map_or(0, |blob| blob.bytes));
            let range = request.headers.iter().find(|(name, _)| *name == "range");
            let from = range.map(|(_, range)| range.trim_start_matches("bytes=").trim_end_matches('-'));
            let Some(from) = from else { return Reply::ok(hint) };
            let from: usize = from.parse().expect("a client's range");
            let content_range = format!("bytes {from}-{}/{}", hint.len() - 1, hint.len());
            let head = Head {
                status: 206,
                headers: vec![("Content-Range".into(), content_range)],
                body_bytes: None,
            };
            Reply { head, ..Reply::ok(hint[from..].to_vec()) }
        }
        _ => Reply { head: Head { status: 404, ..Head::default() }, ..Reply::ok(Vec::new()) },
    }
}

/// Turns a task. `serve` gives no reply where the server is not reached.
fn drive<T>(mut task: Task<'_, T>, mut serve: impl FnMut(Request) -> Option<Reply>) -> T {
    let lost = || TransportFailure::Unreachable { reason: "gone\n".trim().into(), transient: true };
    loop {
        match task.advance() {
            Action::Done(result) => return result,
            Action::Wait(wait) => assert!(wait <= options().retry.max_wait),
            Action::Send(request) => {
                let most = request.max_response_bytes;
                let Some(Reply { head, body, is_cut }) = serve(request) else {
                    task.fail(lost());
                    continue;
                };
                let (mut more, mut read) = (task.begin(head), 0);
                for part in body.chunks(1000) {
                    if more {
                        read += part.len() as u64;
                        more = task.body(part);
                    }
                }
                assert!(read <= most + 1000, "{read} bytes were read, {most} at most are allowed");
                match (more, is_cut) {
                    (true, true) => task.fail(lost()),
                    (true, false) => task.end(),
                    (false, _) => {}
                }
            }
        }
    }
}

/// A server's words are fit for one line of a terminal.
fn check_message(error: &SessionError) {
    let text = error.to_string();
    assert!(!text.chars().any(char::is_control) && text.len() < 4000, "{text:?}");
}

fn check_name(name: &str) {
    assert!(name.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c)) && !name.is_empty());
}

/// A host in memory, with one hint, or a part of it.
#[derive(Default)]
struct Memory {
    hint: Arc<Mutex<Vec<u8>>>,
}

impl Host for Memory {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn date(&self) -> Duration {
        Duration::ZERO
    }

    fn report(&self, event: &Event<'_>) {
        if let Event::HintStart { bytes, present } = event {
            assert!(present <= bytes);
        }
    }

    fn hint(&self, blob: &BlobRef) -> Result<CachedHint, CacheError> {
        let bytes = self.hint.lock().unwrap().clone();
        Ok(match CheckedHint::new(Arc::new(bytes), blob) {
            Some(whole) => CachedHint::Whole(whole),
            None => CachedHint::Part(Box::new(Part(self.hint.clone()))),
        })
    }

    fn newest_serial(&self, _: &str, serial: u64) -> Result<u64, CacheError> {
        Ok(serial)
    }

    fn keys(&self, request: &KeyRequest) -> Result<KeptKeys, CacheError> {
        Ok(KeptKeys::draw(None, request, 0))
    }

    fn note(&self, _: &str, _: &KeptKeys, _: KeyNote) -> Result<(), CacheError> {
        Ok(())
    }
}

struct Part(Arc<Mutex<Vec<u8>>>);

impl PartialHint for Part {
    fn present(&self) -> Result<u64, CacheError> {
        Ok(self.0.lock().unwrap().len() as u64)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), CacheError> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), CacheError> {
        self.0.lock().unwrap().clear();
        Ok(())
    }

    fn read(&self) -> Result<Hint, CacheError> {
        Ok(Arc::new(self.0.lock().unwrap().clone()))
    }

    fn keep(self: Box<Self>) -> Result<(), CacheError> {
        Ok(())
    }

    fn discard(self: Box<Self>) -> Result<(), CacheError> {
        Ok(())
    }
}

/// A client's cache, with a record of keys, a hint and a part of one that somebody else may have written.
pub fn cache(bytes: &[u8]) {
    static CACHE: LazyLock<Cache> = LazyLock::new(Cache::new);
    let cache = &*CACHE;
    let mut input = Input::new(bytes);
    let kind = input.byte();
    let (record, hint, part) = (input.piece(), input.piece(), input.rest());
    let blob = BlobRef {
        blake3: *blake3::hash(&[hint, part].concat()).as_bytes(),
        bytes: (hint.len() + part.len()) as u64,
    };
    let whole = cache.folder.path().join(hex::encode(blob.blake3));
    let partial = whole.with_extension("part");

    // A record that is good but for what the input changes, or any bytes.
    let mut spoilt = cache.key_file.clone();
    if kind & 1 == 0 {
        spoilt.iter_mut().zip(record).for_each(|(byte, spoilt)| *byte ^= spoilt);
    } else {
        spoilt = record.to_vec();
    }
    cache.write(&cache.key_path, &spoilt);
    let obtained = cache.host.keys(&request()).expect("a place for keys");
    assert_eq!(obtained.is_same(&cache.keys), spoilt == cache.key_file, "damaged keys are made anew");
    assert!(cache.host.keys(&request()).expect("a place for keys").is_same(&obtained));

    if kind & 2 != 0 {
        fs::write(&whole, hint).unwrap();
    }
    if kind & 4 != 0 {
        fs::write(&partial, part).unwrap();
    }
    match cache.host.hint(&blob).expect("a place for hints") {
        CachedHint::Whole(_) => assert!(kind & 2 != 0 && part.is_empty()),
        CachedHint::Part(mut found) => {
            assert!(!whole.exists(), "a damaged hint is deleted");
            let present = if kind & 4 != 0 { part.len() as u64 } else { 0 };
            assert_eq!(found.present().unwrap(), present);
            found.clear().unwrap();
            found.append(hint).unwrap();
            found.append(part).unwrap();
            assert!(CheckedHint::new(found.read().unwrap(), &blob).is_some());
            found.keep().unwrap();
            assert!(matches!(cache.host.hint(&blob), Ok(CachedHint::Whole(_))));
        }
    }
    let _ = (fs::remove_file(whole), fs::remove_file(partial));
}

/// Returns a request for keys for one look-up.
fn request() -> KeyRequest {
    KeyRequest { name: "a.seed".into(), held: None, lookups: 1, limit: 10 }
}

/// A cache with a good record of keys.
struct Cache {
    folder: TempDir,
    host: FileHost,
    keys: KeptKeys,
    key_path: PathBuf,
    key_file: Vec<u8>,
}

impl Cache {
    fn new() -> Self {
        let folder = place::folder();
        let host = FileHost::new(&HintCache::Directory(folder.path().into()), Arc::new(|_| {})).unwrap();
        let keys = host.keys(&request()).unwrap();
        let key_path = folder.path().join("secrets").join(request().name);
        let key_file = fs::read(&key_path).unwrap();
        Self { folder, host, keys, key_path, key_file }
    }

    /// Writes a file that its owner alone can read.
    fn write(&self, path: &Path, content: &[u8]) {
        let mut file = fs::File::create(path).unwrap();
        file.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
        file.rewind().and_then(|()| file.write_all(content)).unwrap();
    }
}

/// The URL of a server.
pub fn server_url(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    match ServerUrl::parse(text) {
        Ok(url) => {
            let again = ServerUrl::parse(url.as_str()).expect("what is left of a URL is one");
            assert_eq!((again.as_str(), again.is_loopback()), (url.as_str(), url.is_loopback()));
        }
        Err(error) => assert!(matches!(error, SessionError::Url { .. })),
    }
}
