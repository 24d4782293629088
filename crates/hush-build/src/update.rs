//! Changes to an existing table: an update applies them as a new epoch, a compaction folds them into a new base.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    path::{Path, PathBuf},
    str,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use hush_engine::{Backends, Progress};
use hush_ingest::{
    IngestOptions, Input, OnDuplicate, Record, Spool, SpooledRecords, cast_value, key_list, shown_key,
};
use hush_protocol::{
    descriptor::{Descriptor, Lookup},
    keyword::position_key,
    schema::{Column, KEY_SEPARATOR, Schema},
};
use hush_store::{
    cancel::Cancel,
    snapshot::{
        Changes, CopyBeside, FollowedPosition, Header, KEYS_FILE, KeptEpoch, KeptRecords, SharedPhase,
        Snapshot, SnapshotError, SnapshotWriter, Verify, keep_epoch, kept_epochs, keys,
    },
};

use crate::{
    JobError,
    builder::{
        self, Applied, BuildError, BuildOptions, ChangeRoom, Compress, DEFAULT_TIERS, Previous, Signing,
        Tiers, shown_change,
    },
    fetched,
    job::{Lists, Watched, spool},
    sorted::{SortError, changes::ChangingLeaves, given_key},
    update_error::UpdateError,
};

/// The time for which another change of a table is waited for, and the interval at which it is looked at.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

/// The request of an update.
#[derive(Clone, Debug)]
pub struct ApplyRequest {
    /// Records that are added, or get a new value.
    pub changes: Option<Input>,
    /// Records to delete: a list of keys, one a line (`.txt`), or any other input, of which only the key columns are read.
    pub delete: Option<Input>,
    /// The rules by which rows become records. In a table by position, the key is the position.
    pub ingest: IngestOptions,
    /// The rule for several changes of one key.
    pub on_duplicate: OnDuplicate,
    /// Whether deletions of absent records are passed over, and rows of lists are whole lists, as in a stream of changes.
    pub is_stream: bool,
    /// The position in the changes of a database behind these, if they are from there.
    pub followed: Option<FollowedPosition>,
    /// The number of epochs that are kept beside the table, the present one among them, to [go back](Update::rollback) to.
    pub keep_epochs: Option<usize>,
}

/// The request of a compaction: the properties of the new base.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompactRequest {
    /// The table has room for values of up to this length in bytes, even if no value is that long.
    pub longest: Option<usize>,
    /// The number of changes that the table has room for; `None` keeps the present number.
    pub changes: Option<usize>,
    /// Whether the table is built even if this machine lacks the disk or memory for it.
    pub force_size: bool,
    /// The number of epochs that are kept, as [`ApplyRequest::keep_epochs`].
    pub keep_epochs: Option<usize>,
}

/// The result of an update: a new epoch, which is in place.
#[derive(Debug)]
pub struct Updated {
    /// The header of the table.
    pub header: Header,
    /// Whether the new epoch answers queries that were made for the previous epoch.
    pub keeps_geometry: bool,
    /// Seconds since the update was opened.
    pub seconds: f64,
}

/// A table that is about to change, with the exclusive right to change it. Dropped before it runs, an update leaves no files.
pub struct Update {
    pub(crate) dir: PathBuf,
    pub(crate) writer: SnapshotWriter,
    pub(crate) snapshot: Snapshot,
    pub(crate) signing: Option<Signing>,
    pub(crate) cancel: Cancel,
    pub(crate) start: Instant,
}

impl Update {
    /// Opens a table that has room for changes. `signing` is used to sign the table's next epoch. Another change of the table is
    /// waited for, for half a minute.
    ///
    /// # Errors
    /// [`UpdateError::Unsigned`] if the table is signed and `signing` is `None`; [`UpdateError::Job`] if there is no such table, it
    /// has no room for changes, or another change takes long.
    pub fn open(named: &Path, signing: Option<Signing>, cancel: &Cancel) -> Result<Self, UpdateError> {
        let start = Instant::now();
        // Fails early if there is no table, before a folder is made beside it. A name that is a link stays a link.
        Snapshot::open(named, Verify::Header)?;
        let writer = loop {
            match SnapshotWriter::create(named, true) {
                Err(SnapshotError::Busy(_)) if start.elapsed() < PATIENCE => {
                    cancel.check()?;
                    thread::sleep(LOOK);
                }
                writer => break writer?.cancelled_by(cancel),
            }
        };
        let dir = writer.target().to_owned();
        let snapshot = Snapshot::open(&dir, Verify::Header)?;
        let header = snapshot.header();
        header.descriptor.check().map_err(BuildError::from)?;
        if header.changes.is_none() {
            return Err(BuildError::NotUpdatable.into());
        }
        if header.descriptor.sorted.as_ref().is_some_and(|sorted| sorted.range.is_some()) {
            return Err(SortError::RangesChange.into());
        }
        let signing = match (&header.descriptor.signature, signing) {
            (Some(signature), None) => {
                return Err(UpdateError::Unsigned { publisher: signature.publisher });
            }
            (_, signing) => signing.map(|signing| signing.settled(named)).transpose()?,
        };
        Ok(Self { dir, writer, snapshot, signing, cancel: cancel.clone(), start })
    }

