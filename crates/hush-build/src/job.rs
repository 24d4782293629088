//! A job that makes a table from a file of records: it reads, spools, builds, and puts the table in place.
//!
//! A job has no global state: a process may run several on threads of its own, and watch and cancel each separately.

use std::{
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use hush_engine::Progress;
use hush_ingest::{
    Fetch, IngestError, IngestOptions, Input, LongField, OnDuplicate, Place, ProgressUnit, Record, Source,
    Spool, SpooledRecords, Summary, elements_of, grouped,
};
use hush_protocol::schema::{Column, Schema};
use hush_store::{
    cancel::{Cancel, Cancelled},
    snapshot::{Header, SharedPhase, SnapshotWriter},
};

use crate::{
    builder::{BuildOptions, Computers, build},
    fetched,
    job_error::JobError,
    sorted::{self, SortRequest},
};

/// The maximum number of column names that are printed for an input without keys.
const TOLD_COLUMNS: usize = 8;
/// The records of a batch, and the bytes of their values. A batch ends when it reaches either limit; its last value may exceed
/// the bytes. With [`BATCHES_AHEAD`] the limits bound the memory: four batches.
const BATCH_RECORDS: usize = 1024;
const BATCH_BYTES: usize = 1 << 20;
/// The number of batches that may wait to be spooled.
const BATCHES_AHEAD: usize = 2;
/// The interval at which a job with a silent input checks whether it is cancelled.
const LOOK: Duration = Duration::from_millis(100);

/// The request of a job.
#[derive(Clone, Debug)]
pub struct JobRequest {
    /// The source of the records.
    pub input: Input,
    /// The rules by which the input's rows become records.
    pub ingest: IngestOptions,
    /// The rule for several records of one key.
    pub on_duplicate: OnDuplicate,
    /// The rules of a sorted table; `None` if the table is not sorted.
    pub sorted: Option<SortRequest>,
    /// The folder of the table.
    pub out: PathBuf,
    /// Whether an existing table is replaced.
    pub force: bool,
    /// The options of the table's build.
    pub options: BuildOptions,
}

/// The result of a job.
#[derive(Debug)]
pub struct Built {
    /// The header of the table, which is in place.
    pub header: Header,
    /// Seconds since the job was opened.
    pub seconds: f64,
}

/// A job with a locked folder and an input that is open or still to be fetched. Dropped before it runs, it leaves no files.
pub struct Job {
    /// `None` if the input has to be fetched first.
    source: Option<Source>,
    input: Input,
    ingest: IngestOptions,
    on_duplicate: OnDuplicate,
    sorted: Option<SortRequest>,
    options: BuildOptions,
    writer: SnapshotWriter,
    cancel: Cancel,
    start: Instant,
}

impl Job {
    /// Checks whether the table can be put in place, opens the input, unless it has to be fetched, and locks the folder. Reads no
    /// records yet.
    ///
    /// # Errors
    /// [`JobError::Target`] if the folder is in use, holds something that must not be replaced, or cannot be replaced;
    /// [`JobError::Ingest`] if the input cannot be opened or the options do not fit it.
    pub fn open(request: JobRequest, cancel: &Cancel) -> Result<Self, JobError> {
        let start = Instant::now();
        let JobRequest { input, ingest, on_duplicate, sorted, out, force, mut options } = request;
        SnapshotWriter::check(&out, force)?;
        let is_elsewhere = Fetch::is_needed(&input, &ingest)?;
        let source = if is_elsewhere { None } else { Some(hush_ingest::open(&input, &ingest)?) };
        let writer = SnapshotWriter::create(&out, force)?.cancelled_by(cancel);
        options.signing = options.signing.map(|signing| signing.settled(&out)).transpose()?;
        Ok(Self {
            source,
            input,
            ingest,
            on_duplicate,
            sorted,
            options,
            writer,
            cancel: cancel.clone(),
            start,
        })
    }

    /// Returns the phase of the job, which another thread can watch while the job runs.
    pub fn phase(&self) -> SharedPhase {
        self.writer.phase()
    }

    /// Returns the folder of unfinished files.
    pub fn partial_dir(&self) -> &Path {
        self.writer.partial_dir()
    }

    /// Makes the table and puts it in place. A cancelled job ends soon, at the latest when the current step of a backend is done.
    /// If the input is silent at that time, as a pipe may be, its reading thread is left behind and ends with the input.
    ///
    /// # Errors
    /// [`JobError`]. The target is then unchanged.
    pub fn run<'a>(self, by: impl Into<Computers<'a>>, progress: &dyn Progress) -> Result<Built, JobError> {
        let phase = self.phase();
        let cancel = self.cancel.clone();
        let start = self.start;
        let outcome = self.make(by.into(), &Watched { progress, cancel: &cancel });
        let header = outcome.map_err(|error| match error {
            // The writer is dropped, so the phase does not change any more.
            error if error.is_cancelled() => JobError::Cancelled { phase: *phase.lock() },
            error => error,
        })?;
        Ok(Built { header, seconds: start.elapsed().as_secs_f64() })
    }

    fn make(self, by: Computers<'_>, progress: &Watched<'_>) -> Result<Header, JobError> {
        let Self { source, input, ingest, on_duplicate, sorted, mut options, writer, .. } = self;
        let read = || -> Result<_, JobError> {
            let source = match source {
                Some(source) => source,
                None => {
                    hush_ingest::open(&fetched(&input, &ingest, writer.partial_dir(), progress)?, &ingest)?
                }
            };
            let by_key = source.has_keys();
            let skipped = source.skipped();
            if !skipped.is_empty() {
                progress.note(&skipped.to_string());
            }
            let lists = Lists { limit: ingest.max_value_size, prefix: ingest.group_prefix, table: None };
            let dir = writer.partial_dir();
            let records = spool(&input, source, dir, on_duplicate, lists, progress)?;
            Ok(match &sorted {
                Some(sorted) => {
                    (sorted::sorted(records, sorted, on_duplicate, &mut options, dir, progress)?, false)
                }
                None => (records, by_key),
            })
        };
        let (records, by_key) = read().inspect_err(|error| {
            if matches!(error, JobError::Ingest(IngestError::DiskFull { .. })) {
                // Files of an earlier build may have filled the disk. An error of the removal would hide the first error.
                let _ = writer.discard();
            }
        })?;
        let path = input.path();
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        Ok(build(&records, by_key, &name, &options, writer, by, progress)?)
    }
}

