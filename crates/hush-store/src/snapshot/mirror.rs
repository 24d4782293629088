//! A table that is elsewhere, and its copy here: every chunk is checked as it comes, and is not asked for again after a stop.

use std::{
    fs::{self, File, OpenOptions},
    io,
    ops::Range,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::Duration,
};

use futures_util::{StreamExt, stream};
use hush_protocol::{InvalidName, Name};
use thiserror::Error;
use tokio::runtime::Builder;

use super::{
    CHUNK_BYTES, FileEntry, HEADER_FILE, Header, MappedFile, SnapshotError, SnapshotWriter,
    checksum::{differing, verify_chunks},
    header::MAX_HEADER_BYTES,
    partial, resume, target,
    writer::sibling,
};
use crate::{
    cancel::Cancel,
    remote::{FIRST_ATTEMPTS, Refused, Remote, RemoteUrl, Scheme, SourcePolicy, is_page, persist},
};

/// Chunks that are asked for at a time: several connections carry more than one, and so many are in memory.
const AT_A_TIME: usize = 8;
/// How long a step waits for a chunk.
const STEP: Duration = Duration::from_millis(100);

/// Why there is no copy.
#[derive(Debug, Error)]
pub enum MirrorError {
    /// The scheme of the URL leads to no table.
    #[error("{}: no table is fetched from there: name one at s3://, gs://, az:// or https://", path.display())]
    Scheme {
        /// The URL, without what is secret in it.
        path: PathBuf,
    },
    /// A server does not give what the URL names, or does not take it.
    #[error("{}: {message}; {advice}", path.display())]
    Refused {
        /// The URL, without what is secret in it.
        path: PathBuf,
        /// What the server or the way to it said.
        message: String,
        /// What to do.
        advice: &'static str,
    },
    /// The bytes of a file are not those that its header promises.
    #[error(
        "{}: the checksum of bytes {} to {} differs: it is damaged there, or another table is being put in its place: put it there \
         again, its header last",
        path.display(), range.start, range.end
    )]
    Differs {
        /// The file's URL, without what is secret in it.
        path: PathBuf,
        /// The bytes.
        range: Range<u64>,
    },
    /// The copy, or the table that is to be put there.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// A table in a folder of an object store or a web server: the files of a snapshot, by their names.
pub struct RemoteTable {
    url: RemoteUrl,
    remote: Remote,
}

impl RemoteTable {
    /// The table at `place`, if that is a URL and no path.
    ///
    /// # Errors
    /// If no table can be there.
    pub fn of(place: &Path) -> Result<Option<Self>, MirrorError> {
        Self::under(place, &SourcePolicy::default())
    }

    /// The table at `place` under a policy.
    ///
    /// # Errors
    /// If no table can be there, or the policy does not allow it.
    pub fn under(place: &Path, policy: &SourcePolicy) -> Result<Option<Self>, MirrorError> {
        let Some(url) = place.to_str().and_then(RemoteUrl::of) else { return Ok(None) };
        let url = url.under(policy);
        let scheme = url.scheme().ok().filter(|scheme| *scheme != Scheme::Postgres);
        let scheme = scheme.ok_or_else(|| MirrorError::Scheme { path: url.shown().into() })?;
        let remote = Remote::folder(&url, scheme).map_err(|refused| refused_at(url.shown(), refused))?;
        Ok(Some(Self { url, remote }))
    }

    /// Its URL, without what is secret in it.
    pub fn shown(&self) -> &Path {
        self.url.shown()
    }

    /// The last part of its URL, if that is a name.
    ///
    /// # Errors
    /// [`InvalidName`].
    pub fn name(&self) -> Result<Name, InvalidName> {
        Name::last_of(self.shown())
    }

    /// The folder of its copy among others, whose name people can tell it by.
    pub fn place_in(&self, cache: &Path) -> PathBuf {
        let hash = blake3::hash(self.shown().as_os_str().as_encoded_bytes()).to_hex();
        let name = self.name().map_or_else(|_| "table".into(), String::from);
        cache.join(format!("{name}-{}", &hash[..16]))
    }

    pub(super) fn remote(&self) -> &Remote {
        &self.remote
    }

    pub(super) fn refused(&self, name: &str, refused: Refused) -> MirrorError {
        refused_at(&self.shown().join(name), refused)
    }

    /// What is there now.
    ///
    /// # Errors
    /// [`MirrorError`], also if there is no table.
    pub fn header(&self) -> Result<Header, MirrorError> {
        self.find_header()?.map_err(|refused| self.refused(HEADER_FILE, refused))
    }

    /// The same; what a server says who has no table there is not an error yet.
    pub(super) fn find_header(&self) -> Result<Result<Header, Refused>, MirrorError> {
        let runtime = runtime().map_err(SnapshotError::io(self.shown(), "fetch"))?;
        let file = self.remote.child(HEADER_FILE);
        let fetched = runtime.block_on(persist(FIRST_ATTEMPTS, || file.clone().whole(MAX_HEADER_BYTES)));
        let content = match fetched {
            Ok(content) if is_page(&content) => return Ok(Err(Refused::page())),
            Ok(content) => content,
            Err(refused) => return Ok(Err(refused)),
        };
        Ok(Ok(Header::parse(&content, &self.shown().join(HEADER_FILE))?))
    }
}

