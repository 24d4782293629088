//! A table that follows a stream of changes: lines of JSON become an epoch from time to time.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    ffi::OsStr,
    fs::File,
    io::{self, BufRead, Write},
    os::fd::AsRawFd,
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

use hush_engine::{Backends, Progress, Silent};
use hush_ingest::{Format, IngestError, IngestOptions, Input, MAX_ROW_SIZE, OnDuplicate};
use hush_protocol::{
    descriptor::Descriptor,
    schema::{Column, Schema},
    slot::MAX_VALUE_BYTES,
};
use hush_store::{
    cancel::Cancel,
    snapshot::{FollowedPosition, Header, SnapshotError},
};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::{
    ApplyRequest, JobError, SortError, Update, UpdateError, Updated,
    builder::{BuildError, Signing},
    compact_beside::{BaseRelief, RelievedTable},
    update::key_of,
};

/// The member of a line that says what it does.
const OP: &str = "op";
/// The lines that wait at most, while an epoch is made.
const LINES_AHEAD: usize = 1 << 14;
/// The interval at which a stream that is silent looks whether it is to end, and at which a table that somebody else changes is
/// tried again.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// The rules by which a table follows a stream.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// The key columns of the lines.
    pub key: Vec<String>,
    /// The longest time from a change to its epoch, not counting the time to make it.
    pub every: Duration,
    /// The most changes of an epoch.
    pub most: usize,
    /// The number of epochs that are kept to go back to, if any are.
    pub keep_epochs: Option<usize>,
    /// The key and the name that sign epochs.
    pub signing: Option<Signing>,
}

/// An epoch that is in place, with all changes up to a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedEpoch {
    /// The hash of the epoch.
    pub epoch: [u8; 32],
    /// The number of lines of the stream whose changes are in place.
    pub lines: u64,
    /// The position of the database up to which its changes are in place, in place of lines.
    pub position: Option<u64>,
    /// The number of records that changed in the epoch.
    pub changes: usize,
}

/// The reason why a table follows no more.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FollowError {
    /// The table cannot be changed. Nothing was read.
    #[error(transparent)]
    Open(Box<UpdateError>),
    /// The stream cannot be read.
    #[error("the stream of changes cannot be read: {0}")]
    Read(io::Error),
    /// A line of changes that are applied together is none. Nothing is changed.
    #[error("line {line}: {reason}; nothing is changed")]
    NoChange {
        /// The number of the line, from 1.
        line: u64,
        /// The reason.
        reason: String,
    },
    /// The table refuses changes that are applied together. Nothing is changed.
    #[error("{0}; nothing is changed")]
    Together(Box<UpdateError>),
    /// A line is no change. All lines before it are in place.
    #[error("line {line} of the stream: {reason}; all lines before it are in place")]
    Line {
        /// The number of the line, from 1.
        line: u64,
        /// The reason.
        reason: String,
    },
    /// The table refuses a change.
    #[error("line {line} of the stream is refused: {source}; {}", in_place(*done))]
    Refused {
        /// The number of the line, from 1.
        line: u64,
        /// The number of lines that are in place.
        done: u64,
        /// The reason.
        source: Box<UpdateError>,
    },
    /// Changes were not applied. All lines before them are in place.
    #[error("lines {first} to {last} of the stream are not in place: {source}")]
    Apply {
        /// The first of the lines, from 1.
        first: u64,
        /// The last of the lines.
        last: u64,
        /// The reason.
        source: Box<UpdateError>,
    },
    /// The database cannot be read, or has a change that cannot be followed.
    #[error(transparent)]
    Source(Box<IngestError>),
    /// Changes of a database were not applied.
    #[error("the changes up to position {:X}/{:X} are not in place: {source}", position >> 32, *position as u32)]
    Database {
        /// The position behind the changes.
        position: u64,
        /// The reason.
        source: Box<UpdateError>,
    },
    /// The table is older than what the slot has forgotten.
    #[error(
        "the slot '{slot}' has forgotten changes that the table does not have, as after a rollback, if it was made after the table, or if \
         another table follows it: build the table again, and give each a slot of its own"
    )]
    Behind {
        /// The name of the slot.
        slot: String,
    },
    /// Another table of the same name is in the place of the one that was followed.
    #[error(
        "the table of the database is another one than before, of the same name: build it again, with a new slot"
    )]
    OtherTable,
    /// A file of changes cannot be written.
    #[error("cannot write a temporary file: {0}")]
    Write(io::Error),
}

fn in_place(done: u64) -> String {
    if done == 0 { "nothing was in place before".into() } else { format!("lines 1 to {done} are in place") }
}

/// A change of a record: a row, or only its key.
enum StreamChange {
    Put(Map<String, Value>),
    Delete(Map<String, Value>),
}

