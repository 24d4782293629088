//! Changes to a table that is there: applied as a new epoch of it, and folded into a new base one day.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    path::{Path, PathBuf},
    str,
    sync::Arc,
    time::Instant,
};

use hush_engine::{Backends, Progress};
use hush_ingest::{
    IngestOptions, Input, NotCast, OnDuplicate, Record, Spool, SpooledRecords, cast_value, key_list,
    shown_key,
};
use hush_protocol::{
    ProtocolError,
    descriptor::{Descriptor, Lookup},
    keyword::position_key,
    schema::{Column, KEY_SEPARATOR, Schema},
    signature::PublicKey,
    wording::{Slot, Wording},
};
use hush_store::{
    cancel::Cancel,
    snapshot::{
        Changes, Header, KEYS_FILE, KeptRecords, SharedPhase, Snapshot, SnapshotWriter, Verify, keys,
    },
};
use thiserror::Error;

use crate::{
    JobError,
    builder::{
        self, BuildError, BuildOptions, ChangeRoom, Compress, DEFAULT_TIERS, Previous, Signing, Tiers,
        shown_change,
    },
    fetched,
    job::{Watched, spool},
};

/// The request of an update.
#[derive(Clone, Debug)]
pub struct ApplyRequest {
    /// Records that are new, or have a new value.
    pub changes: Option<Input>,
    /// Records that are to go: a list of keys, one a line (`.txt`), or any input, of which the key columns are read.
    pub delete: Option<Input>,
    /// How rows become records. Of a table by position, the key is the position.
    pub ingest: IngestOptions,
    /// The rule for several changes of one key.
    pub on_duplicate: OnDuplicate,
}

/// The request of a compaction: the properties of the new base.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompactRequest {
    /// Values up to this length are to have room, although none is as long.
    pub longest: Option<usize>,
    /// Room for changes; as before if not given.
    pub changes: Option<usize>,
    /// Whether a table is built that this machine has no room for.
    pub force_size: bool,
}

/// A new epoch, which is in place.
#[derive(Debug)]
pub struct Updated {
    /// The header of the table.
    pub header: Header,
    /// Whether queries for the epoch before are answered by it.
    pub keeps_geometry: bool,
    /// Seconds since the start.
    pub seconds: f64,
}

/// Why there is no new epoch. The table is as it was.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum UpdateError {
    #[error(
        "there is nothing to change: {}",
        Wording("name a file of changes, or one of keys to delete with {delete}")
    )]
    Nothing,
    #[error(
        "which record a change is of is not said: {}",
        Wording("name its column, or that of the position, with {key}")
    )]
    NoKey,
    #[error(
        "the table has {part}s of the columns {}, and the changes have {part}s of the columns {}: choose the table's columns \
         with {}, or rename the columns of the changes",
        columns(table),
        columns(changes),
        Slot::Option(part)
    )]
    OtherColumns { part: &'static str, table: Vec<String>, changes: Vec<String> },
    #[error(
        "row {row} of the changes: the column {} of the table is of type {}; convert the changes, or build the table again",
        field.column.escape_debug(),
        field.expected
    )]
    OtherType { row: u64, field: NotCast },
    /// A key is none of the table's.
    #[error(transparent)]
    Key(ProtocolError),
    #[error("there is no record of the key '{key}', so that it cannot be deleted: leave it out")]
    Absent { key: String },
    #[error("the record of the key '{key}' is to be changed and to be deleted: decide which")]
    ChangedAndDeleted { key: String },
    #[error(
        "the record of the key '{key}' is to be changed twice: {}",
        Wording("leave one out, or keep one with {on-duplicate=first} or {on-duplicate=last}")
    )]
    ChangedTwice { key: String },
    #[error("the key '{key}' is to be deleted twice: leave one out")]
    DeletedTwice { key: String },
    #[error("'{text}' is not a position of this table, which has records 0 to {last}")]
    Position { text: String, last: u64 },
    #[error(
        "the table is signed by {publisher}, and clients that trust it take no other: {}",
        Wording("sign the new epoch too ({sign})")
    )]
    Unsigned { publisher: PublicKey },
    #[error("the table has no changes to fold into its base")]
    NoChanges,
    #[error("{}: cannot be read: {source}", path.display())]
    Keys { path: PathBuf, source: io::Error },
    /// Reading the changes, building, or the folder.
    #[error(transparent)]
    Job(JobError),
}

