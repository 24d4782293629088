//! The files that a killed build leaves to the next one: the laid-out table, and the identity of its input.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use hush_protocol::descriptor::Descriptor;
use serde::{Deserialize, Serialize};

use super::{segment::segment_of, writer};
use crate::cancel::{Cancel, Cancelled};
use crate::snapshot::{
    ADDED_FENCES_FILE, CHAIN_FILE, CHANGES_FILE, COLUMNS_FILE, ChangeCount, Choice, DB_FILE, DICTIONARY_FILE,
    FENCES_FILE, FileEntry, HINT_FILE, KEYS_FILE, LIFTED_FILE, MappedFile, Phase, SnapshotError,
    SnapshotWriter, VALUES_FILE, envelope, reading::regular,
};

/// The file of the state, in an [`envelope`].
const STATE_FILE: &str = "build.json";
/// The file of the units that are done ([`crate::snapshot::Journal`]).
pub(in crate::snapshot) const JOURNAL_FILE: &str = "build.journal";
/// The files from which a build can resume.
const KEPT: [&str; 13] = [
    STATE_FILE,
    JOURNAL_FILE,
    DB_FILE,
    DICTIONARY_FILE,
    FENCES_FILE,
    ADDED_FENCES_FILE,
    COLUMNS_FILE,
    CHAIN_FILE,
    HINT_FILE,
    LIFTED_FILE,
    KEYS_FILE,
    VALUES_FILE,
    CHANGES_FILE,
];

/// Everything that a table depends on, except random seeds. A build resumes only a build of the same identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The program, with the versions of its formats.
    pub program: String,
    /// All options of the build.
    pub options: String,
    /// The digest of the records.
    #[serde(with = "hex")]
    pub records: [u8; 32],
}

/// A laid-out table, before anything is computed from its database. It holds the random seeds that were drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    /// The identity of the input.
    pub identity: Identity,
    /// The descriptor, without hint, and not sealed yet.
    pub descriptor: Descriptor,
    /// The reasons for this table, if there was a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// The count of changes, in a table that has room for changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangeCount>,
    /// [`DB_FILE`] of every segment, the base first; then [`DICTIONARY_FILE`], and the records and changes, if there are any.
    pub files: Vec<FileEntry>,
}

impl State {
    /// Returns the state that is saved in `dir`; `None` if there is none, or it is damaged.
    pub fn read(dir: &Path) -> Option<Self> {
        let text = io::read_to_string(regular::open(&dir.join(STATE_FILE)).ok()?).ok()?;
        serde_json::from_str(envelope::open(&text).ok()?).ok()
    }

    /// Returns the bytes of all files.
    pub fn file_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns whether all files of the state are in `dir`, with the right content.
    fn has_files(&self, dir: &Path, cancel: &Cancel) -> Result<bool, Cancelled> {
        for entry in &self.files {
            // A file with any other name cannot be kept, and could lie outside the folder.
            if !KEPT.contains(&segment_of(&entry.name).1) {
                return Ok(false);
            }
            let Ok(file) = MappedFile::open(&dir.join(&entry.name)) else { return Ok(false) };
            if FileEntry::new(&entry.name, file.as_ref(), cancel)? != *entry {
                return Ok(false);
            }
        }
        Ok(!self.files.is_empty())
    }
}

impl SnapshotWriter {
    /// Saves the state. The database has to be durable. From now on, a killed build can be resumed. Fails with
    /// [`SnapshotError::Io`].
    pub fn save(&self, state: &State) -> Result<(), SnapshotError> {
        let path = self.partial_dir().join(STATE_FILE);
        let unfinished = path.with_extension("tmp");
        let mut file = File::create(&unfinished).map_err(SnapshotError::io(&unfinished, "create"))?;
        let text = envelope::close(state);
        file.write_all(text.as_bytes()).map_err(SnapshotError::io(&unfinished, "write"))?;
        file.sync_all().map_err(SnapshotError::io(&unfinished, "sync"))?;
        let mut phase = self.phase.lock();
        fs::rename(&unfinished, &path).map_err(SnapshotError::io(&path, "put in place"))?;
        writer::sync_dir(self.partial_dir())?;
        *phase = Phase::LaidOut { done: 0, units: 0 };
        Ok(())
    }

    /// Takes over the files of an earlier build of the same `identity`, if its database is intact. `checking` gets the number of
    /// bytes before they are read. All other files are removed.
    ///
    /// # Errors
    /// The system's error, with the path. [`SnapshotError::Cancelled`] while the database is read: nothing is removed then.
    pub fn take_over(
        &self,
        identity: &Identity,
        checking: impl FnOnce(u64),
    ) -> Result<Option<State>, SnapshotError> {
        if *self.phase.lock() != Phase::LeftOver {
            return Ok(None);
        }
        let same = State::read(self.partial_dir()).filter(|state| state.identity == *identity);
        if let Some(state) = same {
            checking(state.file_bytes());
            if state.has_files(self.partial_dir(), &self.cancel)? {
                sweep(self.partial_dir(), |name| KEPT.contains(&segment_of(name).1))?;
                *self.phase.lock() = Phase::LaidOut { done: 0, units: 0 };
                return Ok(Some(state));
            }
        }
        self.discard()?;
        Ok(None)
    }

    /// Removes the files of an earlier build. Fails with [`SnapshotError::Io`].
    pub fn discard(&self) -> Result<(), SnapshotError> {
        *self.phase.lock() = Phase::Fresh;
        sweep(self.partial_dir(), |_| false)
    }
}

/// Returns whether an earlier build left a state in `dir`.
pub(in crate::snapshot) fn is_left_in(dir: &Path) -> bool {
    dir.join(STATE_FILE).is_file()
}

/// Removes the files that have no use after all files of the table are written.
pub(in crate::snapshot) fn forget(dir: &Path) -> Result<(), SnapshotError> {
    sweep(dir, |name| ![STATE_FILE, JOURNAL_FILE].contains(&segment_of(name).1))
}

/// Removes a file, if it is there.
pub(in crate::snapshot) fn remove_file(path: &Path) -> Result<(), SnapshotError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(SnapshotError::io(path, "remove")(e)),
        _ => Ok(()),
    }
}

/// Removes everything in `dir`, except those for whose name `is_kept` returns true.
pub(in crate::snapshot) fn sweep(dir: &Path, is_kept: impl Fn(&str) -> bool) -> Result<(), SnapshotError> {
    for entry in fs::read_dir(dir).map_err(SnapshotError::io(dir, "list"))? {
        let entry = entry.map_err(SnapshotError::io(dir, "list"))?;
        if !entry.file_name().to_str().is_some_and(&is_kept) {
            // The folder of `open_to_readers` may be left after a loss of power.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder { writer::remove_if_there(&entry.path()) } else { remove_file(&entry.path()) }?;
        }
    }
    Ok(())
}