/// The changes that wait for an epoch, by key, with the number of their line. A later change of a key takes the place of others.
#[derive(Default)]
struct PendingChanges {
    changes: BTreeMap<Vec<u8>, (u64, StreamChange)>,
    since: Option<Instant>,
}

/// Applies the changes of a stream to the table at `dir` until the stream ends or `stop` is cancelled, and then those that wait.
///
/// A line is a JSON object with `"op": "put"` and the columns of a record, or `"op": "delete"` and the key columns. `told` is
/// called after every epoch that is in place. If the table has no room left for changes, it gets a new base first. A table that
/// another process changes is waited for.
///
/// # Errors
/// [`FollowError`]. What `told` was told of is in place.
pub fn follow(
    dir: &Path,
    stream: impl BufRead + Send + 'static,
    options: &FollowOptions,
    backends: &Backends,
    stop: &Cancel,
    progress: &dyn Progress,
    mut told: impl FnMut(&FollowedEpoch),
) -> Result<(), FollowError> {
    let follower = Follower::new(dir, options, backends, progress);
    let header = follower.header()?;
    // An epoch has at most as many changes as the table has room for.
    let room = room_of(&header);
    let most = options.most.min(room.max(1));
    let lines = read_lines(stream);
    let mut pending = PendingChanges::default();
    let (mut read, mut done) = (0u64, 0);
    loop {
        let due = pending.since.map_or(LOOK, |since| options.every.saturating_sub(since.elapsed()).min(LOOK));
        let line = lines.recv_timeout(due);
        let ended = match line {
            Ok(line) if line.as_ref().is_ok_and(|line| line.trim_ascii().is_empty()) => {
                read += 1;
                false
            }
            Ok(line) => {
                let line = line.map_err(FollowError::Read).and_then(|line| {
                    let change = change(&line, &options.key, &header.descriptor);
                    change.map_err(|reason| FollowError::Line { line: read + 1, reason })
                });
                match line {
                    Ok(change) => pending.take(read + 1, change),
                    Err(error) => {
                        follower.epoch(&mut pending, done, read, &mut told)?;
                        return Err(error);
                    }
                }
                read += 1;
                false
            }
            Err(RecvTimeoutError::Timeout) => stop.is_cancelled(),
            Err(RecvTimeoutError::Disconnected) => true,
        };
        let is_due = pending.since.is_some_and(|since| since.elapsed() >= options.every);
        if ended || is_due || pending.changes.len() >= most {
            follower.epoch(&mut pending, done, read, &mut told)?;
            done = read;
        }
        if ended || (stop.is_cancelled() && pending.changes.is_empty()) {
            return Ok(());
        }
    }
}

/// The key column of lines that change a table by position.
const POSITION: &str = "position";

/// Applies all changes of `lines`, which are those of a [stream](follow), to the table at `dir` as one epoch, or none of them. Of
/// several changes of one key, the last counts. If the table has no room left for them, it gets a new base first.
///
/// # Errors
/// [`FollowError`]. The table is then unchanged, but for a new base.
pub fn apply_lines(
    dir: &Path,
    mut lines: impl BufRead,
    backends: &Backends,
    cancel: &Cancel,
    progress: &dyn Progress,
) -> Result<Header, FollowError> {
    let refused = |source| FollowError::Together(Box::new(source));
    let header = Update::open(dir, None, cancel).map_err(refused)?.header().clone();
    let schema = header.descriptor.schema.as_ref();
    let key = schema.map(|schema| schema.key.iter().map(|Column(name, _)| name.clone()).collect());
    let key: Vec<_> = key.filter(|key: &Vec<String>| !key.is_empty()).unwrap_or(vec![POSITION.into()]);
    let options =
        FollowOptions { key, every: Duration::ZERO, most: usize::MAX, keep_epochs: None, signing: None };
    let mut pending = PendingChanges::default();
    let mut line = 0;
    while let Some(text) = read_line(&mut lines).map_err(FollowError::Read)? {
        line += 1;
        if text.trim_ascii().is_empty() {
            continue;
        }
        let change = change(&text, &options.key, &header.descriptor);
        pending.take(line, change.map_err(|reason| FollowError::NoChange { line, reason })?);
    }
    let changes: Vec<_> = pending.changes.into_values().collect();
    if changes.is_empty() {
        return Ok(header);
    }
    let follower = Follower::new(dir, &options, backends, progress);
    let [puts, deletes] = split(&changes)?;
    let updated = follower.applied(puts.as_ref(), deletes.as_ref()).map_err(refused)?;
    Ok(updated.header)
}

/// Returns the most changes that an epoch may have. Of a sorted table, the room is of leaves, and how many of them changes take is
/// not known before.
pub(crate) fn room_of(header: &Header) -> usize {
    let count = header.changes.filter(|_| header.descriptor.sorted.is_none());
    count.map_or(usize::MAX, |count| count.room as usize)
}

