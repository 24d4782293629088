//! A table that follows a table of PostgreSQL, by the changes of a replication slot.
//!
//! An epoch has the changes of whole transactions, and in its header the position behind them. The slot forgets them once the epoch
//! is in place: a stop in between repeats the look at them, and they are passed over. A slot goes on, too, where nothing of the
//! table changes, so that the database can remove what it has written. A note beside the table says so. By it a table that has gone
//! back to an older epoch is told from one that misses nothing.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use hush_engine::{Backends, Progress};
use hush_ingest::{DatabaseBatch, DatabaseChanges, IngestError, IngestOptions, Input, ReplicationSlot};
use hush_protocol::{descriptor::Descriptor, schema::Column, slot::MAX_VALUE_BYTES};
use hush_store::{
    cancel::Cancel,
    snapshot::{FollowedPosition, Header},
    whole_file,
};
use serde::{Deserialize, Serialize};

use crate::{
    FollowError, FollowOptions, FollowedEpoch,
    follow::{Follower, LOOK, room_of},
    update::key_of,
};

/// The interval at which a slot without changes of the table goes on.
const IDLE: Duration = Duration::from_secs(10);
/// The interval at which a database that is away is tried again.
const AWAY: Duration = Duration::from_secs(1);

/// The table of a database that is followed.
#[derive(Clone, Debug)]
pub struct FollowedTable {
    /// The URL of the database.
    pub url: Input,
    /// The slot and the publication.
    pub slot: ReplicationSlot,
    /// The name of the table, if the publication has several.
    pub table: Option<String>,
}

/// The note beside a table about how far its slot went on.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct SlotNote {
    slot: String,
    /// The hash of the base that the table had before it followed.
    #[serde(with = "hex")]
    base: [u8; 32],
    /// The number of the table within the database.
    relation: u32,
    /// The position of the table; 0 before its first change.
    position: u64,
    /// The position of the slot, up to which nothing of the table has changed since.
    forgotten: u64,
}

/// Applies the changes of a database to the table at `dir` until `stop` is cancelled. `told` is called after every epoch that is in
/// place.
///
/// # Errors
/// [`FollowError`]. What `told` was told of is in place, and nothing that the slot has forgotten is missing.
pub fn follow_database(
    dir: &Path,
    from: &FollowedTable,
    options: &FollowOptions,
    backends: &Backends,
    stop: &Cancel,
    progress: &dyn Progress,
    mut told: impl FnMut(&FollowedEpoch),
) -> Result<(), FollowError> {
    let follower = Follower::new(dir, options, backends, progress);
    let descriptor = follower.header()?.descriptor;
    let names = |columns: &[Column]| columns.iter().map(|Column(name, _)| name.clone()).collect();
    let ingest = IngestOptions {
        key: options.key.clone(),
        value: descriptor.schema.as_ref().map(|schema| names(&schema.value)).unwrap_or_default(),
        table: from.table.clone(),
        max_value_size: MAX_VALUE_BYTES as u32,
        ..IngestOptions::default()
    };
    let session = FollowSession { follower: &follower, from, place: NotePlace::of(dir) };
    let mut is_connected = false;
    while !stop.is_cancelled() {
        let (outcome, is_lost) = match DatabaseChanges::open(&from.url, from.slot.clone(), &ingest) {
            Ok(mut changes) => {
                if let Some(left_out) = changes.left_out().filter(|_| !is_connected) {
                    progress.note(&format!("the publication leaves out {left_out}"));
                }
                is_connected = true;
                let outcome = session.run(&mut changes, stop, &mut told);
                (outcome, changes.is_lost())
            }
            // A database that was there may come back.
            Err(error) => (Err(error.into()), is_connected),
        };
        match outcome {
            Err(error @ FollowError::Source(_)) if is_lost => {
                progress.note(&format!("waiting for the database: {error}"));
                thread::sleep(AWAY);
            }
            outcome => return outcome,
        }
    }
    Ok(())
}

/// The table and the place of its note, for any connection.
struct FollowSession<'a> {
    follower: &'a Follower<'a>,
    from: &'a FollowedTable,
    place: NotePlace,
}