fn refused_at(path: &Path, refused: Refused) -> MirrorError {
    let advice = refused.last_advice("try again later");
    MirrorError::Refused { path: path.into(), message: refused.message, advice }
}

pub(super) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// What of a copy is taken to be whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Files of the copy that is there, if their lengths are right.
    Copy,
    /// Nothing: every byte is read.
    Nothing,
}

/// A copy that is being made, beside the one that is there. Whatever has come stays when it ends early: in the hidden folder
/// `.NAME.hush-fetched`, for the next time.
pub struct Mirror {
    table_url: PathBuf,
    target: PathBuf,
    folder: PathBuf,
    writer: SnapshotWriter,
    header: Header,
    /// Of every file of the header: itself, if anything of it has to come.
    files: Vec<Option<File>>,
    missing: Vec<Piece>,
    download: Option<Receiver<Fetched>>,
    /// Pieces that have not come yet.
    left: usize,
    /// Bytes that have come.
    came: u64,
}

/// A chunk of a file.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) file: usize,
    pub(super) chunk: usize,
}

impl Piece {
    pub(super) fn range(self, entry: &FileEntry) -> Range<u64> {
        let start = (self.chunk * CHUNK_BYTES) as u64;
        start..entry.bytes.min(start + CHUNK_BYTES as u64)
    }
}

/// Where what has come of a table is kept until all of it has.
fn fetched_folder(target: &Path) -> PathBuf {
    sibling(target, ".hush-fetched")
}

impl Mirror {
    /// Whether what is in the folder `target` is what `header` says.
    pub fn is_current(header: &Header, target: &Path) -> bool {
        let own = Header::read(target);
        own.is_ok_and(|own| {
            own.descriptor.epoch == header.descriptor.epoch
                && own.files == header.files
                && own.files.iter().all(|file| has_length(target, file))
        })
    }

    /// Removes what has come of a copy that nobody wants any more.
    ///
    /// # Errors
    /// What the system says, with the path.
    pub fn forget(target: &Path) -> Result<(), SnapshotError> {
        let target = target::resolved(target)?;
        super::writer::remove_if_there(&fetched_folder(&target))
    }

    /// Begins to copy `table`, of which `header` is the header, to the folder `target`: finds what is here already.
    ///
    /// # Errors
    /// As [`SnapshotWriter::create`], whose lock it holds.
    pub fn begin(
        table: &RemoteTable,
        header: Header,
        target: &Path,
        trust: Trust,
        cancel: &Cancel,
    ) -> Result<Self, SnapshotError> {
        let writer = SnapshotWriter::create(target, true)?.cancelled_by(cancel);
        let target = writer.target().to_owned();
        let folder = fetched_folder(&target);
        partial::check(&folder)?;
        if !folder.exists() {
            partial::create(&folder)?;
        }
        resume::sweep(&folder, |name| header.files.iter().any(|file| file.name == name))?;
        let own = Header::read(&target).map(|own| own.files).unwrap_or_default();
        let (mut files, mut missing) = (Vec::new(), Vec::new());
        for (file, entry) in header.files.iter().enumerate() {
            cancel.check()?;
            if own.contains(entry) && is_whole(&target, entry, trust) {
                files.push(None);
                continue;
            }
            let (opened, chunks) = begun(&folder.join(&entry.name), entry)?;
            files.push(Some(opened));
            missing.extend(chunks.into_iter().map(|chunk| Piece { file, chunk }));
        }
        let left = missing.len();
        let table_url = table.shown().into();
        Ok(Self { table_url, target, folder, writer, header, files, missing, download: None, left, came: 0 })
    }

    /// Bytes that have to come.
    pub fn missing(&self) -> u64 {
        let bytes = |piece: &Piece| {
            let range = piece.range(&self.header.files[piece.file]);
            range.end - range.start
        };
        self.missing.iter().map(bytes).sum()
    }

