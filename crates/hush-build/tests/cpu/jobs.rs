//! Jobs: cancelled at every stage, with what is left told truly and gone on from; inputs that are silent; several in one process.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, mpsc::channel},
    thread,
    time::Duration,
};

use hush_build::{Built, Job, JobError, JobRequest};
use hush_engine::{Cancel, Progress, Silent};
use hush_ingest::{IngestError, IngestOptions, Input, OnDuplicate};
use hush_protocol::Protocol;
use hush_store::snapshot::{Phase, Snapshot, SnapshotError, Verify};
use tempfile::TempDir;

use crate::tables::{Wanted, on_cpu};

const RECORDS: usize = 40;

/// A folder with an input and a table that is made of it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let mut rows = File::create(place.input()).unwrap();
        for i in 0..RECORDS {
            writeln!(rows, r#"{{"k": "key {i}", "v": "{}"}}"#, "x".repeat(300 - i)).unwrap();
        }
        place
    }

    fn input(&self) -> PathBuf {
        self.0.path().join("rows.jsonl")
    }

    fn target(&self) -> PathBuf {
        self.0.path().join("table")
    }

    fn partial(&self) -> PathBuf {
        self.0.path().join(".table.hush-partial")
    }

    fn request(&self, protocol: Protocol, by_key: bool) -> JobRequest {
        let key = if by_key { vec!["k".into()] } else { Vec::new() };
        JobRequest {
            input: Input::Path(self.input()),
            ingest: IngestOptions { key, value: vec!["v".into()], ..IngestOptions::default() },
            on_duplicate: OnDuplicate::Error,
            sorted: None,
            out: self.target(),
            force: true,
            options: Wanted::by_index(protocol, RECORDS, 300, 8).options(),
        }
    }
}

/// Cancels a job in the middle of it, and notes what it does until it ends.
struct Canceller {
    cancel: Cancel,
    /// Stage, how often one of its name has begun, and units of it.
    at: (&'static str, usize, u64),
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    stages: Vec<String>,
    units: u64,
    /// Stages that began after the job was cancelled, and units that were done.
    after: (usize, u64),
}

impl Canceller {
    fn new(stage: &'static str, nth: usize, units: u64) -> Self {
        Self { cancel: Cancel::new(), at: (stage, nth, units), seen: Mutex::default() }
    }

    fn look(&self, seen: &Seen) {
        let (stage, nth, units) = self.at;
        let begun = seen.stages.iter().filter(|name| *name == stage).count();
        if begun == nth && seen.stages.last().is_some_and(|last| last == stage) && seen.units >= units {
            self.cancel.cancel();
        }
    }

    /// Returns the phase that the cancelled job tells.
    fn run(&self, request: JobRequest) -> Phase {
        let job = Job::open(request, &self.cancel).unwrap();
        match job.run(&on_cpu(1), self) {
            Err(JobError::Cancelled { phase }) => phase,
            other => panic!("{:?}: {other:?}", self.at),
        }
    }
}

impl Progress for Canceller {
    fn start(&self, stage: &str, _: u64, _: &'static str) {
        let mut seen = self.seen.lock().unwrap();
        seen.after.0 += usize::from(self.cancel.is_cancelled());
        seen.stages.push(stage.into());
        seen.units = 0;
        self.look(&seen);
    }

    fn advance(&self, units: u64) {
        let mut seen = self.seen.lock().unwrap();
        seen.after.1 += if self.cancel.is_cancelled() { units } else { 0 };
        seen.units += units;
        self.look(&seen);
    }

