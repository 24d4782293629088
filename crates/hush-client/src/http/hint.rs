//! The hint: cached, downloaded, resumed, verified.
//!
//! A cached hint is a file named by its hash. It is downloaded into `<hash>.part`, which is locked meanwhile, and
//! renamed once its hash is right: a file of the final name was whole when it got it. Nothing is flushed to disk
//! on the way, because every use checks the hash again; a damaged file is deleted and downloaded once more. Hints
//! that have not been used for long, by the time of their last change, which every use renews, are deleted.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use etcetera::BaseStrategy;
use hush_protocol::descriptor::BlobRef;
use memmap2::Mmap;
use ureq::{
    Body,
    http::{Response, StatusCode, header::CONTENT_RANGE},
};

use super::{Event, HintCache, HttpError, transport::Transport};

/// Bytes read from the network at once.
const CHUNK_BYTES: usize = 256 << 10;

/// How long a cached hint stays without being used.
const KEPT_UNUSED: Duration = Duration::from_secs(60 * 24 * 3600);

/// A hint in memory.
pub(super) type Hint = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Where hints are kept.
#[derive(Clone)]
pub(super) struct HintStore {
    /// `None`: in temporary files.
    directory: Option<PathBuf>,
}

impl HintStore {
    pub(super) fn new(cache: &HintCache) -> Result<Self, HttpError> {
        let directory = match cache {
            HintCache::Off => None,
            HintCache::Directory(path) => Some(path.clone()),
            HintCache::User => {
                let base = etcetera::choose_base_strategy().map_err(|_| HttpError::NoCacheDirectory)?;
                Some(base.cache_dir().join("hushdb").join("hints"))
            }
        };
        Ok(Self { directory })
    }

    /// The hint `blob`, from the cache or from the server; what comes over the network is added to `received`.
    pub(super) fn obtain(
        &self,
        transport: &Transport,
        blob: &BlobRef,
        received: &mut u64,
    ) -> Result<Hint, HttpError> {
        let Some(directory) = &self.directory else {
            return Download::temporary(transport, blob, received)?.verified();
        };
        let path = directory.join(hex::encode(blob.blake3));
        if let Some(map) = cached(&path, blob)? {
            return Ok(Arc::new(map));
        }
        // Which hints are kept tells which tables were looked up: nobody else's business.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|source| cache_error(directory, source))?;
        let part = path.with_extension("part");
        loop {
            let file = lock(&part, transport)?;
            if !is_at(&file, &part)? {
                continue; // Whoever held the lock has finished, or given up: look again.
            }
            if let Some(map) = cached(&path, blob)? {
                remove(&part)?;
                return Ok(Arc::new(map));
            }
            // Holds the lock until the file has its final name.
            let mut download = Download { transport, blob, file, path: part.clone(), received };
            let hint = download.verified();
            if matches!(hint, Err(HttpError::HintMismatch)) {
                remove(&part)?;
            }
            let hint = hint?;
            fs::rename(&part, &path).map_err(|source| cache_error(&path, source))?;
            remove_unused(directory);
            return Ok(hint);
        }
    }
}

/// The cached file at `path`. A damaged one is deleted.
fn cached(path: &Path, blob: &BlobRef) -> Result<Option<Mmap>, HttpError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        outcome => outcome.map_err(|source| cache_error(path, source))?,
    };
    let map = map_verified(&file, blob).map_err(|source| cache_error(path, source))?;
    match map {
        // A use that cannot be noted costs a download some day, no more.
        Some(_) => drop(file.set_modified(SystemTime::now())),
        None => remove(path)?,
    }
    Ok(map)
}

/// Deletes hints, whole or in part, that have not been used for [`KEPT_UNUSED`], as far as that is possible.
fn remove_unused(directory: &Path) {
    let is_hint = |path: &Path| {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or("");
        let ours = path.extension().is_none_or(|extension| extension == "part");
        ours && name.len() == 64 && name.bytes().all(|c| c.is_ascii_hexdigit())
    };
    let is_unused = |path: &Path| {
        let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        age.is_some_and(|age| age > KEPT_UNUSED)
    };
    let paths = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in paths.filter(|path| is_hint(path) && is_unused(path)) {
        let _ = fs::remove_file(path);
    }
}

/// Maps a file, if it is `blob`.
fn map_verified(file: &File, blob: &BlobRef) -> io::Result<Option<Mmap>> {
    if file.metadata()?.len() != blob.bytes {
        return Ok(None);
    }
    // SAFETY: the file belongs to this user, and this program never writes to a file that it has found to be
    // whole: it only renames or unlinks it. Another program of the same user that cuts it ends this process.
    let map = unsafe { Mmap::map(file)? };
    let hash = blake3::Hasher::new().update_rayon(&map).finalize();
    Ok((hash == blake3::Hash::from_bytes(blob.blake3)).then_some(map))
}

/// Opens or creates the part at `path` and waits until no other process downloads into it.
fn lock(path: &Path, transport: &Transport) -> Result<File, HttpError> {
    let error = |source| cache_error(path, source);
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(path).map_err(error)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            transport.report(&Event::HintLocked);
            file.lock().map_err(error)?;
        }
        Err(TryLockError::Error(source)) => return Err(error(source)),
    }
    Ok(file)
}

