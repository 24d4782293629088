//! Writing a snapshot: everything into a partial folder beside the target, then one rename.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use memmap2::{MmapMut, MmapOptions};

use super::{FileEntry, HEADER_FILE, Header, SnapshotError};

/// A snapshot being written. Dropped without [`SnapshotWriter::commit`], it leaves nothing behind.
///
/// The files go to the hidden folder `.NAME.hush-partial` beside the target, under an exclusive lock on
/// `.NAME.hush-lock`; what a killed build left there is cleared by the next one.
pub struct SnapshotWriter {
    target: PathBuf,
    partial: PathBuf,
    force: bool,
    /// Holds the lock as long as it lives. The lock file itself stays: removing it would race.
    _lock: File,
    committed: bool,
}

impl SnapshotWriter {
    /// Starts a snapshot at `target`.
    ///
    /// # Errors
    /// [`SnapshotError::Exists`] unless `force`; [`SnapshotError::NotASnapshot`] if something else is there;
    /// [`SnapshotError::Busy`] if another build writes it.
    pub fn create(target: &Path, force: bool) -> Result<Self, SnapshotError> {
        check_target(target, force)?;
        let absolute = std::path::absolute(target).map_err(SnapshotError::io(target, "resolve"))?;
        let parent = absolute.parent().unwrap_or(&absolute).to_owned();
        fs::create_dir_all(&parent).map_err(SnapshotError::io(&parent, "create the folder"))?;
        let lock_path = sibling(&absolute, ".hush-lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&lock_path);
        let lock = lock.map_err(SnapshotError::io(&lock_path, "create the lock file"))?;
        // SAFETY: flock on a descriptor that is open for the whole call.
        if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let error = io::Error::last_os_error();
            return Err(match error.kind() {
                io::ErrorKind::WouldBlock => SnapshotError::Busy(target.to_owned()),
                _ => SnapshotError::io(lock_path, "lock")(error),
            });
        }
        let partial = sibling(&absolute, ".hush-partial");
        remove_if_there(&partial)?;
        fs::create_dir(&partial).map_err(SnapshotError::io(&partial, "create the folder"))?;
        Ok(Self { target: absolute, partial, force, _lock: lock, committed: false })
    }

    /// The folder that the files go to, on the target's disk: also good for scratch files.
    pub fn partial_dir(&self) -> &Path {
        &self.partial
    }

    /// Creates the file `name` of `bytes` bytes, mapped for writing. The space is reserved first, so that a full
    /// disk is an error here and not a bus error later.
    ///
    /// # Errors
    /// What the system says, with the path.
    pub fn create_mapped(&self, name: &str, bytes: usize) -> Result<MappedOutput, SnapshotError> {
        let path = self.partial.join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(SnapshotError::io(&path, "create"))?;
        // SAFETY: plain system call on an open descriptor.
        let code = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes.max(1) as libc::off_t) };
        if code != 0 {
            return Err(SnapshotError::io(path, "reserve space for")(io::Error::from_raw_os_error(code)));
        }
        file.set_len(bytes as u64).map_err(SnapshotError::io(&path, "size"))?;
        // SAFETY: the file is ours alone: created new in a folder under our lock.
        let map = unsafe { MmapOptions::new().len(bytes).map_mut(&file) };
        let map = map.map_err(SnapshotError::io(&path, "map"))?;
        Ok(MappedOutput { path, name: name.into(), file, map })
    }

    /// Writes the header, makes everything durable and puts the snapshot in place in one rename.
    ///
    /// # Errors
    /// What the system says, with the path. The target is then as it was.
    pub fn commit(mut self, header: &Header) -> Result<(), SnapshotError> {
        let path = self.partial.join(HEADER_FILE);
        let mut file = File::create_new(&path).map_err(SnapshotError::io(&path, "create"))?;
        file.write_all(header.to_text().as_bytes()).map_err(SnapshotError::io(&path, "write"))?;
        file.sync_all().map_err(SnapshotError::io(&path, "sync"))?;
        sync_dir(&self.partial)?;
        let old = sibling(&self.target, ".hush-old");
        remove_if_there(&old)?;
        check_target(&self.target, self.force)?;
        if self.target.exists() {
            fs::rename(&self.target, &old).map_err(SnapshotError::io(&self.target, "move aside"))?;
        }
        if let Err(error) = fs::rename(&self.partial, &self.target) {
            // Put the old one back; the first error is the one to tell.
            if old.exists() {
                let _ = fs::rename(&old, &self.target);
            }
            return Err(SnapshotError::io(&self.target, "put in place")(error));
        }
        self.committed = true;
        sync_dir(self.target.parent().unwrap_or(&self.target))?;
        remove_if_there(&old)
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if !self.committed {
            // Nothing more can be done about a failure here; the next build clears the folder.
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}

/// A file of a snapshot, mapped for writing.
pub struct MappedOutput {
    path: PathBuf,
    name: String,
    file: File,
    map: MmapMut,
}

impl MappedOutput {
    /// The content.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.map
    }

    /// The content, to read.
    pub fn as_bytes(&self) -> &[u8] {
        &self.map
    }

    /// BLAKE3 of the whole content, the name of a blob.
    pub fn blob_hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update_rayon(&self.map);
        *hasher.finalize().as_bytes()
    }

    /// Makes the file durable and computes its entry.
    ///
    /// # Errors
    /// What the system says, with the path.
    pub fn finish(self) -> Result<FileEntry, SnapshotError> {
        let entry = FileEntry::new(&self.name, &self.map);
        self.map.flush().map_err(SnapshotError::io(&self.path, "write"))?;
        self.file.sync_all().map_err(SnapshotError::io(&self.path, "sync"))?;
        Ok(entry)
    }
}

fn check_target(target: &Path, force: bool) -> Result<(), SnapshotError> {
    if !target.exists() {
        return Ok(());
    }
    let is_snapshot = target.join(HEADER_FILE).is_file();
    let is_empty_dir =
        target.is_dir() && fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_none());
    match (is_snapshot || is_empty_dir, force || is_empty_dir) {
        (false, _) => Err(SnapshotError::NotASnapshot(target.to_owned())),
        (true, false) => Err(SnapshotError::Exists(target.to_owned())),
        (true, true) => Ok(()),
    }
}

/// `.NAME<suffix>` beside `path`.
fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(suffix);
    path.with_file_name(name)
}

fn remove_if_there(path: &Path) -> Result<(), SnapshotError> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(SnapshotError::io(path, "clear")(e)),
        _ => Ok(()),
    }
}

fn sync_dir(path: &Path) -> Result<(), SnapshotError> {
    let dir = File::open(path).map_err(SnapshotError::io(path, "open"))?;
    dir.sync_all().map_err(SnapshotError::io(path, "sync"))
}
