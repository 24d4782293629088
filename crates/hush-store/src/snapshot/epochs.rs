//! Epochs that are kept beside a table, to go back to. They share the files of the table that did not change (hard links).

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::snapshot::{
    HEADER_FILE, Header, Snapshot, SnapshotError, Verify,
    changes::take_file,
    writing::{
        lock::BuildLock,
        writer::{remove_if_there, sibling, sync_dir},
    },
};

/// The suffix of the folder of a table's kept epochs.
const EPOCHS: &str = ".epochs";
/// The suffix of the folder of a copy that is compacted.
const BESIDE: &str = ".compact";
/// The suffix of its lock.
const BESIDE_LOCK: &str = ".compact-lock";
/// The suffix of an epoch that is not whole yet.
const UNFINISHED: &str = ".part";

/// An epoch that is kept.
#[derive(Clone, Debug)]
pub struct KeptEpoch {
    /// The folder of the epoch.
    pub path: PathBuf,
    /// The header.
    pub header: Header,
    /// The time at which it was kept.
    pub since: SystemTime,
}

/// Keeps the epoch that is in the folder `table`, and at most `most` epochs in all, the last ones.
///
/// # Errors
/// The table cannot be opened, or a file cannot be linked or copied.
pub fn keep_epoch(table: &Path, most: usize) -> Result<(), SnapshotError> {
    let header = Snapshot::open(table, Verify::Header)?.header().clone();
    let folder = sibling(table, EPOCHS);
    let name = hex::encode(header.descriptor.epoch);
    let (kept, unfinished) = (folder.join(&name), folder.join(name + UNFINISHED));
    if kept.exists() {
        // It is the newest again.
        let now = File::open(&kept).and_then(|dir| dir.set_modified(SystemTime::now()));
        now.map_err(SnapshotError::io(&kept, "touch"))?;
    } else {
        copy_epoch(table, &header, &unfinished, &kept)?;
    }
    let mut all = kept_epochs(table)?;
    let old = all.len().saturating_sub(most);
    all.drain(..old).try_for_each(|epoch| remove_if_there(&epoch.path))
}

/// Puts the epoch of `table` at `kept`, by way of `unfinished` in the same folder.
fn copy_epoch(table: &Path, header: &Header, unfinished: &Path, kept: &Path) -> Result<(), SnapshotError> {
    remove_if_there(unfinished)?;
    fs::create_dir_all(unfinished).map_err(SnapshotError::io(unfinished, "create"))?;
    for file in header.files.iter().map(|file| &file.name[..]).chain([HEADER_FILE]) {
        take_file(table, unfinished, file)?;
    }
    sync_dir(unfinished)?;
    fs::rename(unfinished, kept).map_err(SnapshotError::io(kept, "put in place"))?;
    kept.parent().map_or(Ok(()), sync_dir)
}

/// A copy of an epoch beside its table, of which a new base is made while the table goes on changing. Nobody else uses it as long
/// as this value lives.
pub struct CopyBeside {
    folder: PathBuf,
    _lock: BuildLock,
}

impl CopyBeside {
    /// Holds the place of the copy of the table at `table`. A copy may be left there.
    ///
    /// # Errors
    /// [`SnapshotError::Busy`] if somebody else holds it.
    pub fn hold(table: &Path) -> Result<Self, SnapshotError> {
        let lock = BuildLock::acquire(sibling(table, BESIDE_LOCK), table)?;
        Ok(Self { folder: sibling(table, BESIDE), _lock: lock })
    }

    /// Returns the folder of the copy, which is a table of its own.
    pub fn table(&self) -> PathBuf {
        self.folder.join("table")
    }

    /// Makes the copy of the epoch that `table` has, in place of another one.
    ///
    /// # Errors
    /// The table cannot be opened, or a file cannot be linked or copied.
    pub fn make(&self, table: &Path) -> Result<(), SnapshotError> {
        self.remove()?;
        let header = Snapshot::open(table, Verify::Header)?.header().clone();
        copy_epoch(table, &header, &self.folder.join(UNFINISHED), &self.table())
    }

    /// Removes the copy, with what is half made of it.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove(&self) -> Result<(), SnapshotError> {
        remove_if_there(&self.folder)
    }

    /// Removes a copy of the table at `table` that nobody works on.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove_left(table: &Path) -> Result<(), SnapshotError> {
        if !sibling(table, BESIDE).exists() {
            return Ok(());
        }
        match Self::hold(table) {
            Err(SnapshotError::Busy(_)) => Ok(()),
            held => held?.remove(),
        }
    }
}

/// Returns the kept epochs of the table at `table`, the oldest first. Folders that hold no snapshot are left out.
///
/// # Errors
/// The folder of the epochs cannot be read.
pub fn kept_epochs(table: &Path) -> Result<Vec<KeptEpoch>, SnapshotError> {
    let folder = sibling(table, EPOCHS);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SnapshotError::io(&folder, "read")(error)),
    };
    let mut all = Vec::new();
    for entry in entries {
        let path = entry.map_err(SnapshotError::io(&folder, "read"))?.path();
        if path.to_string_lossy().ends_with(UNFINISHED) {
            continue;
        }
        let Ok(snapshot) = Snapshot::open(&path, Verify::Header) else { continue };
        let since =
            path.metadata().and_then(|own| own.modified()).map_err(SnapshotError::io(&path, "read"))?;
        all.push(KeptEpoch { header: snapshot.header().clone(), path, since });
    }
    all.sort_by_key(|epoch| epoch.since);
    Ok(all)
}