/// The progress of a job that can be cancelled.
pub(crate) struct Watched<'a> {
    pub(crate) progress: &'a dyn Progress,
    pub(crate) cancel: &'a Cancel,
}

impl Progress for Watched<'_> {
    fn start(&self, stage: &str, total: u64, unit: &'static str) {
        self.progress.start(stage, total, unit);
    }

    fn advance(&self, units: u64) {
        self.progress.advance(units);
    }

    fn note(&self, line: &str) {
        self.progress.note(line);
    }

    fn resume(&self, units: u64) {
        self.progress.resume(units);
    }

    fn check(&self) -> Result<(), Cancelled> {
        self.cancel.check()?;
        self.progress.check()
    }
}

/// Reads the input once and spools its records in `dir`, on the disk of the table. `source` is the opened input. `lists` says what
/// becomes of several records of one key, if all are kept.
pub(crate) fn spool(
    input: &Input,
    source: Source,
    dir: &Path,
    on_duplicate: OnDuplicate,
    lists: Lists<'_>,
    progress: &dyn Progress,
) -> Result<SpooledRecords, JobError> {
    let read = source.progress();
    let unit = match read.unit {
        ProgressUnit::Bytes => "bytes",
        ProgressUnit::Rows => "rows",
    };
    progress.start("read", read.total.unwrap_or(0), unit);
    let mut spool = Spool::create(dir)?;
    let mut reader = ReadingThread::start(source);
    let mut last = 0;
    while let Some(ReadRecords { records, read }) = reader.next(progress)? {
        for record in records {
            let record = record?;
            spool.push(&match lists.prefix {
                Some(characters) => grouped(record, characters, spool.len() as u64 + 1)?,
                None => record,
            })?;
        }
        progress.advance(read.saturating_sub(last));
        last = read;
    }
    let columns = reader.summary.columns.clone().unwrap_or_default();
    let elements = lists.table.and_then(|table| elements_of(table, &columns));
    // Several rows of a key are no mistake where the table has lists.
    let on_duplicate = match on_duplicate {
        OnDuplicate::Error if elements.is_some() || lists.prefix.is_some() => OnDuplicate::All,
        chosen => chosen,
    };
    let are_lists = spool.has_keys() && (elements.is_some() || on_duplicate == OnDuplicate::All);
    let records = spool.finish(on_duplicate).map_err(|error| match error {
        IngestError::DuplicateKey { key, first_row, second_row } => {
            duplicate(input.path(), key, [first_row, second_row], &reader.summary)
        }
        error => error.into(),
    })?;
    let mut records = records.with_columns(reader.summary.columns.clone()).at(reader.summary.position);
    if are_lists {
        progress.start("join", records.value_bytes(), "bytes");
        let advance = |bytes| {
            progress.advance(bytes);
            progress.check()
        };
        let limit = lists.limit as usize;
        records = match lists.prefix {
            Some(_) => records.lines(dir, limit, advance)?,
            None => records.lists(dir, limit, elements.as_ref(), advance)?,
        };
    }
    progress.note(&told(input.path(), &reader.summary, records.len()));
    Ok(records)
}

