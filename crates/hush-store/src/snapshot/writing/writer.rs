//! Writes a snapshot: all files go into a partial folder beside the target, then one rename puts it in place.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    marker::PhantomData,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use memmap2::{MmapMut, MmapOptions};

use super::{lock::BuildLock, partial, resume, target};
use crate::cancel::{Cancel, Cancelled};
use crate::durable::{create_folders, sync_folder};
use crate::snapshot::{FileEntry, HEADER_FILE, Header, Phase, SharedPhase, SnapshotError, system};

/// The suffix of a snapshot that is being replaced.
const OLD: &str = ".hush-old";
/// The bytes that are hashed, or written to disk, between two checks for cancellation.
const PIECE_BYTES: usize = 64 << 20;

/// A snapshot being written. Dropped without [`SnapshotWriter::commit`], it leaves no files of its own behind, with one exception:
/// if it was cancelled or is to be kept ([`SnapshotWriter::keep`]), it leaves the files from which the next build can resume.
///
/// The files go to the hidden folder `.NAME.hush-partial` beside the target. An exclusive lock on `.NAME.hush-lock` is held as
/// long as the writer lives. The next build takes over or removes the files that a killed build left there
/// ([`SnapshotWriter::take_over`]).
pub struct SnapshotWriter {
    target: PathBuf,
    partial: PathBuf,
    force: bool,
    /// The lock on `.NAME.hush-lock`, held as long as the writer lives.
    _lock: BuildLock,
    pub(in crate::snapshot) phase: SharedPhase,
    pub(in crate::snapshot) cancel: Cancel,
    is_kept: AtomicBool,
}

impl SnapshotWriter {
    /// Checks whether a snapshot can be put at `target`. Changes nothing.
    pub fn check(target: &Path, force: bool) -> Result<(), SnapshotError> {
        target::check(&target::resolved(target)?, target, force)
    }

    /// Starts a snapshot at `target`. A link to a folder is followed: the snapshot replaces the folder.
    ///
    /// # Errors
    /// [`SnapshotError::Exists`] unless `force`; [`SnapshotError::NotASnapshot`] if something else is there;
    /// [`SnapshotError::DanglingLink`], [`SnapshotError::MountPoint`] or [`SnapshotError::Unwritable`] if nothing can be put
    /// there; [`SnapshotError::Busy`] if another build writes it; [`SnapshotError::NotOurs`] if the existing partial folder
    /// belongs to another user, or others can write to it.
    pub fn create(target: &Path, force: bool) -> Result<Self, SnapshotError> {
        let absolute = target::resolved(target)?;
        target::check(&absolute, target, force)?;
        let parent = absolute.parent().unwrap_or(&absolute).to_owned();
        create_folders(&parent).map_err(SnapshotError::io(&parent, "create the folder"))?;
        let lock = BuildLock::acquire(sibling(&absolute, ".hush-lock"), target)?;
        recover(&absolute)?;
        target::check(&absolute, target, force)?;
        let folder = sibling(&absolute, ".hush-partial");
        partial::check(&folder)?;
        let phase = if resume::is_left_in(&folder) { Phase::LeftOver } else { Phase::Fresh };
        if phase == Phase::Fresh {
            remove_if_there(&folder)?;
            partial::create(&folder)?;
        }
        let phase = SharedPhase::new(phase);
        let is_kept = AtomicBool::new(false);
        Ok(Self {
            target: absolute,
            partial: folder,
            force,
            _lock: lock,
            phase,
            cancel: Cancel::new(),
            is_kept,
        })
    }

    /// Makes the writer stop when `cancel` is cancelled: its long work, and that of the files that it creates from now on, then
    /// ends with [`SnapshotError::Cancelled`].
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Leaves the laid-out files to the next build, although this one fails. Call it after errors that are not due to the content
    /// of the files.
    pub fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    /// Returns the phase of the build, which another thread can watch.
    pub fn phase(&self) -> SharedPhase {
        self.phase.clone()
    }

    /// Returns the folder that the snapshot replaces: absolute, with links followed.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Returns the folder in which the files are made, on the target's disk. Scratch files can go there, too.
    pub fn partial_dir(&self) -> &Path {
        &self.partial
    }

    /// Creates the file `name` of `bytes` bytes, mapped for writing. The space is reserved first, so that a full disk is an error
    /// here, [`SnapshotError::Io`], and not a bus error later.
    pub fn create_mapped(&self, name: &str, bytes: usize) -> Result<MappedOutput, SnapshotError> {
        self.map_output(name, bytes, OpenOptions::new().create_new(true))
    }