impl FollowSession<'_> {
    /// Follows until the connection ends or `stop` is cancelled.
    fn run(
        &self,
        changes: &mut DatabaseChanges,
        stop: &Cancel,
        told: &mut impl FnMut(&FollowedEpoch),
    ) -> Result<(), FollowError> {
        let Self { follower, from, place, .. } = self;
        let slot = &from.slot.slot;
        let header = follower.header()?;
        let mut note = SlotNote::started(&header, slot, changes, place)?;
        let most = follower.options.most.min(room_of(&header).max(1));
        let mut moved = Instant::now();
        while !stop.is_cancelled() {
            let began = Instant::now();
            let [forgotten, now] = changes.positions()?;
            if forgotten > note.forgotten {
                return Err(FollowError::Behind { slot: slot.clone() });
            }
            let batch = changes.look(note.position, most)?;
            let is_idle = batch.as_ref().is_none_or(|batch| batch.changes.is_empty());
            match batch {
                Some(batch) if !batch.changes.is_empty() => {
                    let position = batch.position;
                    let followed =
                        FollowedPosition { slot: Some(slot.clone()), relation: note.relation, position };
                    let made = epoch(follower, &header.descriptor, batch, followed)?;
                    told(&made);
                    note.position = position;
                    note.forget(place, position, changes)?;
                    moved = Instant::now();
                }
                // Transactions that are known, or change nothing of the table.
                Some(batch) => note.forget(place, batch.position, changes)?,
                None if moved.elapsed() >= IDLE => {
                    note.forget(place, now, changes)?;
                    moved = Instant::now();
                }
                None => {}
            }
            let every = follower.options.every;
            while is_idle && began.elapsed() < every && !stop.is_cancelled() {
                thread::sleep(LOOK.min(every));
            }
        }
        Ok(())
    }
}

impl SlotNote {
    /// Returns the note of a table that begins to follow. Refuses one that is older than what the slot has forgotten.
    fn started(
        header: &Header,
        slot: &str,
        changes: &DatabaseChanges,
        place: &NotePlace,
    ) -> Result<Self, FollowError> {
        let [forgotten, _] = changes.positions()?;
        let relation = changes.relation();
        let base = header.descriptor.database;
        let followed = header.followed.as_ref();
        let own = followed.filter(|followed| followed.slot.as_deref() == Some(slot));
        if own.is_some_and(|own| own.relation != relation) {
            return Err(FollowError::OtherTable);
        }
        let position = own.map_or(0, |own| own.position);
        // A note about a table that was there before this one was built is of no use.
        let known = place.read().filter(|note| note.slot == slot && (own.is_some() || note.base == base));
        let is_behind = match (&known, followed) {
            _ if position >= forgotten => false,
            (Some(known), _) => known.position != position || known.forgotten < forgotten,
            // What was built from the database has all that was written before.
            (None, Some(built)) if built.slot.is_none() => built.position < forgotten,
            (None, Some(_)) => true,
            // It is not known when a table of another origin was made.
            (None, None) => false,
        };
        if is_behind {
            return Err(FollowError::Behind { slot: slot.into() });
        }
        let base = known.map_or(base, |known| known.base);
        Ok(Self { slot: slot.into(), base, relation, position, forgotten })
    }

    /// Has the slot forget changes up to a position, and writes that down before.
    fn forget(
        &mut self,
        place: &NotePlace,
        position: u64,
        changes: &DatabaseChanges,
    ) -> Result<(), FollowError> {
        self.forgotten = position;
        place.write(self).map_err(FollowError::Write)?;
        Ok(changes.forget(position)?)
    }
}

/// Makes an epoch of a batch.
fn epoch(
    follower: &Follower<'_>,
    descriptor: &Descriptor,
    batch: DatabaseBatch,
    followed: FollowedPosition,
) -> Result<FollowedEpoch, FollowError> {
    let position = followed.position;
    let batch = distinct(batch, descriptor)?;
    let count = batch.changes.len();
    let [puts, deletes] = batch.inputs(followed.slot.as_deref().unwrap_or_default());
    let updated = follower.applied_inputs(puts, deletes, Some(followed));
    let updated = updated.map_err(|source| FollowError::Database { position, source: Box::new(source) })?;
    let epoch = updated.header.descriptor.epoch;
    Ok(FollowedEpoch { epoch, lines: 0, position: Some(position), changes: count })
}

/// Leaves of the changes of keys that are one in the table, such as in another case, the last one.
fn distinct(mut batch: DatabaseBatch, descriptor: &Descriptor) -> Result<DatabaseBatch, FollowError> {
    let mut last = std::collections::HashMap::new();
    for (at, (key, _)) in batch.changes.iter().enumerate() {
        let own = key_of(&batch.columns.key_parts(key), &batch.columns, descriptor);
        let own = own.map_err(|source| FollowError::Together(Box::new(source)))?;
        last.insert(own, at);
    }
    let mut kept: Vec<usize> = last.into_values().collect();
    kept.sort_unstable();
    let mut kept = kept.into_iter().peekable();
    let mut at = 0;
    batch.changes.retain(|_| {
        let is_last = kept.next_if_eq(&at).is_some();
        at += 1;
        is_last
    });
    Ok(batch)
}

/// The place of the note.
struct NotePlace(PathBuf);

impl NotePlace {
    fn of(dir: &Path) -> Self {
        let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self(dir.with_file_name(format!(".{name}.followed")))
    }

    fn read(&self) -> Option<SlotNote> {
        serde_json::from_slice(&fs::read(&self.0).ok()?).ok()
    }

    fn write(&self, note: &SlotNote) -> io::Result<()> {
        whole_file::write(&self.0, &serde_json::to_string(note)?, 0o600)
    }
}

impl From<IngestError> for FollowError {
    fn from(error: IngestError) -> Self {
        Self::Source(Box::new(error))
    }
}