    /// Puts an epoch that was kept in the place of the table; `named` are the first digits of its hash. The present epoch is kept
    /// in turn. Nothing is computed: this takes the time of a few links.
    ///
    /// # Errors
    /// [`UpdateError::NotKept`] if no epoch, or more than one, is named so. The table is then unchanged.
    pub fn rollback(self, named: &str, progress: &dyn Progress) -> Result<Updated, UpdateError> {
        self.watched(progress, |update, _| update.rolled_back(named))
    }

    fn rolled_back(self, named: &str) -> Result<Updated, UpdateError> {
        self.writer.discard()?;
        let asked = self.descriptor().asked();
        let kept = kept_epochs(&self.dir)?;
        let name = |epoch: &KeptEpoch| hex::encode(epoch.header.descriptor.epoch);
        let named = named.to_ascii_lowercase();
        let is_named = |epoch: &&KeptEpoch| !named.is_empty() && name(epoch).starts_with(&named);
        let found: Vec<_> = kept.iter().filter(is_named).collect();
        if hex::encode(self.descriptor().epoch).starts_with(&named) && !named.is_empty() {
            return Err(UpdateError::InPlace { named });
        }
        let [epoch] = found[..] else {
            let kept = kept.iter().map(|epoch| name(epoch)[..16].to_owned()).collect();
            return Err(UpdateError::NotKept { named, kept });
        };
        // Files that the table has, too, are those that it answers from.
        let mut stored = Snapshot::open(&epoch.path, Verify::Header)?;
        for file in &epoch.header.files {
            if !self.snapshot.header().files.contains(file) {
                stored.take_checked(&file.name)?.check()?;
            }
        }
        keep_epoch(&self.dir, kept.len() + 1)?;
        let Self { dir, writer, signing, start, .. } = self;
        let header = builder::put_back(&dir, epoch, signing.as_ref(), writer)?;
        Ok(Updated::new(header, asked, start))
    }

    /// Returns the header of the table.
    pub fn header(&self) -> &Header {
        self.snapshot.header()
    }

    /// Returns whether the table has changes to fold into a new base.
    pub fn has_changes(&self) -> bool {
        self.snapshot.header().changes.is_some_and(|count| count.changes > 0)
    }

    /// Returns the phase of the update, which another thread can watch while the update runs.
    pub fn phase(&self) -> SharedPhase {
        self.writer.phase()
    }

    /// Returns the folder of unfinished files.
    pub fn partial_dir(&self) -> &Path {
        self.writer.partial_dir()
    }

    /// Runs `work`, which can be cancelled, and reports a cancellation with the last phase.
    fn watched<T>(
        self,
        progress: &dyn Progress,
        work: impl FnOnce(Self, &dyn Progress) -> Result<T, UpdateError>,
    ) -> Result<T, UpdateError> {
        let phase = self.phase();
        let cancel = self.cancel.clone();
        work(self, &Watched { progress, cancel: &cancel }).map_err(|error| match error {
            // The writer is dropped, so the phase does not change any more.
            UpdateError::Job(error) if error.is_cancelled() => {
                UpdateError::Job(JobError::Cancelled { phase: *phase.lock() })
            }
            error => error,
        })
    }

    pub(crate) fn descriptor(&self) -> &Descriptor {
        &self.snapshot.header().descriptor
    }