    /// Opens the file `name` with its content, mapped for writing. If there is none, creates it like
    /// [`SnapshotWriter::create_mapped`]. Fails with [`SnapshotError::Io`].
    pub fn open_mapped(&self, name: &str, bytes: usize) -> Result<MappedOutput, SnapshotError> {
        self.map_output(name, bytes, OpenOptions::new().create(true).truncate(false))
    }

    fn map_output(
        &self,
        name: &str,
        bytes: usize,
        options: &mut OpenOptions,
    ) -> Result<MappedOutput, SnapshotError> {
        let path = self.partial.join(name);
        let file = options.read(true).write(true).open(&path);
        let file = file.map_err(SnapshotError::io(&path, "create"))?;
        system::reserve(&file, bytes as u64).map_err(SnapshotError::io(&path, "reserve space for"))?;
        file.set_len(bytes as u64).map_err(SnapshotError::io(&path, "size"))?;
        // SAFETY: no other process writes the file: it is in a folder under the writer's lock.
        let map = unsafe { MmapOptions::new().len(bytes).map_mut(&file) };
        let map = map.map_err(SnapshotError::io(&path, "map"))?;
        Ok(MappedOutput { path, name: name.into(), file, map, cancel: self.cancel.clone() })
    }

    /// Creates a scratch file of `bytes` bytes, a multiple of 4, on the target's disk. Its name is removed at once, so that the
    /// system frees it even if the process is killed. Fails with [`SnapshotError::Io`], for example if the disk is full.
    pub fn create_scratch(&self, bytes: usize) -> Result<Scratch, SnapshotError> {
        let output = self.create_mapped(".scratch", bytes)?;
        fs::remove_file(&output.path).map_err(SnapshotError::io(&output.path, "clear"))?;
        Ok(Scratch(output))
    }

    /// Writes the header, makes everything durable and puts the snapshot in place in one rename.
    ///
    /// # Errors
    /// The system's error, with the path; [`SnapshotError::Cancelled`]. The target is then unchanged.
    pub fn commit(self, header: &Header) -> Result<(), SnapshotError> {
        let path = self.partial.join(HEADER_FILE);
        let mut file = File::create_new(&path).map_err(SnapshotError::io(&path, "create"))?;
        file.write_all(header.to_text().as_bytes()).map_err(SnapshotError::io(&path, "write"))?;
        file.sync_all().map_err(SnapshotError::io(&path, "sync"))?;
        target::check(&self.target, &self.target, self.force)?;
        let mut phase = self.phase.lock();
        self.cancel.check()?;
        resume::forget(&self.partial)?;
        partial::open_to_readers(&self.partial)?;
        sync_dir(&self.partial)?;
        let old = put_in_place(&self.partial, &self.target)?;
        *phase = Phase::Committed;
        sync_dir(self.target.parent().unwrap_or(&self.target))?;
        old.map_or(Ok(()), |old| remove_if_there(&old))
    }
}

/// Makes `partial` the snapshot at `target`, in one step if the file system can exchange two names. Returns the path of the
/// replaced snapshot, if there was one.
fn put_in_place(partial: &Path, target: &Path) -> Result<Option<PathBuf>, SnapshotError> {
    let failed = SnapshotError::io(target, "put in place");
    if !target.exists() {
        return fs::rename(partial, target).map(|()| None).map_err(failed);
    }
    if system::exchange(partial, target).is_ok() {
        return Ok(Some(partial.to_owned()));
    }
    // Without an exchange there is a moment without a target. After a crash in that moment, `recover` restores the target.
    let old = sibling(target, OLD);
    remove_if_there(&old)?;
    fs::rename(target, &old).map_err(SnapshotError::io(target, "move aside"))?;
    if let Err(error) = fs::rename(partial, target) {
        // If moving back fails as well, the first error is returned.
        let _ = fs::rename(&old, target);
        return Err(failed(error));
    }
    Ok(Some(old))
}

