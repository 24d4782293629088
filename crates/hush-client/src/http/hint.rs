//! The files of hints: whole hints, named by their hashes, and parts of hints that are being downloaded.
//!
//! A hint is downloaded into `<hash>.part`, which is locked meanwhile, and renamed to its hash once the hash is right. A
//! file of the final name was therefore whole when it was renamed. Nothing is flushed to disk, because every use checks the
//! hash again; a damaged file is deleted and downloaded once more. Every use renews the time of the file's last change.
//! Hints that were not used for [`KEPT_UNUSED`] are deleted.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use etcetera::BaseStrategy;
use hush_protocol::descriptor::BlobRef;
use memmap2::Mmap;

use super::{HintCache, file_cache_error::FileCacheError, lock, private};
use crate::session::{CacheError, CachedHint, CheckedHint, Hint, PartialHint};

/// The time for which a cached hint is kept without being used.
const KEPT_UNUSED: Duration = Duration::from_secs(60 * 24 * 3600);

/// The store of hints.
pub(super) struct HintStore {
    /// The folder of the hints. `None` uses temporary files.
    directory: Option<PathBuf>,
}

impl HintStore {
    pub(super) fn new(cache: &HintCache) -> Result<Self, FileCacheError> {
        let directory = match cache {
            HintCache::Off => None,
            HintCache::Directory(path) => Some(path.clone()),
            HintCache::User => {
                let base = etcetera::choose_base_strategy().map_err(|_| FileCacheError::NoDirectory)?;
                Some(base.cache_dir().join("hushdb").join("hints"))
            }
        };
        Ok(Self { directory })
    }

    /// Returns the hint `blob`, or the locked file into which it is to be downloaded. If another process is downloading the
    /// hint, calls `waiting` and waits for the lock.
    pub(super) fn find(&self, blob: &BlobRef, waiting: impl Fn()) -> Result<CachedHint, FileCacheError> {
        let Some(directory) = &self.directory else {
            let path = std::env::temp_dir();
            let file = tempfile::tempfile_in(&path).map_err(|source| FileCacheError::at(&path, source))?;
            return Ok(CachedHint::Part(Box::new(PartFile { file, path, whole: None })));
        };
        let path = directory.join(hex::encode(blob.blake3));
        if let Some(hint) = cached(&path, blob)? {
            return Ok(CachedHint::Whole(hint));
        }
        // The names of cached hints reveal which tables were looked up, so only this user may list them.
        let made = private::new_folder().create(directory);
        made.map_err(|source| FileCacheError::at(directory, source))?;
        let part = path.with_extension("part");
        loop {
            let file = lock(&part, &waiting)?;
            if !is_at(&file, &part)? {
                continue; // Whoever held the lock has finished, or given up: look again.
            }
            if let Some(hint) = cached(&path, blob)? {
                remove(&part)?;
                return Ok(CachedHint::Whole(hint));
            }
            return Ok(CachedHint::Part(Box::new(PartFile { file, path: part, whole: Some(path) })));
        }
    }
}

/// Returns the cached file at `path`, or `None` if there is none. Deletes a damaged file.
fn cached(path: &Path, blob: &BlobRef) -> Result<Option<CheckedHint>, FileCacheError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        outcome => outcome.map_err(|source| FileCacheError::at(path, source))?,
    };
    let hint = map(&file).map_err(|source| FileCacheError::at(path, source))?;
    let hint = CheckedHint::new(hint, blob);
    match hint {
        // If the time cannot be set, the hint may be deleted early and downloaded again, no more.
        Some(_) => drop(file.set_modified(SystemTime::now())),
        None => remove(path)?,
    }
    Ok(hint)
}

/// Deletes hints and parts of hints that were not used for [`KEPT_UNUSED`]. Ignores errors.
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

fn map(file: &File) -> io::Result<Hint> {
    // SAFETY: the file belongs to this user, and this program does not write to a file while it is mapped. It never writes
    // to a file that it has found to be whole, which it only renames or unlinks. It drops the map of a part before it
    // writes to that. Another program of the same user that truncates the file ends this process.
    Ok(Arc::new(unsafe { Mmap::map(file)? }))
}

/// Opens or creates the part at `path`, and locks it. Calls `waiting` before it waits for another process.
fn lock(path: &Path, waiting: impl FnOnce()) -> Result<File, FileCacheError> {
    let error = |source| FileCacheError::at(path, source);
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(path).map_err(error)?;
    if !lock::try_lock(&file).map_err(error)? {
        waiting();
        lock::lock(&file).map_err(error)?;
    }
    Ok(file)
}

/// Returns whether `path` still names `file`.
fn is_at(file: &File, path: &Path) -> Result<bool, FileCacheError> {
    let error = |source| FileCacheError::at(path, source);
    let here = file.try_clone().and_then(same_file::Handle::from_file).map_err(error)?;
    match same_file::Handle::from_path(path) {
        Ok(there) => Ok(here == there),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(error(source)),
    }
}

fn remove(path: &Path) -> Result<(), FileCacheError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(FileCacheError::at(path, source)),
        _ => Ok(()),
    }
}

/// The file into which a hint is downloaded. No other process writes to it.
struct PartFile {
    /// The file, which is locked if it has a name.
    file: File,
    /// The name of the file, or its directory if it is a temporary file without a name.
    path: PathBuf,
    /// The name that the file gets once it is whole. `None` for a temporary file.
    whole: Option<PathBuf>,
}

impl PartFile {
    fn error(&self, source: io::Error) -> CacheError {
        FileCacheError::at(&self.path, source).into()
    }
}

impl PartialHint for PartFile {
    fn present(&self) -> Result<u64, CacheError> {
        self.file.metadata().map(|metadata| metadata.len()).map_err(|source| self.error(source))
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), CacheError> {
        let written = self.file.seek(SeekFrom::End(0)).and_then(|_| self.file.write_all(bytes));
        written.map_err(|source| self.error(source))
    }

    fn clear(&mut self) -> Result<(), CacheError> {
        self.file.set_len(0).map_err(|source| self.error(source))
    }

    fn read(&self) -> Result<Hint, CacheError> {
        map(&self.file).map_err(|source| self.error(source))
    }

    fn keep(self: Box<Self>) -> Result<(), CacheError> {
        let Some(whole) = &self.whole else { return Ok(()) };
        fs::rename(&self.path, whole).map_err(|source| FileCacheError::at(whole, source))?;
        // The lock is held until the file has its final name, and no longer: a table that maps the hint keeps the file open.
        lock::unlock(&self.file).map_err(|source| self.error(source))?;
        whole.parent().into_iter().for_each(remove_unused);
        Ok(())
    }

    fn discard(self: Box<Self>) -> Result<(), CacheError> {
        if self.whole.is_some() {
            remove(&self.path)?;
        }
        Ok(())
    }
}
