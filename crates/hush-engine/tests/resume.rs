//! Builds that are killed and started again: they end in the very table that they were to make, do again only what was not
//! done, and start clean where anything else is asked for.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use hush_cpu::Cpu;
use hush_engine::{
    Backends, Progress,
    build::{BuildOptions, build},
};
use hush_he::params::{DEFAULT_LWE, INSECURE_COLPACK_N256, INSECURE_PACK_N256};
use hush_protocol::{
    column_table::ColumnTable,
    keyword::FilterKind,
    table::{Protocol, TableParams},
};
use hush_store::{
    ingest::{OnDuplicate, Record, Spool},
    snapshot::{CHAIN_FILE, COLUMNS_FILE, DB_FILE, Snapshot, SnapshotWriter, Verify},
};
use tempfile::TempDir;

/// Plaintexts of the table of column packing: five entries of two planes, of which the second has 44 rows.
const PLAINTEXTS: u64 = 10;

/// What is built.
#[derive(Clone)]
struct Wanted {
    protocol: Protocol,
    by_key: bool,
    records: usize,
    columns: usize,
}

/// By index: 40 records of 300 bytes in 8 columns.
const COLPACK: Wanted = Wanted { protocol: Protocol::Colpack, by_key: false, records: 40, columns: 8 };

impl Wanted {
    fn build(&self, place: &Place, threads: usize, progress: &Killer) {
        let mut spool = Spool::create(place.0.path()).unwrap();
        for i in 0..self.records {
            let key = self.by_key.then(|| format!("key {i}").into_bytes());
            spool.push(&Record { key, value: (0..300).map(|j| (i * 7 + j) as u8).collect() }).unwrap();
        }
        let records = spool.finish(OnDuplicate::Error).unwrap();
        let options = BuildOptions {
            protocol: Some(self.protocol),
            lwe: DEFAULT_LWE,
            ring: None,
            pack: Some(INSECURE_PACK_N256),
            column: Some(INSECURE_COLPACK_N256),
            filter: FilterKind::Fuse3,
            fingerprint_bytes: 8,
            columns: Some(self.columns),
        };
        let writer = SnapshotWriter::create(&place.target(), false).unwrap();
        let backends = Backends::cpu_only(Arc::new(Cpu::new(threads).unwrap()));
        build(&records, self.by_key, "records", &options, writer, &backends, progress).unwrap();
    }

    /// Builds the table, and leaves in `place` what there was once `units` of `stage` were done.
    fn killed(&self, place: &Place, threads: usize, stage: &'static str, units: u64) -> TempDir {
        let whole = Place::new();
        let copy = place.partial();
        let killer = Killer { at: Some((stage, units)), from: whole.partial(), copy, ..Killer::default() };
        self.build(&whole, threads, &killer);
        assert!(place.partial().exists(), "stage {stage} has no {units} units");
        whole.0
    }

    /// Builds the table; returns what was done before, by stage.
    fn resumed(&self, place: &Place) -> Vec<(String, u64)> {
        let watch = Killer::default();
        self.build(place, 2, &watch);
        assert!(!place.partial().exists());
        watch.stages.into_inner().unwrap().resumed
    }
}

/// A folder to build a table in.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn target(&self) -> PathBuf {
        self.0.path().join("table")
    }

    fn partial(&self) -> PathBuf {
        self.0.path().join(".table.hush-partial")
    }
}

/// Copies the partial folder in the middle of a build: what a kill at that moment leaves. Also notes what was resumed.
#[derive(Default)]
struct Killer {
    /// Stage and units done.
    at: Option<(&'static str, u64)>,
    from: PathBuf,
    copy: PathBuf,
    stages: Mutex<Stages>,
}

#[derive(Default)]
struct Stages {
    stage: String,
    done: u64,
    resumed: Vec<(String, u64)>,
}

impl Killer {
    fn look(&self, stages: &Stages) {
        let now = self.at.is_some_and(|(stage, units)| stage == stages.stage && units <= stages.done);
        if now && !self.copy.exists() {
            copy(&self.from, &self.copy);
        }
    }
}

impl Progress for Killer {
    fn start(&self, stage: &str, _: u64, _: &'static str) {
        let mut stages = self.stages.lock().unwrap();
        (stages.stage, stages.done) = (stage.into(), 0);
        self.look(&stages);
    }

    fn advance(&self, units: u64) {
        let mut stages = self.stages.lock().unwrap();
        stages.done += units;
        self.look(&stages);
    }