/// Whether `path` still names `file`.
fn is_at(file: &File, path: &Path) -> Result<bool, HttpError> {
    let error = |source| cache_error(path, source);
    let here = file.metadata().map_err(error)?;
    match fs::metadata(path) {
        Ok(there) => Ok((here.dev(), here.ino()) == (there.dev(), there.ino())),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(error(source)),
    }
}

fn remove(path: &Path) -> Result<(), HttpError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(cache_error(path, source)),
        _ => Ok(()),
    }
}

pub(super) fn cache_error(path: &Path, source: io::Error) -> HttpError {
    HttpError::Cache { path: path.to_owned(), source }
}

/// A download under way.
struct Download<'a> {
    transport: &'a Transport,
    blob: &'a BlobRef,
    /// What is there of the hint; nobody else writes to it.
    file: File,
    /// For messages.
    path: PathBuf,
    received: &'a mut u64,
}

impl<'a> Download<'a> {
    /// Into a file that goes with the process.
    fn temporary(
        transport: &'a Transport,
        blob: &'a BlobRef,
        received: &'a mut u64,
    ) -> Result<Self, HttpError> {
        let path = std::env::temp_dir();
        let file = tempfile::tempfile_in(&path).map_err(|source| cache_error(&path, source))?;
        Ok(Self { transport, blob, file, path, received })
    }

    /// Completes the file and checks it. What an earlier process left behind is used if it is good.
    fn verified(&mut self) -> Result<Hint, HttpError> {
        let resumed = self.present()? > 0;
        self.complete()?;
        if let Some(map) = self.map()? {
            return Ok(Arc::new(map));
        }
        if resumed {
            self.truncate()?;
            self.complete()?;
            if let Some(map) = self.map()? {
                return Ok(Arc::new(map));
            }
        }
        Err(HttpError::HintMismatch)
    }

    fn map(&self) -> Result<Option<Mmap>, HttpError> {
        let map = map_verified(&self.file, self.blob).map_err(|source| self.error(source))?;
        if map.is_some() {
            self.transport.report(&Event::HintEnd);
        }
        Ok(map)
    }

    /// Downloads what is missing, in as many attempts as are allowed.
    fn complete(&mut self) -> Result<(), HttpError> {
        if self.present()? > self.blob.bytes {
            self.truncate()?;
        }
        self.transport.retrying(|| self.attempt())
    }

    /// Downloads what is missing, in one request.
    fn attempt(&mut self) -> Result<(), HttpError> {
        let present = self.present()?;
        if present == self.blob.bytes {
            return Ok(());
        }
        let event = Event::HintStart { bytes: self.blob.bytes, present };
        self.transport.report(&event);
        let hash = hex::encode(self.blob.blake3);
        let path = format!("/v1/blobs/{hash}");
        let response = match self.transport.get_file(&path, &format!("\"{hash}\""), present) {
            Err(HttpError::Refused { status: 416, detail, .. }) => {
                self.truncate()?;
                return Err(self.interrupted(0, detail));
            }
            outcome => outcome?,
        };
        if !self.is_rest(&response, present) {
            self.truncate()?; // The server sends all of it.
        }
        self.receive(response.into_body())
    }

    /// Whether `response` is the rest of the file from `present` on.
    fn is_rest(&self, response: &Response<Body>, present: u64) -> bool {
        let expected = format!("bytes {present}-{}/{}", self.blob.bytes - 1, self.blob.bytes);
        let range = response.headers().get(CONTENT_RANGE);
        response.status() == StatusCode::PARTIAL_CONTENT
            && range.is_some_and(|range| range == expected.as_str())
    }

    /// Appends a body that must end where the file ends.
    fn receive(&mut self, body: Body) -> Result<(), HttpError> {
        let mut present = self.present()?;
        if body.content_length().is_some_and(|length| length != self.blob.bytes - present) {
            return Err(HttpError::HintMismatch);
        }
        self.file.seek(SeekFrom::End(0)).map_err(|source| self.error(source))?;
        let mut reader = body.into_reader();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let count = match reader.read(&mut chunk) {
                Ok(0) if present == self.blob.bytes => return Ok(()),
                Ok(0) => return Err(self.interrupted(present, "the server closed the connection".into())),
                Ok(count) => count,
                Err(error) => return Err(self.interrupted(present, reason(error))),
            };
            if count as u64 > self.blob.bytes - present {
                return Err(HttpError::HintMismatch);
            }
            self.file.write_all(&chunk[..count]).map_err(|source| self.error(source))?;
            present += count as u64;
            *self.received += count as u64;
            self.transport.report(&Event::HintProgress { present });
        }
    }

    fn present(&self) -> Result<u64, HttpError> {
        self.file.metadata().map(|metadata| metadata.len()).map_err(|source| self.error(source))
    }

    fn truncate(&mut self) -> Result<(), HttpError> {
        self.transport.report(&Event::HintProgress { present: 0 });
        self.file.set_len(0).map_err(|source| self.error(source))
    }

    fn interrupted(&self, present: u64, reason: String) -> HttpError {
        HttpError::Interrupted { present, bytes: self.blob.bytes, reason }
    }

    fn error(&self, source: io::Error) -> HttpError {
        cache_error(&self.path, source)
    }
}

/// What the system says of a broken connection.
fn reason(error: io::Error) -> String {
    ureq::Error::from(error).into_io().to_string()
}