/// Puts a snapshot back that a crash left under the name of a replaced one.
fn recover(target: &Path) -> Result<(), SnapshotError> {
    let old = sibling(target, OLD);
    if target.exists() || !old.join(HEADER_FILE).is_file() {
        return Ok(());
    }
    fs::rename(&old, target).map_err(SnapshotError::io(old, "put back"))
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        let is_removed = match *self.phase.lock() {
            Phase::Fresh => true,
            Phase::LaidOut { .. } => !self.cancel.is_cancelled() && !self.is_kept.load(Ordering::Relaxed),
            // The files of an earlier build are not this one's to remove, unless they were taken over.
            Phase::LeftOver | Phase::Committed => false,
        };
        if is_removed {
            // A failure is ignored here, because the next build clears the folder.
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}

/// A mapped file without a name.
pub struct Scratch(MappedOutput);

impl Scratch {
    /// Returns the content, which is zero at first.
    pub fn words(&mut self) -> &mut [u32] {
        self.shared().0
    }

    /// Returns the words, and a handle that removes their pages from this process's memory after they are written.
    pub fn shared(&mut self) -> (&mut [u32], Release<'_>) {
        let (bytes, release) = self.0.shared();
        // SAFETY: all bit patterns are valid words, and a map is aligned to pages.
        let (head, words, tail) = unsafe { bytes.align_to_mut() };
        assert!(head.is_empty() && tail.is_empty(), "a map of whole words");
        (words, release)
    }
}

/// A file of a snapshot, mapped for writing.
pub struct MappedOutput {
    path: PathBuf,
    name: String,
    file: File,
    map: MmapMut,
    cancel: Cancel,
}

impl MappedOutput {
    /// Returns the content.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.map
    }

    /// Returns the content, and a handle that removes its pages from this process's memory after they are written.
    pub fn shared(&mut self) -> (&mut [u8], Release<'_>) {
        let release = Release { start: self.map.as_ptr() as usize, bytes: self.map.len(), of: PhantomData };
        (&mut self.map, release)
    }

    /// Writes `bytes` at `offset`. If whole pages are new, this is faster than writing through the map. Used from any thread. Fails
    /// with [`SnapshotError::Io`].
    pub fn write_at(&self, offset: usize, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.file.write_all_at(bytes, offset as u64).map_err(SnapshotError::io(&self.path, "write"))
    }

    /// Returns the content for reading.
    pub fn as_bytes(&self) -> &[u8] {
        &self.map
    }

    /// Returns the BLAKE3 hash of the whole content, which is the name of a blob, or [`Cancelled`].
    pub fn blob_hash(&self) -> Result<[u8; 32], Cancelled> {
        let mut hasher = blake3::Hasher::new();
        for piece in self.map.chunks(PIECE_BYTES) {
            self.cancel.check()?;
            hasher.update_rayon(piece);
        }
        Ok(*hasher.finalize().as_bytes())
    }

    /// Makes the file durable and returns its entry with its checksums.
    ///
    /// # Errors
    /// The system's error, with the path; [`SnapshotError::Cancelled`].
    pub fn finish(self) -> Result<FileEntry, SnapshotError> {
        let name =
            self.name.parse().map_err(io::Error::other).map_err(SnapshotError::io(&self.path, "list"))?;
        let entry = FileEntry::new(&name, &self.map, &self.cancel)?;
        self.write_out()?;
        self.map.flush().map_err(SnapshotError::io(&self.path, "write"))?;
        self.file.sync_all().map_err(SnapshotError::io(&self.path, "sync"))?;
        Ok(entry)
    }

    /// Writes the content to disk piece by piece. One sync of all of it takes as long, and cannot be cancelled.
    fn write_out(&self) -> Result<(), SnapshotError> {
        for first in (0..self.map.len()).step_by(PIECE_BYTES) {
            self.cancel.check()?;
            let piece = first..self.map.len().min(first + PIECE_BYTES);
            system::write_out(&self.file, &self.map, piece)
                .map_err(SnapshotError::io(&self.path, "write"))?;
        }
        Ok(())
    }
}

/// A handle that removes the pages of a mapped file from this process's memory.
#[derive(Clone, Copy)]
pub struct Release<'a> {
    start: usize,
    bytes: usize,
    of: PhantomData<&'a ()>,
}

impl Release<'_> {
    /// Lets the system write the pages out. They are loaded again when they are touched.
    pub fn release(&self) {
        // SAFETY: the range is a shared map of a file that lives as long as this handle, and its pages stay in the system's cache.
        // It is advice: nothing is lost if the system ignores it.
        unsafe { libc::madvise(self.start as *mut libc::c_void, self.bytes, libc::MADV_DONTNEED) };
    }
}

/// Returns the path `.NAME<suffix>` beside `path`.
pub(in crate::snapshot) fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(suffix);
    path.with_file_name(name)
}

pub(in crate::snapshot) fn remove_if_there(path: &Path) -> Result<(), SnapshotError> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(SnapshotError::io(path, "clear")(e)),
        _ => Ok(()),
    }
}

pub(in crate::snapshot) fn sync_dir(path: &Path) -> Result<(), SnapshotError> {
    sync_folder(path).map_err(SnapshotError::io(path, "sync"))
}