impl<E: Into<JobError>> From<E> for UpdateError {
    fn from(error: E) -> Self {
        Self::Job(error.into())
    }
}

/// Columns for a message.
fn columns(names: &[String]) -> String {
    if names.is_empty() { "(none)".into() } else { names.join(", ") }
}

/// A table that is to change, and the right to change it, which nobody else has meanwhile. Dropped before it runs, it leaves
/// nothing behind.
pub struct Update {
    dir: PathBuf,
    writer: SnapshotWriter,
    snapshot: Snapshot,
    signing: Option<Signing>,
    cancel: Cancel,
    start: Instant,
}

impl Update {
    /// Opens a table that has room for changes. `signing` signs its next epoch.
    ///
    /// # Errors
    /// [`UpdateError::Unsigned`]; [`UpdateError::Job`] if there is no such table, it has no room for changes, or another change is
    /// under way.
    pub fn open(named: &Path, signing: Option<Signing>, cancel: &Cancel) -> Result<Self, UpdateError> {
        let start = Instant::now();
        // Something has to be there before anything is made beside it. A link to a folder stays one.
        Snapshot::open(named, Verify::Header)?;
        let writer = SnapshotWriter::create(named, true)?.cancelled_by(cancel);
        let dir = writer.target().to_owned();
        let snapshot = Snapshot::open(&dir, Verify::Header)?;
        let header = snapshot.header();
        header.descriptor.check().map_err(BuildError::from)?;
        if header.changes.is_none() {
            return Err(BuildError::NotUpdatable.into());
        }
        let signing = match (&header.descriptor.signature, signing) {
            (Some(signature), None) => {
                return Err(UpdateError::Unsigned { publisher: signature.publisher });
            }
            (_, signing) => signing.map(|signing| signing.settled(named)).transpose()?,
        };
        Ok(Self { dir, writer, snapshot, signing, cancel: cancel.clone(), start })
    }

    /// Returns whether there are changes to fold into a new base.
    pub fn has_changes(&self) -> bool {
        self.snapshot.header().changes.is_some_and(|count| count.changes > 0)
    }

    /// Returns how far it is, for who watches it while it runs.
    pub fn phase(&self) -> SharedPhase {
        self.writer.phase()
    }

    /// Returns the folder of unfinished files.
    pub fn partial_dir(&self) -> &Path {
        self.writer.partial_dir()
    }

    /// Does work that can be cancelled.
    fn watched<T>(
        self,
        progress: &dyn Progress,
        work: impl FnOnce(Self, &dyn Progress) -> Result<T, UpdateError>,
    ) -> Result<T, UpdateError> {
        let phase = self.phase();
        let cancel = self.cancel.clone();
        work(self, &Watched { progress, cancel: &cancel }).map_err(|error| match error {
            // The writer is gone: the phase is the last one.
            UpdateError::Job(error) if error.is_cancelled() => {
                UpdateError::Job(JobError::Cancelled { phase: *phase.lock() })
            }
            error => error,
        })
    }

    fn descriptor(&self) -> &Descriptor {
        &self.snapshot.header().descriptor
    }

    /// Applies changes: a new epoch, in the place of the old one, with all that changed since the base was made.
    ///
    /// # Errors
    /// [`UpdateError`]. The table is then as it was.
    pub fn apply(
        self,
        request: ApplyRequest,
        backends: &Backends,
        progress: &dyn Progress,
    ) -> Result<Updated, UpdateError> {
        self.watched(progress, |update, progress| update.applied(request, backends, progress))
    }