    /// The folder on whose disk they are kept.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Asks for what is missing, on a thread of its own.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(&mut self, table: &RemoteTable) -> Result<(), SnapshotError> {
        let runtime = runtime().map_err(SnapshotError::io(table.shown(), "fetch"))?;
        let (sender, receiver) = sync_channel(1);
        let wanted = self.missing.iter().map(|piece| {
            let entry = &self.header.files[piece.file];
            (*piece, table.remote.child(&entry.name), piece.range(entry), entry.bytes)
        });
        let wanted: Vec<_> = wanted.collect();
        thread::spawn(move || runtime.block_on(download(wanted, sender)));
        self.download = Some(receiver);
        Ok(())
    }

    /// Waits for a chunk, a tenth of a second at most. Returns the bytes that came; `None` once all are here.
    ///
    /// # Errors
    /// If the server does not give them, or gives others, or the disk is full.
    pub fn step(&mut self) -> Result<Option<u64>, MirrorError> {
        let Some(download) = self.download.as_ref().filter(|_| self.left > 0) else { return Ok(None) };
        let refused_of = |piece: Piece, refused| {
            refused_at(&self.table_url.join(&self.header.files[piece.file].name), refused)
        };
        match download.recv_timeout(STEP) {
            Ok((piece, Ok(bytes))) => {
                self.put(piece, &bytes)?;
                self.left -= 1;
                self.came += bytes.len() as u64;
                Ok(Some(bytes.len() as u64))
            }
            Ok((piece, Err(refused))) => {
                Err(refused_of(piece, refused.so_far(self.came, Some(self.missing()))))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Some(0)),
            Err(RecvTimeoutError::Disconnected) => {
                Err(refused_at(&self.table_url, Refused::for_now("it ended without a reason")))
            }
        }
    }

    fn put(&self, piece: Piece, bytes: &[u8]) -> Result<(), MirrorError> {
        let entry = &self.header.files[piece.file];
        let range = piece.range(entry);
        check(&self.table_url.join(&entry.name), entry, piece, bytes)?;
        let file = self.files[piece.file].iter();
        for file in file {
            let path = self.folder.join(&entry.name);
            file.write_all_at(bytes, range.start).map_err(SnapshotError::io(path, "write"))?;
        }
        Ok(())
    }

    /// Puts the copy in place, once all is here.
    ///
    /// # Errors
    /// What the system says, with the path. The target is then as it was.
    pub fn finish(self) -> Result<(), SnapshotError> {
        for (entry, file) in self.header.files.iter().zip(&self.files) {
            if let Some(file) = file {
                file.sync_all().map_err(SnapshotError::io(self.folder.join(&entry.name), "sync"))?;
            }
            let from = if file.is_some() { &self.folder } else { &self.target };
            self.writer.take_file(from, entry)?;
        }
        self.writer.commit(&self.header)?;
        super::writer::remove_if_there(&self.folder)
    }
}

/// Whether a file is there, as long as it should be.
fn has_length(dir: &Path, entry: &FileEntry) -> bool {
    // Without following a link: that would be refused later.
    let found = fs::symlink_metadata(dir.join(&entry.name));
    found.is_ok_and(|found| found.is_file() && found.len() == entry.bytes)
}

fn is_whole(dir: &Path, entry: &FileEntry, trust: Trust) -> bool {
    let is_intact = || {
        let file = MappedFile::open(&dir.join(&entry.name));
        file.and_then(|file| verify_chunks(&dir.join(&entry.name), file.as_ref(), entry.hashes())).is_ok()
    };
    has_length(dir, entry) && (trust == Trust::Copy || is_intact())
}

/// Opens a file to be filled, and makes it if it is not there.
pub(super) fn opened(path: &Path) -> Result<File, SnapshotError> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true).custom_flags(libc::O_NOFOLLOW);
    options.open(path).map_err(SnapshotError::io(path, "create"))
}

/// Opens a file of which some may have come, and says which chunks have not.
fn begun(path: &Path, entry: &FileEntry) -> Result<(File, Vec<usize>), SnapshotError> {
    let file = opened(path)?;
    let length = file.metadata().map_err(SnapshotError::io(path, "read"))?.len();
    if length > entry.bytes {
        file.set_len(entry.bytes).map_err(SnapshotError::io(path, "size"))?;
    }
    let here = MappedFile::open(path)?;
    let all: Vec<usize> = (0..entry.hashes().len()).collect();
    let missing = differing(here.as_ref(), entry.hashes(), &all);
    Ok((file, missing))
}

/// Checks a chunk of the file that `entry` is of, at `path`.
pub(super) fn check(path: &Path, entry: &FileEntry, piece: Piece, bytes: &[u8]) -> Result<(), MirrorError> {
    match blake3::hash(bytes) == blake3::Hash::from_bytes(entry.hashes()[piece.chunk]) {
        true => Ok(()),
        false => Err(MirrorError::Differs { path: path.into(), range: piece.range(entry) }),
    }
}

pub(super) type Fetched = (Piece, Result<Vec<u8>, Refused>);

/// Asks for pieces until all have come, one is not to be had, or nobody wants them.
pub(super) async fn download(wanted: Vec<(Piece, Remote, Range<u64>, u64)>, to: SyncSender<Fetched>) {
    let fetch = |(piece, remote, range, size): (Piece, Remote, Range<u64>, u64)| async move {
        (piece, remote.range(range, size).await)
    };
    let mut fetched = stream::iter(wanted).map(fetch).buffer_unordered(AT_A_TIME);
    while let Some(next) = fetched.next().await {
        let is_last = next.1.is_err();
        if to.send(next).is_err() || is_last {
            return;
        }
    }
}
