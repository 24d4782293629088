//! The files that a killed build leaves to the next one: the table as it was laid out, and the identity of its input.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use hush_protocol::descriptor::Descriptor;
use serde::{Deserialize, Serialize};

use super::{segment::segment_of, writer::sync_dir};
use crate::cancel::{Cancel, Cancelled};
use crate::snapshot::{
    CHAIN_FILE, CHANGES_FILE, COLUMNS_FILE, ChangeCount, Choice, DB_FILE, DICTIONARY_FILE, FileEntry,
    HINT_FILE, KEYS_FILE, LIFTED_FILE, MappedFile, Phase, SnapshotError, SnapshotWriter, VALUES_FILE,
    envelope, reading::regular,
};

/// The state, an [`envelope`].
const STATE_FILE: &str = "build.json";
/// The units that are done ([`crate::snapshot::Journal`]).
pub(in crate::snapshot) const JOURNAL_FILE: &str = "build.journal";
/// The files from which a build can resume.
const KEPT: [&str; 11] = [
    STATE_FILE,
    JOURNAL_FILE,
    DB_FILE,
    DICTIONARY_FILE,
    COLUMNS_FILE,
    CHAIN_FILE,
    HINT_FILE,
    LIFTED_FILE,
    KEYS_FILE,
    VALUES_FILE,
    CHANGES_FILE,
];

/// All that a table depends on but random seeds. A build goes on from one of the same identity only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The program and the versions of what it writes.
    pub program: String,
    /// Every choice.
    pub options: String,
    /// Digest of the records.
    #[serde(with = "hex")]
    pub records: [u8; 32],
}

/// A table laid out, before what is computed from its database. It holds the random seeds that were drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    /// The identity of the input.
    pub identity: Identity,
    /// The descriptor, without hint, not sealed yet.
    pub descriptor: Descriptor,
    /// Why it is this table, if there was a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// The count of changes, in a table that has room for changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangeCount>,
    /// [`DB_FILE`] of every segment, the base first; then [`DICTIONARY_FILE`], and the records and changes, if there are any.
    pub files: Vec<FileEntry>,
}

impl State {
    /// Returns the state in `dir`, if there is a whole one.
    pub fn read(dir: &Path) -> Option<Self> {
        let text = io::read_to_string(regular::open(&dir.join(STATE_FILE)).ok()?).ok()?;
        serde_json::from_str(envelope::open(&text).ok()?).ok()
    }

    /// Returns the bytes of all files.
    pub fn file_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns whether every byte of the files is there.
    fn has_files(&self, dir: &Path, cancel: &Cancel) -> Result<bool, Cancelled> {
        for entry in &self.files {
            // What is kept has such a name, and is in the folder itself.
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
    /// Saves the state, once the database is durable: from now on a killed build leaves something to go on from.
    pub fn save(&self, state: &State) -> Result<(), SnapshotError> {
        let path = self.partial_dir().join(STATE_FILE);
        let unfinished = path.with_extension("tmp");
        let mut file = File::create(&unfinished).map_err(SnapshotError::io(&unfinished, "create"))?;
        let text = envelope::close(state);
        file.write_all(text.as_bytes()).map_err(SnapshotError::io(&unfinished, "write"))?;
        file.sync_all().map_err(SnapshotError::io(&unfinished, "sync"))?;
        let mut phase = self.phase.lock();
        fs::rename(&unfinished, &path).map_err(SnapshotError::io(&path, "put in place"))?;
        sync_dir(self.partial_dir())?;
        *phase = Phase::LaidOut { done: 0, units: 0 };
        Ok(())
    }

    /// Takes over what an earlier build of the same `identity` left, if its database is whole: `checking` is told the length
    /// before it is read. Whatever is not taken over is removed.
    ///
    /// # Errors
    /// What the system says, with the path. [`SnapshotError::Cancelled`] while the database is read: all is left as it is.
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

    /// Removes what an earlier build left.
    pub fn discard(&self) -> Result<(), SnapshotError> {
        *self.phase.lock() = Phase::Fresh;
        sweep(self.partial_dir(), |_| false)
    }
}

/// Returns whether an earlier build left a state in `dir`.
pub(in crate::snapshot) fn is_left_in(dir: &Path) -> bool {
    dir.join(STATE_FILE).is_file()
}

/// Removes what is of no use once all files are written.
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

/// Removes all files of `dir` but those whose name `is_kept`.
pub(in crate::snapshot) fn sweep(dir: &Path, is_kept: impl Fn(&str) -> bool) -> Result<(), SnapshotError> {
    for entry in fs::read_dir(dir).map_err(SnapshotError::io(dir, "list"))? {
        let entry = entry.map_err(SnapshotError::io(dir, "list"))?;
        if !entry.file_name().to_str().is_some_and(&is_kept) {
            remove_file(&entry.path())?;
        }
    }
    Ok(())
}