    /// Applies changes. The new epoch replaces the old one, and holds all changes since the base was made.
    ///
    /// # Errors
    /// [`UpdateError`]. The table is then unchanged.
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
        let ApplyRequest { changes, delete, ingest, on_duplicate, is_stream, followed, keep_epochs } =
            request;
        if changes.is_none() && delete.is_none() {
            return Err(UpdateError::Nothing);
        }
        // The files of an unfinished build belong to the table before this change.
        self.writer.discard()?;
        CopyBeside::remove_left(&self.dir)?;
        keep_epochs.map_or(Ok(()), |most| keep_epoch(&self.dir, most))?;
        let descriptor = self.descriptor().clone();
        let schema = descriptor.schema.clone().unwrap_or_default();
        let before = Changes::take(&mut self.snapshot)?;
        // In a sorted table, changes are those of rows at first.
        let mut all = if descriptor.sorted.is_some() { Changes::default() } else { before.clone() };
        let mut changed = HashSet::new();
        if let Some(input) = changes {
            let input = fetched(&input, &ingest, self.writer.partial_dir(), progress)?;
            let ingest = ordered(&input, ingest.clone(), &schema)?;
            let records =
                read(&input, &ingest, on_duplicate, (!is_stream).then_some(&schema), &self.writer, progress)?;
            let own = records.columns().cloned().unwrap_or_default();
            check_key(&own, &schema, &descriptor)?;
            check_columns("value", &own.value, &schema.value)?;
            for index in 0..records.len() {
                let (key, value) = records.record(index);
                let key = key_of(&own.key_parts(key), &own, &descriptor)?;
                let value = cast_value(value, &own, &schema);
                let value = value.map_err(|field| UpdateError::OtherType {
                    row: records.row(index),
                    key: shown_change(&key, &descriptor),
                    field,
                })?;
                // Keys that differ in the input may be equal in the table.
                match (changed.insert(key.clone()), on_duplicate) {
                    (false, OnDuplicate::Error | OnDuplicate::All) => {
                        return Err(UpdateError::ChangedTwice { key: shown_change(&key, &descriptor) });
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
                return Err(UpdateError::ChangedAndDeleted { key: shown_change(key, &descriptor) });
            }
            remove(&mut all, deleted, is_stream, &descriptor, &mut self.snapshot)?;
        }
        let Self { dir, writer, mut snapshot, signing, start, .. } = self;
        let asked = descriptor.asked();
        let mut table = None;
        if descriptor.sorted.is_some() {
            let kept = KeptRecords::take(&mut snapshot)?;
            let leaves = ChangingLeaves::take(&mut snapshot, &descriptor, &kept, before)?;
            let changed = leaves.change(&all.0, is_stream)?;
            let changed =
                changed.map_err(|key| UpdateError::Absent { key: shown_change(&key, &descriptor) })?;
            kept.check()?;
            all = changed.changes;
            table = Some(changed.table);
        }
        let all = Applied { changes: &all, sorted: table.as_ref(), followed };
        let header = builder::apply(&dir, snapshot, all, signing.as_ref(), writer, backends, progress)?;
        Ok(Updated::new(header, asked, start))
    }

    /// Folds the changes into a new base, which replaces the table.
    ///
    /// # Errors
    /// [`UpdateError`]. The table is then unchanged. If a compaction was cancelled or killed, the same request resumes it.
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
        let CompactRequest { longest, changes: room, force_size, keep_epochs } = request;
        let Self { dir, writer, mut snapshot, signing, start, .. } = self;
        let header = snapshot.header().clone();
        let descriptor = header.descriptor;
        let count = header.changes.ok_or(BuildError::NotUpdatable)?;
        if count.changes == 0 && longest.is_none() && room.is_none() {
            return Err(UpdateError::NoChanges);
        }
        keep_epochs.map_or(Ok(()), |most| keep_epoch(&dir, most))?;
        let changes = Changes::take(&mut snapshot)?;
        let by_key = matches!(descriptor.lookup, Lookup::Key(_));
        let kept = KeptRecords::take(&mut snapshot)?;
        let asked = descriptor.asked();
        let mut options = BuildOptions {
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
            previous: None,
            sorted: None,
            wishes: None,
            machine: None,
        };
        let (records, holes) = match &descriptor.sorted {
            None => {
                let (records, holes) = folded(&kept, changes, by_key, &writer, progress)?;
                (records.with_columns(descriptor.schema.clone()), holes)
            }
            Some(_) => {
                let leaves = ChangingLeaves::take(&mut snapshot, &descriptor, &kept, changes)?;
                let dir = writer.partial_dir();
                let records = leaves.compacted(&descriptor, (longest, room), &mut options, dir, progress)?;
                kept.check()?;
                (records, Changes::default())
            }
        };
        drop((kept, snapshot));
        // Another number of changes is another geometry.
        options.previous = Some(Arc::new(Previous {
            keeps_geometry: room.is_none(),
            descriptor,
            changes: holes,
            followed: header.followed,
        }));
        let header = builder::build(&records, by_key, &header.source, &options, writer, backends, progress)?;
        Ok(Updated::new(header, asked, start))
    }
}

impl Updated {
    pub(crate) fn new(header: Header, asked: [u8; 32], start: Instant) -> Self {
        let keeps_geometry = header.descriptor.asked() == asked;
        Self { header, keeps_geometry, seconds: start.elapsed().as_secs_f64() }
    }
}

/// Returns options that read the value columns in the table's order, if the input has exactly the table's columns. Other inputs
/// get the options unchanged, as does standard input, which cannot be read twice; their columns are checked after reading.
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

