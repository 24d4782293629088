//! Fetches of remote inputs: an input is downloaded to a local file first, in which its reader can seek.

use std::{
    fmt,
    fs::File,
    io::{Seek, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use tempfile::NamedTempFile;
use tokio::{runtime::Builder, time::sleep};

use crate::remote::{Patience, Refused, Remote, RemoteUrl, Scheme, TOO_SOON, is_page};
use crate::{
    Format, IngestError, IngestOptions, Input, Reader,
    input::compression::{Compression, peek},
    scheme,
    spool::spool_error,
};

/// The number of bytes in which the start of a web page is searched.
const PAGE_HEAD_BYTES: usize = 256;
/// The longest time that a step waits for bytes.
const STEP: Duration = Duration::from_millis(100);
/// The most pieces that have arrived and are not written yet.
const PIECES_AHEAD: usize = 16;

/// A file that was fetched. The file is removed with the last input that refers to it.
#[derive(Clone)]
pub struct Fetched(Arc<FetchParts>);

struct FetchParts {
    url: RemoteUrl,
    file: NamedTempFile,
    format: Format,
    compression: Option<Compression>,
}

impl Fetched {
    /// Returns the URL that it came from, without its secrets.
    pub(crate) fn shown(&self) -> &Path {
        self.0.url.shown()
    }

    /// Returns the local file.
    pub(crate) fn file(&self) -> &Path {
        self.0.file.path()
    }

    pub(crate) fn open(&self, options: &IngestOptions) -> Result<Box<dyn Reader>, IngestError> {
        let FetchParts { file, format, compression, .. } = &*self.0;
        let unreadable = |source| spool_error(file.path(), source);
        let fetched = File::open(file.path()).map_err(unreadable)?;
        if is_page(&peek(fetched, PAGE_HEAD_BYTES).map_err(unreadable)?.0) {
            return Err(unfetched(&self.0.url, Refused::page()));
        }
        let format =
            options.format.map_or_else(|| Format::of_fetched(file.path(), self.shown(), *format), Ok);
        crate::open_file(file.path(), self.shown(), format.map_err(unreadable)?, *compression, options)
    }
}

impl PartialEq for Fetched {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Fetched {}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fetched({})", self.shown().display())
    }
}

/// A fetch in progress. A separate thread downloads.
pub struct Fetch {
    inner: FetchParts,
    dir: PathBuf,
    events: Receiver<FetchEvent>,
    has_begun: bool,
    /// The number of bytes that have been written.
    here: u64,
    size: Option<u64>,
}

enum FetchEvent {
    /// The object begins, with its length in bytes if known. Earlier bytes are void.
    Begin(Option<u64>),
    Bytes(Bytes),
    End,
    Refused(Refused),
}

/// The scheme, the format and the compression of an input to be fetched.
struct FetchKind {
    scheme: Scheme,
    format: Format,
    compression: Option<Compression>,
}

impl FetchKind {
    /// Returns the URL of an input to be fetched, and its kind; `None` for an input that is read where it is.
    fn of<'i>(
        input: &'i Input,
        options: &IngestOptions,
    ) -> Result<Option<(&'i RemoteUrl, Self)>, IngestError> {
        let Input::Url(url) = input else { return Ok(None) };
        let scheme = scheme(url)?;
        if scheme == Scheme::Postgres {
            return Ok(None);
        }
        let (format, compression) = Format::of_url(url.shown(), options)?;
        options.check(url.shown(), format)?;
        Ok(Some((url, Self { scheme, format, compression })))
    }
}

impl Fetch {
    /// Returns whether an input has to be fetched before it is opened.
    ///
    /// # Errors
    /// The URL has an unknown scheme, its name does not state the format, or the options do not fit the format.
    pub fn is_needed(input: &Input, options: &IngestOptions) -> Result<bool, IngestError> {
        match input {
            Input::Several(several) => {
                let mut needed = several.inputs().iter().map(|input| Self::is_needed(input, options));
                needed.try_fold(false, |any, is_needed| Ok(any | is_needed?))
            }
            input => Ok(FetchKind::of(input, options)?.is_some()),
        }
    }

    /// Begins to fetch one input to a file in `dir`; returns `None` if it is read where it is.
    ///
    /// # Errors
    /// Those of [`Fetch::is_needed`]; the file cannot be created.
    pub fn begin(input: &Input, options: &IngestOptions, dir: &Path) -> Result<Option<Self>, IngestError> {
        let Some((url, FetchKind { scheme, format, compression })) = FetchKind::of(input, options)? else {
            return Ok(None);
        };
        let failed = |source| spool_error(dir, source);
        let file = NamedTempFile::new_in(dir).map_err(failed)?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let remote = object(url, scheme)?;
        let (sender, events) = sync_channel(PIECES_AHEAD);
        thread::spawn(move || runtime.block_on(ObjectDownload::new(sender).run(&remote)));
        let inner = FetchParts { url: url.clone(), file, format, compression };
        Ok(Some(Self { inner, dir: dir.into(), events, has_begun: false, here: 0, size: None }))
    }

    /// Returns whether the server has answered.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns the length of the whole object in bytes, if the server states it.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Returns the number of bytes that have been written.
    pub fn here(&self) -> u64 {
        self.here
    }