    fn applied(
        mut self,
        request: ApplyRequest,
        backends: &Backends,
        progress: &dyn Progress,
    ) -> Result<Updated, UpdateError> {
        let ApplyRequest { changes, delete, ingest, on_duplicate } = request;
        if changes.is_none() && delete.is_none() {
            return Err(UpdateError::Nothing);
        }
        // What an unfinished build left is of a table that is about to change.
        self.writer.discard()?;
        let descriptor = self.descriptor().clone();
        let schema = descriptor.schema.clone().unwrap_or_default();
        let mut all = Changes::take(&mut self.snapshot)?;
        let mut changed = HashSet::new();
        if let Some(input) = changes {
            let input = fetched(&input, &ingest, self.writer.partial_dir(), progress)?;
            let ingest = ordered(&input, ingest.clone(), &schema)?;
            let records = read(&input, &ingest, on_duplicate, &self.writer, progress)?;
            let own = records.columns().cloned().unwrap_or_default();
            check_key(&own, &schema, &descriptor)?;
            check_columns("value", &own.value, &schema.value)?;
            for index in 0..records.len() {
                let (key, value) = records.record(index);
                let key = key_of(&own.key_parts(key), &descriptor)?;
                let value = cast_value(value, &own, &schema);
                let value =
                    value.map_err(|field| UpdateError::OtherType { row: records.row(index), field })?;
                // Keys that differ in the input may be one in the table.
                match (changed.insert(key.clone()), on_duplicate) {
                    (false, OnDuplicate::Error) => {
                        return Err(UpdateError::ChangedTwice {
                            key: shown_change(&key, &descriptor.lookup),
                        });
                    }
                    (false, OnDuplicate::First) => {}
                    _ => {
                        all.0.insert(key, Some(value.into_owned()));
                    }
                }
            }
        }
        if let Some(input) = delete {
            let input = fetched(&input, &ingest, self.writer.partial_dir(), progress)?;
            let deleted = keys_to_delete(&input, &ingest, (&descriptor, &schema), &self.writer, progress)?;
            if let Some(key) = deleted.iter().find(|key| changed.contains(*key)) {
                return Err(UpdateError::ChangedAndDeleted { key: shown_change(key, &descriptor.lookup) });
            }
            remove(&mut all, deleted, &descriptor.lookup, &mut self.snapshot)?;
        }
        let Self { dir, writer, snapshot, signing, start, .. } = self;
        let asked = descriptor.asked();
        let header = builder::apply(&dir, snapshot, &all, signing.as_ref(), writer, backends, progress)?;
        Ok(Updated::new(header, asked, start))
    }

    /// Folds the changes into a new base, in the place of the table.
    ///
    /// # Errors
    /// [`UpdateError`]. The table is then as it was. The same request goes on where one was cancelled or killed.
    pub fn compact(
        self,
        request: CompactRequest,
        backends: &Backends,
        progress: &dyn Progress,
    ) -> Result<Updated, UpdateError> {
        self.watched(progress, |update, progress| update.compacted(request, backends, progress))
    }

    fn compacted(
        self,
        request: CompactRequest,
        backends: &Backends,
        progress: &dyn Progress,
    ) -> Result<Updated, UpdateError> {
        let CompactRequest { longest, changes: room, force_size } = request;
        let Self { writer, mut snapshot, signing, start, .. } = self;
        let header = snapshot.header().clone();
        let descriptor = header.descriptor;
        let count = header.changes.ok_or(BuildError::NotUpdatable)?;
        if count.changes == 0 && longest.is_none() && room.is_none() {
            return Err(UpdateError::NoChanges);
        }
        let changes = Changes::take(&mut snapshot)?;
        let by_key = matches!(descriptor.lookup, Lookup::Key(_));
        let kept = KeptRecords::take(&mut snapshot)?;
        let (records, holes) = folded(&kept, changes, by_key, &writer, progress)?;
        let records = records.with_columns(descriptor.schema.clone());
        drop((kept, snapshot));
        let asked = descriptor.asked();
        let options = BuildOptions {
            protocol: Some(descriptor.protocol),
            preset: Some(descriptor.preset.clone()),
            filter: descriptor.lookup.keys().map(|keys| keys.filter),
            form: Some(descriptor.form),
            tiers: Tiers::AtMost(DEFAULT_TIERS.max(1 + descriptor.tiers())),
            compress: if descriptor.compression.is_some() { Compress::Zstd } else { Compress::None },
            changes: Some(ChangeRoom::For(room.unwrap_or(count.room as usize))),
            longest: longest.map(|longest| longest.max(descriptor.slot.max_value_bytes as usize)),
            fingerprint_bytes: descriptor.slot.fingerprint_bytes.max(1),
            columns: descriptor.protocol.page().has_columns().then_some(descriptor.columns),
            force_size,
            signing,
            // Room for more changes is another geometry.
            previous: Some(Arc::new(Previous { keeps_geometry: room.is_none(), descriptor, changes: holes })),
            wishes: None,
            machine: None,
        };
        let header = builder::build(&records, by_key, &header.source, &options, writer, backends, progress)?;
        Ok(Updated::new(header, asked, start))
    }
}