/// Returns the names of columns in alphabetical order.
fn sorted(columns: &[Column]) -> Vec<String> {
    let mut names = names(columns);
    names.sort_unstable();
    names
}

/// Refuses changes whose key columns differ from the table's. In a table by position, the position is no column of the table.
fn check_key(changes: &Schema, table: &Schema, descriptor: &Descriptor) -> Result<(), UpdateError> {
    if descriptor.is_by_key() { check_columns("key", &changes.key, &table.key) } else { Ok(()) }
}

fn check_columns(part: &'static str, changes: &[Column], table: &[Column]) -> Result<(), UpdateError> {
    let table = names(table);
    let changes = names(changes);
    if changes == table { Ok(()) } else { Err(UpdateError::OtherColumns { part, table, changes }) }
}

fn names(columns: &[Column]) -> Vec<String> {
    columns.iter().map(|Column(name, _)| name.clone()).collect()
}

/// Reads records and spools them. Refuses an input without keys. `table`: the columns of the table that changes.
fn read(
    input: &Input,
    ingest: &IngestOptions,
    on_duplicate: OnDuplicate,
    table: Option<&Schema>,
    writer: &SnapshotWriter,
    progress: &dyn Progress,
) -> Result<SpooledRecords, UpdateError> {
    let source = hush_ingest::open(input, ingest)?;
    if !source.has_keys() {
        return Err(UpdateError::NoKey);
    }
    let lists = Lists { limit: ingest.max_value_size, prefix: None, table };
    Ok(spool(input, source, writer.partial_dir(), on_duplicate, lists, progress)?)
}

/// Returns the table's key for the key columns `parts` of a row, which has the columns `own`. In a table by position, it is the
/// encoded position.
pub(crate) fn key_of(parts: &[&[u8]], own: &Schema, descriptor: &Descriptor) -> Result<Vec<u8>, UpdateError> {
    let key = parts.join(&KEY_SEPARATOR);
    if let (Some(sorted), Some(table)) = (&descriptor.sorted, &descriptor.schema) {
        let key = given_key(sorted, own, &key);
        return sorted.sorted_key(table, &key).map(|key| key.to_vec()).map_err(UpdateError::Key);
    }
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

/// Returns the keys of the records to delete. Refuses a key that is listed twice.
fn keys_to_delete(
    input: &Input,
    ingest: &IngestOptions,
    (descriptor, schema): (&Descriptor, &Schema),
    writer: &SnapshotWriter,
    progress: &dyn Progress,
) -> Result<HashSet<Vec<u8>>, UpdateError> {
    let mut keys = HashSet::new();
    let mut take = |parts: &[&[u8]], own: &Schema| -> Result<(), UpdateError> {
        let key = key_of(parts, own, descriptor)?;
        match keys.replace(key) {
            Some(key) => Err(UpdateError::DeletedTwice { key: shown_change(&key, descriptor) }),
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
            keys.try_for_each(|key| take(&schema.key_parts(key), schema))?;
        }
        None => {
            // Only the key columns are read. A bad row is an error: if it were left out, its record would stay in the table.
            let ingest = IngestOptions { value: ingest.key.clone(), bad_rows: None, ..ingest.clone() };
            let records = read(input, &ingest, OnDuplicate::Error, None, writer, progress)?;
            let own = records.columns().cloned().unwrap_or_default();
            check_key(&own, schema, descriptor)?;
            (0..records.len()).try_for_each(|index| take(&own.key_parts(records.record(index).0), &own))?;
        }
    }
    Ok(keys)
}

/// Marks the records of `keys` as deleted in `changes`. Refuses a key without a record, unless `may_be_absent`.
fn remove(
    changes: &mut Changes,
    mut keys: HashSet<Vec<u8>>,
    may_be_absent: bool,
    descriptor: &Descriptor,
    snapshot: &mut Snapshot,
) -> Result<(), UpdateError> {
    let absent = |key: &[u8]| UpdateError::Absent { key: shown_change(key, descriptor) };
    let is_deleted = |key: &Vec<u8>| changes.0.get(key).is_some_and(Option::is_none);
    if may_be_absent {
        keys.retain(|key| !is_deleted(key));
    } else if let Some(key) = keys.iter().find(|key| is_deleted(key)) {
        return Err(absent(key));
    }
    let mut delete = |key: Vec<u8>| changes.0.insert(key, None);
    if let Lookup::Position(_) = descriptor.lookup {
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
    // The remaining keys are not in the base: to delete their records, the changes that added them are removed.
    for key in keys {
        if changes.0.remove(&key).is_none() && !may_be_absent {
            return Err(absent(&key));
        }
    }
    Ok(())
}

/// Returns the records after the changes, and the changes that a base cannot hold: deleted positions.
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