/// The table that follows.
pub(crate) struct Follower<'a> {
    dir: &'a Path,
    pub(crate) options: &'a FollowOptions,
    backends: &'a Backends,
    /// The progress that is told when the stream has to wait, and for what.
    progress: &'a dyn Progress,
    relief: RefCell<BaseRelief>,
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        self.relief.replace(BaseRelief::new()).stop(self.dir);
    }
}

impl<'a> Follower<'a> {
    pub(crate) fn new(
        dir: &'a Path,
        options: &'a FollowOptions,
        backends: &'a Backends,
        progress: &'a dyn Progress,
    ) -> Self {
        Self { dir, options, backends, progress, relief: BaseRelief::new().into() }
    }
}

impl Follower<'_> {
    /// Makes an epoch of the changes that wait, which are those of the lines after `done` up to `read`.
    fn epoch(
        &self,
        pending: &mut PendingChanges,
        done: u64,
        read: u64,
        told: &mut impl FnMut(&FollowedEpoch),
    ) -> Result<(), FollowError> {
        let PendingChanges { changes, .. } = std::mem::take(pending);
        if changes.is_empty() {
            return Ok(());
        }
        let count = changes.len();
        let mut changes: Vec<_> = changes.into_values().collect();
        changes.sort_by_key(|(line, _)| *line);
        let header = self.all(&changes, done)?;
        told(&FollowedEpoch { epoch: header.descriptor.epoch, lines: read, position: None, changes: count });
        Ok(())
    }

    /// Applies changes in the order of their lines. If one of them is refused, its line is found by halves: those before it are
    /// applied. Lines up to `done` were told.
    fn all(&self, changes: &[(u64, StreamChange)], done: u64) -> Result<Header, FollowError> {
        let [puts, deletes] = split(changes)?;
        match (self.applied(puts.as_ref(), deletes.as_ref()), changes) {
            (Ok(updated), _) => Ok(updated.header),
            (Err(error), [(line, _)]) => {
                Err(FollowError::Refused { line: *line, done, source: Box::new(error) })
            }
            (Err(UpdateError::Job(JobError::Target(error))), [(first, _), .., (last, _)]) => {
                let source = Box::new(UpdateError::Job(JobError::Target(error)));
                Err(FollowError::Apply { first: *first, last: *last, source })
            }
            (Err(_), _) => {
                let (before, after) = changes.split_at(changes.len() / 2);
                self.all(before, done)?;
                self.all(after, done)
            }
        }
    }

    fn applied(&self, puts: Option<&File>, deletes: Option<&File>) -> Result<Updated, UpdateError> {
        let input = |file: &File| Input::from(OsStr::new(&format!("/dev/fd/{}", file.as_raw_fd())));
        self.applied_inputs(puts.map(input), deletes.map(input), None)
    }

    /// Applies records and keys to delete, which are lines of JSON if they are files. `followed` is the position behind them.
    pub(crate) fn applied_inputs(
        &self,
        changes: Option<Input>,
        delete: Option<Input>,
        followed: Option<FollowedPosition>,
    ) -> Result<Updated, UpdateError> {
        let request = ApplyRequest {
            changes,
            delete,
            followed,
            ingest: IngestOptions {
                key: self.options.key.clone(),
                max_value_size: MAX_VALUE_BYTES as u32,
                format: Some(Format::Jsonl),
                ..IngestOptions::default()
            },
            on_duplicate: OnDuplicate::Last,
            is_stream: true,
            keep_epochs: self.options.keep_epochs,
        };
        let apply = |update: Update| update.apply(request.clone(), self.backends, &Silent);
        match self.with_table(apply) {
            Err(UpdateError::Job(
                JobError::Build(BuildError::ChangesFull { .. }) | JobError::Sort(SortError::NoLeafLeft),
            )) => {
                self.progress.note("there is no room for more changes: they wait for a new base");
                self.relief.borrow_mut().now(&self.relieved());
                self.with_table(apply)
            }
            outcome => outcome,
        }
        .inspect(|updated| self.relief.borrow_mut().look(&updated.header, &self.relieved()))
    }

    fn relieved(&self) -> RelievedTable<'_> {
        let FollowOptions { signing, keep_epochs, .. } = self.options;
        let Self { dir, backends, progress, .. } = *self;
        RelievedTable { dir, signing, keep_epochs: *keep_epochs, backends, progress }
    }

    /// Returns the header of the table, once nobody else changes it.
    pub(crate) fn header(&self) -> Result<Header, FollowError> {
        let header = self.with_table(|update| Ok(update.header().clone()));
        header.map_err(|source| FollowError::Open(Box::new(source)))
    }

    /// Runs `work` on the table, once nobody else changes it.
    pub(crate) fn with_table<T>(
        &self,
        work: impl Fn(Update) -> Result<T, UpdateError>,
    ) -> Result<T, UpdateError> {
        let mut is_told = false;
        loop {
            match Update::open(self.dir, self.options.signing.clone(), &Cancel::new()) {
                Err(UpdateError::Job(JobError::Target(error @ SnapshotError::Busy(_)))) => {
                    if !std::mem::replace(&mut is_told, true) {
                        self.progress.note(&format!("waiting: {error}"));
                    }
                    thread::sleep(LOOK);
                }
                update => return work(update?),
            }
        }
    }
}