impl Updated {
    fn new(header: Header, asked: [u8; 32], start: Instant) -> Self {
        let keeps_geometry = header.descriptor.asked() == asked;
        Self { header, keeps_geometry, seconds: start.elapsed().as_secs_f64() }
    }
}

/// Returns the options by which the columns of values are in the order of the table's, if they are these and no others. What
/// comes of others is told when they have been read; so it is with an input that cannot be looked at before.
fn ordered(input: &Input, ingest: IngestOptions, table: &Schema) -> Result<IngestOptions, UpdateError> {
    let mut named = ingest.value.clone();
    named.sort_unstable();
    if !named.is_empty() && named == sorted(&table.value) {
        return Ok(IngestOptions { value: names(&table.value), ..ingest });
    }
    if table.value.len() < 2 || !named.is_empty() || *input == Input::Stdin {
        return Ok(ingest);
    }
    let mut source = hush_ingest::open(input, &ingest)?;
    source.next().transpose()?;
    let is_same = source.columns().is_some_and(|own| sorted(&own.value) == sorted(&table.value));
    Ok(if is_same { IngestOptions { value: names(&table.value), ..ingest } } else { ingest })
}

/// Returns the names of columns in order.
fn sorted(columns: &[Column]) -> Vec<String> {
    let mut names = names(columns);
    names.sort_unstable();
    names
}

/// Refuses changes whose keys are of other columns than the table's. The position in a table by position is no column of it.
fn check_key(changes: &Schema, table: &Schema, descriptor: &Descriptor) -> Result<(), UpdateError> {
    match descriptor.lookup {
        Lookup::Key(_) => check_columns("key", &changes.key, &table.key),
        _ => Ok(()),
    }
}

fn check_columns(part: &'static str, changes: &[Column], table: &[Column]) -> Result<(), UpdateError> {
    let table = names(table);
    let changes = names(changes);
    if changes == table { Ok(()) } else { Err(UpdateError::OtherColumns { part, table, changes }) }
}

fn names(columns: &[Column]) -> Vec<String> {
    columns.iter().map(|Column(name, _)| name.clone()).collect()
}

/// Reads records with keys.
fn read(
    input: &Input,
    ingest: &IngestOptions,
    on_duplicate: OnDuplicate,
    writer: &SnapshotWriter,
    progress: &dyn Progress,
) -> Result<SpooledRecords, UpdateError> {
    let source = hush_ingest::open(input, ingest)?;
    if !source.has_keys() {
        return Err(UpdateError::NoKey);
    }
    Ok(spool(input, source, writer.partial_dir(), on_duplicate, progress)?)
}

/// Returns the key of these columns as the table has it.
fn key_of(parts: &[&[u8]], descriptor: &Descriptor) -> Result<Vec<u8>, UpdateError> {
    let key = parts.join(&KEY_SEPARATOR);
    let Lookup::Position(_) = descriptor.lookup else {
        let Some(table) = &descriptor.schema else { return Ok(key) };
        return table.key(parts).map(|key| key.to_vec()).map_err(UpdateError::Key);
    };
    let position = str::from_utf8(&key).ok().and_then(|text| text.trim().parse().ok());
    match position.filter(|&position| position < descriptor.records) {
        Some(position) => Ok(position_key(position).to_vec()),
        None => Err(UpdateError::Position { text: shown_key(&key), last: descriptor.records - 1 }),
    }
}