    fn resume(&self, units: u64) {
        let stages = &mut *self.stages.lock().unwrap();
        stages.resumed.push((stages.stage.clone(), units));
    }
}

/// All files of a table.
fn files(table: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(table)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_str().unwrap().into(), fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (files(one), files(other));
    assert!(one.iter().map(|(name, _)| name).eq(other.iter().map(|(name, _)| name)));
    for ((name, one), (_, other)) in one.iter().zip(&other) {
        assert!(one == other, "{name}");
    }
}

fn column_table(table: &Path) -> ColumnTable {
    let snapshot = Snapshot::open(table, Verify::Full).unwrap();
    match snapshot.header().descriptor.params().unwrap() {
        TableParams::Column(table) => table,
        other => panic!("{other:?} is not of column packing"),
    }
}

fn layout(records: usize) -> (String, u64) {
    ("layout".into(), records as u64)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

fn flip(path: &Path, place: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[place] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_resumed_build_makes_the_table_of_an_uninterrupted_one() {
    // By key the seeds are random, so that only what was laid out before makes the same table.
    for wanted in [COLPACK, Wanted { by_key: true, ..COLPACK }] {
        for units in [0, 4, PLAINTEXTS] {
            let place = Place::new();
            let whole = wanted.killed(&place, 2, "pack columns", units);
            let mut resumed = wanted.resumed(&place);
            assert_eq!(resumed.remove(0), layout(wanted.records));
            // The other thread may have recorded one more.
            match resumed.as_slice() {
                [] => assert_eq!(units, 0),
                [(stage, done)] => assert!(stage == "pack columns" && *done >= units, "{done}"),
                more => panic!("{more:?}"),
            }
            assert_same(&whole.path().join("table"), &place.target());
        }
    }
}

#[test]
fn only_what_is_damaged_is_done_again() {
    let left_over = Place::new();
    let whole = COLPACK.killed(&left_over, 1, "pack columns", 6);
    let table = column_table(&whole.path().join("table"));
    assert_eq!(table.pack_shape().plaintexts() as u64, PLAINTEXTS);
    assert_eq!((table.pack_shape().planes(), table.pack_shape().plaintext_rows(9).len()), (2, 44));
    let row_of =
        |plaintext| table.columns_tiling().offset(table.pack_shape().plaintext_rows(plaintext).start, 7);
    let half = 4 * table.chain_words() / 2;
    // One of the first six in each file, the seventh, which was not done, and part of an entry of the journal.
    for (name, byte, left) in [
        (COLUMNS_FILE, row_of(0), 5),
        (COLUMNS_FILE, row_of(5), 5),
        (COLUMNS_FILE, row_of(6), 6),
        (CHAIN_FILE, 0, 5),
        (CHAIN_FILE, half + 5 * half / PLAINTEXTS as usize, 5),
        (CHAIN_FILE, half + 6 * half / PLAINTEXTS as usize, 6),
        ("build.journal", 40 * 3 + 20, 5),
    ] {
        let place = Place::new();
        copy(&left_over.partial(), &place.partial());
        flip(&place.partial().join(name), byte);
        assert_eq!(COLPACK.resumed(&place), [layout(40), ("pack columns".into(), left)], "{name}, {byte}");
        assert_same(&whole.path().join("table"), &place.target());
    }
}

#[test]
fn files_of_another_length_are_made_anew() {
    let left_over = Place::new();
    let whole = COLPACK.killed(&left_over, 1, "pack columns", 6);
    for name in [COLUMNS_FILE, CHAIN_FILE] {
        let place = Place::new();
        copy(&left_over.partial(), &place.partial());
        let path = place.partial().join(name);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(COLPACK.resumed(&place), [layout(40)]);
        assert_same(&whole.path().join("table"), &place.target());
    }
}

#[test]
fn anything_else_starts_clean() {
    let left_over = Place::new();
    COLPACK.killed(&left_over, 2, "pack columns", 2);
    let starts_clean = |wanted: &Wanted, place: &Place| {
        assert_eq!(wanted.resumed(place), []);
        Snapshot::open(&place.target(), Verify::Full).unwrap();
    };
    for other in [
        Wanted { records: 39, ..COLPACK },
        Wanted { columns: 4, ..COLPACK },
        Wanted { by_key: true, ..COLPACK },
        Wanted { protocol: Protocol::ColpackS, ..COLPACK },
    ] {
        let place = Place::new();
        copy(&left_over.partial(), &place.partial());
        starts_clean(&other, &place);
    }
    flip(&left_over.partial().join(DB_FILE), 1000);
    starts_clean(&COLPACK, &left_over);
}

#[test]
fn other_protocols_go_on_behind_the_layout() {
    for protocol in [Protocol::Simple, Protocol::Hybrid] {
        let wanted = Wanted { protocol, by_key: true, ..COLPACK };
        let place = Place::new();
        // The hint is begun.
        let whole = wanted.killed(&place, 1, "hint", 0);
        assert_eq!(files(&place.partial()).len(), 3);
        assert_eq!(wanted.resumed(&place), [layout(40)]);
        assert_same(&whole.path().join("table"), &place.target());
    }
    let place = Place::new();
    COLPACK.killed(&place, 1, "layout", 40);
    assert_eq!(COLPACK.resumed(&place), [], "before there is a state");
}