/// The lists that the values of one key become.
pub(crate) struct Lists<'a> {
    /// The most bytes of a list.
    pub(crate) limit: u32,
    /// The characters of keys by which rows are grouped to texts, in place of lists.
    pub(crate) prefix: Option<usize>,
    /// The columns of a table whose lists take the place of those of the rows.
    pub(crate) table: Option<&'a Schema>,
}

/// Returns the error for two records with the same key, which names their rows.
fn duplicate(input: &Path, key: String, records: [u64; 2], summary: &Summary) -> JobError {
    let [(file, first_row), (other_file, second_row)] = records.map(|record| summary.row_map.row(record));
    if let (Some(file), Some(other_file)) = (file, other_file) {
        let place = |file: &Path, row| Place { path: file.into(), row, line: None };
        let places = Box::new([place(file, first_row), place(other_file, second_row)]);
        return JobError::DuplicateKeyOfFiles { key, places };
    }
    let source = IngestError::DuplicateKey { key, first_row, second_row };
    JobError::DuplicateKey { input: input.into(), source }
}

/// Returns a line with the number of rows and of records, and the place of the longest field that spans several lines: such a
/// field may be due to a stray quote.
fn told(input: &Path, summary: &Summary, records: usize) -> String {
    let bad_rows = summary.bad_rows.as_ref().map_or(0, |(count, _)| *count);
    let mut line = format!("read {} rows: {records} records", summary.rows + bad_rows);
    // If no column was named, the column names show a first record that was mistaken for a header.
    let is_told =
        |columns: &&Schema| columns.key.is_empty() && (1..=TOLD_COLUMNS).contains(&columns.value.len());
    if let Some(columns) = summary.columns.as_ref().filter(is_told) {
        let names: Vec<String> = columns.value.iter().map(|Column(name, _)| format!("{name:?}")).collect();
        line += &format!(" of {}", names.join(", "));
    }
    if let Some((count @ 1.., file)) = &summary.bad_rows {
        line += &format!("; {count} bad rows were left out, and are in {}", file.display());
    }
    if let Some(LongField { path, bytes, first_line, last_line }) = &summary.longest_field {
        line += &format!(
            "; the longest field of several lines has {bytes} bytes and is on lines {first_line} to {last_line}"
        );
        if path != input {
            line += &format!(" of {}", path.display());
        }
    }
    line
}

/// A batch of records, with the part of the input that has been read so far, in units of the source's progress.
struct ReadRecords {
    records: Vec<Result<Record, IngestError>>,
    read: u64,
}

/// A thread that reads an input. The read of a silent input cannot be interrupted, but no other thread has to wait for it.
struct ReadingThread {
    batches: Receiver<ReadRecords>,
    thread: Option<JoinHandle<Summary>>,
    /// Empty until the end of the input.
    summary: Summary,
}

impl ReadingThread {
    fn start(mut source: Source) -> Self {
        let (sender, batches) = sync_channel(BATCHES_AHEAD);
        let work = move || {
            loop {
                let mut records = Vec::new();
                let mut bytes = 0;
                while records.len() < BATCH_RECORDS && bytes < BATCH_BYTES {
                    let Some(record) = source.next() else { break };
                    bytes += record.as_ref().map_or(0, |record| record.value.len());
                    records.push(record);
                }
                let batch = ReadRecords { records, read: source.progress().read };
                // The receiver is dropped when the job ends.
                if batch.records.is_empty() || sender.send(batch).is_err() {
                    return source.summary();
                }
            }
        };
        Self { batches, thread: Some(thread::spawn(work)), summary: Summary::default() }
    }

    /// Returns the next batch, or `None` at the end of the input.
    fn next(&mut self, progress: &dyn Progress) -> Result<Option<ReadRecords>, Cancelled> {
        loop {
            progress.check()?;
            match self.batches.recv_timeout(LOOK) {
                Ok(batch) => return Ok(Some(batch)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // A panic of the reader is passed on: it is not the end of the input.
        self.summary = self
            .thread
            .take()
            .map_or(Ok(Summary::default()), JoinHandle::join)
            .unwrap_or_else(|panic| resume_unwind(panic));
        Ok(None)
    }
}