/// Returns the keys that are to go.
fn keys_to_delete(
    input: &Input,
    ingest: &IngestOptions,
    (descriptor, schema): (&Descriptor, &Schema),
    writer: &SnapshotWriter,
    progress: &dyn Progress,
) -> Result<HashSet<Vec<u8>>, UpdateError> {
    let mut keys = HashSet::new();
    let mut take = |parts: &[&[u8]]| -> Result<(), UpdateError> {
        let key = key_of(parts, descriptor)?;
        match keys.replace(key) {
            Some(key) => Err(UpdateError::DeletedTwice { key: shown_change(&key, &descriptor.lookup) }),
            None => Ok(()),
        }
    };
    match input.key_list() {
        Some(list) => {
            let unreadable = |source| UpdateError::Keys { path: input.path().into(), source };
            let text = std::fs::read(list).map_err(unreadable)?;
            let keys = key_list::keys(&text);
            let mut keys =
                keys.map_err(|utf16| unreadable(io::Error::new(io::ErrorKind::InvalidData, utf16)))?;
            keys.try_for_each(|key| take(&schema.key_parts(key)))?;
        }
        None => {
            // Other fields of these rows are not read. A bad row stays an error: the record of its key would stay in the table.
            let ingest = IngestOptions { value: ingest.key.clone(), bad_rows: None, ..ingest.clone() };
            let records = read(input, &ingest, OnDuplicate::Error, writer, progress)?;
            let own = records.columns().cloned().unwrap_or_default();
            check_key(&own, schema, descriptor)?;
            (0..records.len()).try_for_each(|index| take(&own.key_parts(records.record(index).0)))?;
        }
    }
    Ok(keys)
}

/// Deletes the records of `keys`, which have to be there.
fn remove(
    changes: &mut Changes,
    mut keys: HashSet<Vec<u8>>,
    lookup: &Lookup,
    snapshot: &mut Snapshot,
) -> Result<(), UpdateError> {
    let absent = |key: &[u8]| UpdateError::Absent { key: shown_change(key, lookup) };
    if let Some(key) = keys.iter().find(|key| changes.0.get(*key).is_some_and(Option::is_none)) {
        return Err(absent(key));
    }
    let mut delete = |key: Vec<u8>| changes.0.insert(key, None);
    if let Lookup::Position(_) = lookup {
        keys.into_iter().for_each(|key| drop(delete(key)));
        return Ok(());
    }
    let stored = snapshot.take_checked(KEYS_FILE)?;
    for (key, _) in self::keys(stored.as_ref()) {
        if let Some(key) = keys.take(key) {
            delete(key);
        }
    }
    stored.check()?;
    // They are in no base: without the change by which they came, they are gone.
    for key in keys {
        if changes.0.remove(&key).is_none() {
            return Err(absent(&key));
        }
    }
    Ok(())
}

/// Returns the records as the changes leave them, and the changes that no base holds: positions without a record.
fn folded(
    kept: &KeptRecords,
    mut changes: Changes,
    by_key: bool,
    writer: &SnapshotWriter,
    progress: &dyn Progress,
) -> Result<(SpooledRecords, Changes), UpdateError> {
    progress.start("fold changes", changes.0.len() as u64, "changes");
    let total = changes.0.len() as u64;
    let mut holes = BTreeMap::new();
    let mut spool = Spool::create(writer.partial_dir())?;
    for (position, (key, value)) in kept.iter().enumerate() {
        if position.is_multiple_of(1 << 12) {
            progress.check()?;
        }
        let own = position_key(position as u64);
        let value = match changes.0.remove(if by_key { key } else { &own }) {
            None => value.to_vec(),
            Some(Some(value)) => value,
            Some(None) if by_key => continue,
            Some(None) => {
                holes.insert(own.to_vec(), None);
                value.to_vec()
            }
        };
        spool.push(&Record { key: by_key.then(|| key.to_vec()), value })?;
    }
    kept.check()?;
    for (key, value) in changes.0 {
        if let Some(value) = value {
            spool.push(&Record { key: Some(key), value })?;
        }
    }
    progress.advance(total);
    Ok((spool.finish(OnDuplicate::Error)?, Changes(holes)))
}
