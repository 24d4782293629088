//! The journal of a long stage: the units that are done, after which a killed build resumes.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use rayon::prelude::*;

use super::resume::{JOURNAL_FILE, remove_file};
use crate::cancel::{Cancel, Cancelled};
use crate::snapshot::{Phase, SharedPhase, SnapshotError, SnapshotWriter, segment_file};

/// The bytes of an entry: the unit's number and its checksum.
const ENTRY_BYTES: usize = size_of::<u64>() + size_of::<Checksum>();

/// The number of bytes from which on all threads hash them.
const ON_ALL_THREADS: usize = 1 << 20;

type Checksum = [u8; blake3::OUT_LEN];

/// An append-only file of the units that are done, each with the checksum of its content. It is not synced: units whose entry or
/// content a power loss took do not match, and are done again.
pub struct Journal {
    path: PathBuf,
    file: File,
    key: [u8; blake3::KEY_LEN],
    /// The checksum of every unit that an earlier build recorded; `None` for other units.
    recorded: Vec<Option<Checksum>>,
    phase: SharedPhase,
    cancel: Cancel,
}

impl SnapshotWriter {
    /// Opens the journal of segment `segment`, like [`crate::snapshot::SegmentWriter::open_journal`].
    pub(in crate::snapshot) fn open_journal(
        &self,
        segment: usize,
        files: &[(&str, usize)],
        units: usize,
        key: [u8; blake3::KEY_LEN],
    ) -> Result<Journal, SnapshotError> {
        let path = self.partial_dir().join(segment_file(segment, JOURNAL_FILE));
        if !files.iter().all(|(name, bytes): &(&str, usize)| {
            fs::metadata(self.partial_dir().join(name)).is_ok_and(|meta| meta.len() == *bytes as u64)
        }) {
            remove_file(&path)?;
            files.iter().try_for_each(|(name, _)| remove_file(&self.partial_dir().join(name)))?;
        }
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.map_err(SnapshotError::io(&path, "open"))?;
        let recorded = read_entries(&file, &path, units).map_err(SnapshotError::io(&path, "read"))?;
        *self.phase.lock() = Phase::LaidOut { done: 0, units };
        let phase = self.phase.clone();
        let cancel = self.cancel.clone();
        Ok(Journal { path, file, key, recorded, phase, cancel })
    }
}

/// Returns the last checksum of each unit. Cuts an incomplete entry at the end off, so that the next one is aligned.
fn read_entries(file: &File, path: &Path, units: usize) -> io::Result<Vec<Option<Checksum>>> {
    let bytes = fs::read(path)?;
    let (entries, torn) = bytes.as_chunks::<ENTRY_BYTES>();
    file.set_len((bytes.len() - torn.len()) as u64)?;
    let mut recorded = vec![None; units];
    for entry in entries {
        let unit = u64::from_le_bytes(std::array::from_fn(|i| entry[i]));
        if let Some(slot) = usize::try_from(unit).ok().and_then(|unit| recorded.get_mut(unit)) {
            *slot = Some(std::array::from_fn(|i| entry[size_of::<u64>() + i]));
        }
    }
    Ok(recorded)
}

impl Journal {
    /// Returns the number of units that an earlier build recorded.
    pub fn recorded(&self) -> usize {
        self.recorded.iter().flatten().count()
    }

    /// Returns the units that an earlier build recorded and whose content is unchanged, ascending. Runs on all threads.
    /// `content` passes the content of a unit to a function, in order, in one or several chunks.
    ///
    /// # Errors
    /// [`Cancelled`] if the build was cancelled.
    pub fn intact(
        &self,
        content: impl Fn(usize, &mut dyn FnMut(&[u8])) + Sync,
    ) -> Result<Vec<usize>, Cancelled> {
        let intact: Vec<usize> = (0..self.recorded.len())
            .into_par_iter()
            .filter_map(|unit: usize| {
                if let Err(cancelled) = self.cancel.check() {
                    return Some(Err(cancelled));
                }
                let recorded = self.recorded[unit]?;
                let is_intact = self.checksum(unit, |take| content(unit, take)) == recorded;
                is_intact.then_some(Ok(unit))
            })
            .collect::<Result<_, _>>()?;
        *self.phase.lock() = Phase::LaidOut { done: intact.len(), units: self.recorded.len() };
        Ok(intact)
    }

    /// Records that a unit with this content is written. Used from any thread. Fails with [`SnapshotError::Io`].
    pub fn record(&self, unit: usize, content: &[u8]) -> Result<(), SnapshotError> {
        let mut entry = (unit as u64).to_le_bytes().to_vec();
        entry.extend(self.checksum(unit, |take| take(content)));
        let mut phase = self.phase.lock();
        (&self.file).write_all(&entry).map_err(SnapshotError::io(&self.path, "write"))?;
        if let Phase::LaidOut { done, .. } = &mut *phase {
            *done += 1;
        }
        Ok(())
    }

    fn checksum(&self, unit: usize, content: impl FnOnce(&mut dyn FnMut(&[u8]))) -> Checksum {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(unit as u64).to_le_bytes());
        content(&mut |bytes| {
            if bytes.len() < ON_ALL_THREADS {
                hasher.update(bytes)
            } else {
                hasher.update_rayon(bytes)
            };
        });
        *hasher.finalize().as_bytes()
    }
}