    /// Waits for bytes, at most a tenth of a second; returns `false` at the end. After an interruption the download continues
    /// behind the last byte, or from the beginning where the server cannot do that.
    ///
    /// # Errors
    /// The object has changed meanwhile, the server does not come back, or the disk is full.
    pub fn step(&mut self) -> Result<bool, IngestError> {
        let dir = &self.dir;
        let file = self.inner.file.as_file_mut();
        match self.events.recv_timeout(STEP) {
            Ok(FetchEvent::Begin(size)) => {
                (self.has_begun, self.here, self.size) = (true, 0, size);
                file.set_len(0).and_then(|()| file.rewind()).map_err(|source| spool_error(dir, source))?;
            }
            Ok(FetchEvent::Bytes(bytes)) => {
                file.write_all(&bytes).map_err(|source| spool_error(dir, source))?;
                self.here += bytes.len() as u64;
            }
            Ok(FetchEvent::End) => return Ok(false),
            Ok(FetchEvent::Refused(refused)) => return Err(unfetched(&self.inner.url, refused)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let refused = Refused::for_now("it ended without a reason");
                return Err(unfetched(&self.inner.url, refused));
            }
        }
        Ok(true)
    }

    /// Returns the fetched input, once all of it has arrived.
    pub fn finish(self) -> Input {
        Input::Fetched(Fetched(self.inner.into()))
    }
}

/// Returns the object of a URL.
///
/// # Errors
/// The URL leads nowhere, or its policy does not allow it.
pub(crate) fn object(url: &RemoteUrl, scheme: Scheme) -> Result<Remote, IngestError> {
    Remote::object(url, scheme).map_err(|refused| unfetched(url, refused))
}

fn unfetched(url: &RemoteUrl, refused: Refused) -> IngestError {
    let Refused { message, advice } = refused;
    IngestError::Unfetched {
        path: url.shown().into(),
        message,
        advice: advice.unwrap_or("run the build again"),
    }
}

/// The signal that the receiver of a download is gone.
struct GivenUp;

/// The state of the downloading thread.
struct ObjectDownload {
    events: SyncSender<FetchEvent>,
    here: u64,
    size: Option<u64>,
    version: Option<String>,
    patience: Patience,
}

impl ObjectDownload {
    fn new(events: SyncSender<FetchEvent>) -> Self {
        Self { events, here: 0, size: None, version: None, patience: Patience::with_new() }
    }

    async fn run(mut self, remote: &Remote) {
        loop {
            let last = match self.attempt(remote).await {
                Ok(Ok(())) => FetchEvent::End,
                Err(GivenUp) => return,
                Ok(Err(refused)) => match self.patience.after(refused, Instant::now()) {
                    Ok(pause) => {
                        sleep(pause).await;
                        continue;
                    }
                    Err(refused) => FetchEvent::Refused(refused.so_far(self.patience.furthest(), self.size)),
                },
            };
            // The receiver is gone if the build was cancelled.
            let _ = self.events.send(last);
            return;
        }
    }

    fn send(&self, event: FetchEvent) -> Result<(), GivenUp> {
        self.events.send(event).map_err(|_| GivenUp)
    }

    /// Downloads until the object is complete or its server fails.
    async fn attempt(&mut self, remote: &Remote) -> Result<Result<(), Refused>, GivenUp> {
        // An object without a version may have changed, so it is fetched from its beginning.
        let start = if self.version.is_some() { self.here } else { 0 };
        let mut part = match remote.clone().part(start, None, self.version.clone()).await {
            Ok(part) => part,
            Err(refused) => return Ok(Err(refused)),
        };
        if part.start > 0 && (part.size, &part.version) != (self.size, &self.version) {
            return Ok(Err(Refused::changed()));
        }
        if part.start == 0 {
            (self.here, self.size, self.version) = (0, part.size, part.version.clone());
            self.send(FetchEvent::Begin(self.size))?;
        }
        loop {
            match part.next().await {
                Some(Ok(piece)) => {
                    self.here += piece.len() as u64;
                    self.patience.reach(self.here);
                    self.send(FetchEvent::Bytes(piece))?;
                }
                Some(Err(refused)) => return Ok(Err(refused)),
                None if self.size.is_some_and(|size| self.here < size) => {
                    return Ok(Err(Refused::for_now(TOO_SOON)));
                }
                None => return Ok(Ok(())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read,
        net::TcpListener,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    /// Starts a web server without ranges and versions that sends `after` of 1,000 bytes per connection. Counts connections.
    fn cut(after: usize, count: Arc<AtomicUsize>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                let _ = client.read(&mut [0; 4096]);
                let _ = client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
                let _ = client.write_all(&vec![b'a'; after]);
            }
        });
        format!("http://{address}/rows.csv")
    }

    #[test]
    fn a_download_that_is_always_cut_ends() {
        let count = Arc::new(AtomicUsize::new(0));
        let url = RemoteUrl::of(&cut(700, count.clone())).unwrap();
        let remote = Remote::object(&url, Scheme::Web).unwrap();
        let (sender, events) = sync_channel(PIECES_AHEAD);
        let mut download = ObjectDownload::new(sender);
        download.patience.pause = Duration::ZERO;
        thread::spawn(move || {
            Builder::new_current_thread().enable_all().build().unwrap().block_on(download.run(&remote));
        });
        let Some(FetchEvent::Refused(refused)) = events.iter().last() else { panic!("it does not end so") };
        assert!(refused.message.ends_with("(700 of 1000 bytes had come)"), "{}", refused.message);
        assert_eq!(count.load(Ordering::Relaxed), 9, "the first attempt and 8 without progress");
    }
}