impl PendingChanges {
    fn take(&mut self, line: u64, (key, change): (Vec<u8>, StreamChange)) {
        self.since.get_or_insert_with(Instant::now);
        self.changes.insert(key, (line, change));
    }
}

/// Reads lines on a thread of its own.
fn read_lines(stream: impl BufRead + Send + 'static) -> Receiver<io::Result<Vec<u8>>> {
    let (lines, receiver) = sync_channel(LINES_AHEAD);
    thread::spawn(move || read_into(stream, &lines));
    receiver
}

fn read_into(mut stream: impl BufRead, lines: &SyncSender<io::Result<Vec<u8>>>) {
    while let Some(line) = read_line(&mut stream).transpose() {
        let is_read = line.is_ok();
        // Nobody may read any more.
        if lines.send(line).is_err() || !is_read {
            return;
        }
    }
}

/// Returns the next line, or `None` at the end.
fn read_line(stream: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let most = MAX_ROW_SIZE + 1;
    match io::Read::take(stream, most).read_until(b'\n', &mut line)? as u64 {
        0 => Ok(None),
        read if read == most => Err(io::Error::other("a line has more than 64 MiB")),
        _ => Ok(Some(line)),
    }
}

/// Parses a line to a change and its key as the table has it.
fn change(line: &[u8], key: &[String], descriptor: &Descriptor) -> Result<(Vec<u8>, StreamChange), String> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let mut row: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| format!("it is no JSON object: {error}"))?;
    let op = row.remove(OP);
    let mut parts = Vec::new();
    for column in key {
        let shown = column.escape_debug();
        parts.push(match row.get(column) {
            Some(Value::String(text)) => text.clone().into_bytes(),
            Some(field @ (Value::Number(_) | Value::Bool(_))) => field.to_string().into_bytes(),
            Some(_) => return Err(format!("its column \"{shown}\" of the key is null, a list or an object")),
            None => return Err(format!("it has no column \"{shown}\" of the key")),
        });
    }
    let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
    let own = key_of(&parts, &Schema::default(), descriptor).map_err(|error| error.to_string())?;
    match op.as_ref().and_then(Value::as_str) {
        Some("put") => {
            let columns = descriptor.schema.as_ref().map_or(&[][..], |schema| &schema.value);
            if let Some(Column(missing, _)) = columns.iter().find(|Column(name, _)| !row.contains_key(name)) {
                return Err(format!("it has no column \"{}\" of the value", missing.escape_debug()));
            }
            let is_known =
                |name: &String| key.contains(name) || columns.iter().any(|Column(own, _)| own == name);
            if let Some(other) = row.keys().find(|name| !is_known(name)) {
                return Err(format!("the table has no column \"{}\"", other.escape_debug()));
            }
            Ok((own, StreamChange::Put(row)))
        }
        Some("delete") => {
            row.retain(|column, _| key.contains(column));
            Ok((own, StreamChange::Delete(row)))
        }
        _ => Err("it has no \"op\", or another one than \"put\" and \"delete\"".into()),
    }
}

/// Returns files of the records that are put, and of those that are deleted.
fn split(changes: &[(u64, StreamChange)]) -> Result<[Option<File>; 2], FollowError> {
    let (puts, deletes): (Vec<_>, Vec<_>) =
        changes.iter().map(|(_, change)| change).partition(|change| matches!(change, StreamChange::Put(_)));
    let puts = file_of(&puts).map_err(FollowError::Write)?;
    Ok([puts, file_of(&deletes).map_err(FollowError::Write)?])
}

/// Writes rows to a file of JSON lines without a name, which ends with the process. Returns `None` for no rows.
fn file_of(changes: &[&StreamChange]) -> io::Result<Option<File>> {
    if changes.is_empty() {
        return Ok(None);
    }
    let file = tempfile::tempfile()?;
    let mut out = io::BufWriter::new(&file);
    for change in changes {
        let (StreamChange::Put(row) | StreamChange::Delete(row)) = change;
        serde_json::to_writer(&mut out, row)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    drop(out);
    Ok(Some(file))
}