    fn resume(&self, _: u64) {}
}

fn make(request: JobRequest) -> Built {
    Job::open(request, &Cancel::new()).unwrap().run(&on_cpu(1), &Silent).unwrap()
}

fn is_whole(table: &Path) -> bool {
    Snapshot::open(table, Verify::Full).is_ok()
}

#[test]
fn a_job_makes_a_table() {
    let place = Place::new();
    let Built { header, seconds } = make(place.request(Protocol::Colpack, true));
    assert_eq!((header.descriptor.records, header.source.as_str()), (RECORDS as u64, "rows.jsonl"));
    assert!(seconds > 0.0 && is_whole(&place.target()) && !place.partial().exists());
}

#[test]
fn a_job_is_cancelled_at_any_stage() {
    use Protocol::{Colpack, Hybrid, Onion, Simple};
    let of = |done, units| Phase::LaidOut { done, units };
    let done = |done| of(done, 10);
    // Where it is cancelled, and how far it was. A unit that is under way is done.
    for (protocol, by_key, (stage, nth, units), phase) in [
        (Colpack, false, ("read", 1, 0), Phase::Fresh),
        (Colpack, false, ("read", 1, 1), Phase::Fresh),
        (Colpack, false, ("layout", 1, 0), Phase::Fresh),
        (Colpack, false, ("layout", 1, 8), Phase::Fresh),
        (Colpack, false, ("sync", 1, 0), Phase::Fresh),
        (Colpack, false, ("pack columns", 1, 0), done(0)),
        (Colpack, false, ("pack columns", 1, 4), done(4)),
        (Colpack, false, ("sync", 2, 0), done(10)),
        // It is not in place yet.
        (Colpack, false, ("sync", 2, 1), done(10)),
        (Simple, true, ("hash keys", 1, 0), Phase::Fresh),
        (Simple, true, ("sort keys", 1, 0), Phase::Fresh),
        (Simple, true, ("filter", 1, 0), Phase::Fresh),
        (Simple, true, ("filter", 1, 1), Phase::Fresh),
        (Simple, true, ("hint", 1, 0), of(0, 2)),
        (Simple, true, ("hint", 1, 1), of(1, 2)),
        (Hybrid, false, ("hint", 1, 1), of(1, 1)),
        (Hybrid, false, ("sync", 2, 0), of(1, 1)),
        (Onion, true, ("filter", 1, 1), Phase::Fresh),
        (Onion, false, ("transform", 1, 0), Phase::Fresh),
        (Onion, false, ("transform", 1, 1), Phase::Fresh),
    ] {
        let (place, at) = (Place::new(), format!("{protocol}, {stage} {nth}, {units} units"));
        let canceller = Canceller::new(stage, nth, units);
        assert_eq!(canceller.run(place.request(protocol, by_key)), phase, "{at}");
        let Seen { after, units: done, .. } = canceller.seen.into_inner().unwrap();
        // The next stage may have begun before it looked, but not gone anywhere.
        assert!(after.0 <= 1 && after.1 == 0, "{at}: then {after:?} of {done} units");
        assert!(!place.target().exists(), "{at}");
        assert_eq!(place.partial().exists(), phase != Phase::Fresh, "{at}");
        // The same job goes on.
        make(place.request(protocol, by_key));
        assert!(is_whole(&place.target()) && !place.partial().exists(), "{at}");
    }
}

#[test]
fn what_is_left_and_what_is_there_stay() {
    let place = Place::new();
    let request = || place.request(Protocol::Colpack, true);
    let epoch = make(request()).header.descriptor.epoch;
    let units = match Canceller::new("pack columns", 1, 3).run(request()) {
        Phase::LaidOut { done: 3, units } => units,
        other => panic!("{other:?}"),
    };
    // Before it is known whether the job can go on, and while that is found out.
    for (stage, phase) in [("read", Phase::LeftOver), ("check", Phase::LeftOver)] {
        assert_eq!(Canceller::new(stage, 1, 0).run(request()), phase, "{stage}");
    }
    // Before the plaintexts are read that are done, and while they are.
    for (stage, nth) in [("layout", 1), ("check", 2)] {
        assert_eq!(Canceller::new(stage, nth, 0).run(request()), Phase::LaidOut { done: 0, units });
    }
    let there = Snapshot::open(&place.target(), Verify::Full).unwrap();
    assert_eq!(there.header().descriptor.epoch, epoch);
    let last = Canceller::new("pack columns", 1, units as u64 - 3);
    assert_eq!(last.run(request()), Phase::LaidOut { done: units, units }, "only the others were left");
    assert_ne!(make(request()).header.descriptor.epoch, epoch);
    assert!(is_whole(&place.target()));
}

#[test]
fn a_silent_input_does_not_hold_up_the_end() {
    let place = Place::new();
    fs::remove_file(place.input()).unwrap();
    assert!(Command::new("mkfifo").arg(place.input()).status().unwrap().success());
    let (path, (written, was_written)) = (place.input(), channel());
    let (end, ended) = channel::<()>();
    let writer = thread::spawn(move || {
        let mut pipe = File::options().write(true).open(path).unwrap();
        pipe.write_all(b"{\"k\": \"a\", \"v\": \"1\"}\n").unwrap();
        written.send(()).unwrap();
        // Open, and silent, until the job has ended.
        ended.recv().unwrap_err();
    });
    let cancel = Cancel::new();
    let job = Job::open(place.request(Protocol::Simple, true), &cancel).unwrap();
    let (outcome, waiting) = channel();
    // Nobody waits for it if this test has failed.
    thread::spawn(move || outcome.send(job.run(&on_cpu(1), &Silent)).is_ok());
    was_written.recv().unwrap();
    assert!(waiting.recv_timeout(Duration::from_millis(300)).is_err(), "the input has not ended");
    cancel.cancel();
    let outcome = waiting.recv_timeout(Duration::from_secs(60)).expect("it waits for its input");
    assert!(matches!(outcome, Err(JobError::Cancelled { phase: Phase::Fresh })), "{outcome:?}");
    drop(end);
    writer.join().unwrap();
}

#[test]
fn jobs_of_one_process_do_not_meet() {
    let (place, other) = (Place::new(), Place::new());
    let cancel = Cancel::new();
    let job = Job::open(place.request(Protocol::Simple, true), &cancel).unwrap();
    let busy = Job::open(place.request(Protocol::Simple, true), &Cancel::new()).err().unwrap();
    assert!(matches!(busy, JobError::Target(SnapshotError::Busy(_))), "{busy}");
    // One is cancelled while the other is on its way.
    let running = thread::spawn({
        let request = other.request(Protocol::Simple, true);
        move || make(request)
    });
    cancel.cancel();
    let outcome = job.run(&on_cpu(1), &Silent);
    assert!(matches!(outcome, Err(JobError::Cancelled { phase: Phase::Fresh })), "{outcome:?}");
    running.join().unwrap();
    assert!(is_whole(&other.target()) && !place.target().exists());
    make(place.request(Protocol::Simple, true));
}

#[test]
fn what_is_wrong_is_told_by_kind() {
    let place = Place::new();
    let error = |change: &dyn Fn(&mut JobRequest)| {
        let mut request = place.request(Protocol::Simple, true);
        change(&mut request);
        Job::open(request, &Cancel::new()).and_then(|job: Job| job.run(&on_cpu(1), &Silent)).unwrap_err()
    };
    let missing = error(&|request| request.ingest.key = vec!["none".into()]);
    assert!(matches!(missing, JobError::Ingest(IngestError::MissingColumn { .. })), "{missing}");
    let large = error(&|request| request.ingest.max_value_size = 10);
    assert!(matches!(large, JobError::Ingest(IngestError::ValueTooLong { .. })), "{large}");
    let columns = error(&|request| request.options.protocol = Some(Protocol::Frodo));
    assert!(matches!(columns, JobError::Build(_)), "{columns}");
    let rows = fs::read_to_string(place.input()).unwrap();
    fs::write(place.input(), rows.repeat(2)).unwrap();
    let twice = error(&|_| ());
    assert!(matches!(&twice, JobError::DuplicateKey { input, .. } if *input == place.input()), "{twice}");
    let path = place.input().display().to_string();
    assert!(twice.to_string().starts_with(&format!("{path}: rows 1 and 41 both")), "{twice}");
    fs::write(place.input(), &rows).unwrap();
    let of_files = error(&|request| request.input = Input::of_all(vec![request.input.clone(); 2]));
    assert!(of_files.to_string().starts_with(&format!("{path}, row 1 and {path}, row 1 both")), "{of_files}");
    assert!(!place.target().exists() && !place.partial().exists());
    fs::write(place.input(), rows).unwrap();
    make(place.request(Protocol::Simple, true));
    let there = error(&|request| request.force = false);
    assert!(matches!(there, JobError::Target(SnapshotError::Exists(_))), "{there}");
}

#[test]
fn a_target_is_looked_at_before_the_input() {
    let place = Place::new();
    std::os::unix::fs::symlink("nowhere", place.target()).unwrap();
    // The input is not there either.
    let input = Input::Path(place.0.path().join("none.csv"));
    let request = JobRequest { input, ..place.request(Protocol::Simple, true) };
    let error = Job::open(request, &Cancel::new()).err().unwrap();
    assert!(matches!(error, JobError::Target(SnapshotError::DanglingLink { .. })), "{error}");
}

#[test]
fn a_job_tells_how_many_rows_it_has_read_and_where_a_field_is_long() {
    struct Notes(Mutex<Vec<String>>);
    impl Progress for Notes {
        fn start(&self, _: &str, _: u64, _: &'static str) {}
        fn advance(&self, _: u64) {}
        fn resume(&self, _: u64) {}
        fn note(&self, line: &str) {
            self.0.lock().unwrap().push(line.into());
        }
    }
    let place = Place::new();
    let input = place.0.path().join("rows.csv");
    let rows: String = (0..RECORDS).map(|i| format!("key {i},v{i}\n")).collect();
    fs::write(&input, format!("k,v\n{rows}key 1,\"two\nlines\"\n")).unwrap();
    let request = JobRequest {
        input: Input::Path(input),
        on_duplicate: OnDuplicate::First,
        sorted: None,
        ..place.request(Protocol::Simple, true)
    };
    let notes = Notes(Mutex::default());
    Job::open(request, &Cancel::new()).unwrap().run(&on_cpu(1), &notes).unwrap();
    let expected =
        "read 41 rows: 40 records; the longest field of several lines has 9 bytes and is on lines 42 to 43";
    assert!(notes.0.lock().unwrap().iter().any(|line| line == expected), "{:?}", notes.0);
}
