//! Builds that are killed and started again: they end in the very table that they were to make, do again only what was not
//! done, and start clean where anything else is asked for.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Mutex,
};

use hush_build::builder::Compress;
use hush_engine::Progress;
use hush_protocol::{
    Protocol,
    colpack::Colpack,
    column_page::ColumnPacked,
    column_table::ColumnTable,
    facts::{CHAIN_FILE, COLUMNS_FILE, DB_FILE},
};
use hush_store::snapshot::{Snapshot, Verify};

use crate::tables::{Folder, Wanted, files, on_cpu};

/// Plaintexts of the table of column packing: five entries of two planes, of which the second has 44 rows.
const PLAINTEXTS: u64 = 10;

/// By index: 40 records of 300 bytes in 8 columns.
const COLPACK: Wanted = Wanted {
    protocol: Protocol::Colpack,
    preset: None,
    by_key: false,
    records: 40,
    bytes: 300,
    columns: 8,
    tiers: &[],
    compress: Compress::None,
    form: None,
    room: None,
};

/// A table of [`COLPACK`] under the small parameter set.
const SMALL: Wanted = Wanted { preset: Some("INSECURE_COLPACK_N256"), ..COLPACK };

impl Folder {
    /// Returns the folder that a killed build leaves.
    fn partial(&self) -> PathBuf {
        self.dir.path().join(".table.hush-partial")
    }

    /// Another folder for the same table, in which its build was killed once `units` of `stage` were done. The table is
    /// built here.
    fn killed(&self, threads: usize, stage: &'static str, units: u64) -> Self {
        self.killed_in(threads, 1, stage, units)
    }

    /// Kills a build where `stage` begins for the `time`th time.
    fn killed_in(&self, threads: usize, time: usize, stage: &'static str, units: u64) -> Self {
        let left = Self::new(self.wanted);
        let (from, copy) = (self.partial(), left.partial());
        let killer = Killer { at: Some((stage, time, units)), from, copy, ..Killer::default() };
        self.build("table", &on_cpu(threads), &killer).unwrap();
        assert!(left.partial().exists(), "stage {stage} has no {units} units");
        left
    }

    /// Builds the table; returns what was done before, by stage.
    fn resumed(&self) -> Vec<(String, u64)> {
        let watch = Killer::default();
        self.build("table", &on_cpu(2), &watch).unwrap();
        assert!(!self.partial().exists());
        watch.stages.into_inner().unwrap().resumed
    }

    /// Returns a folder for a table in which a build of this one was killed.
    fn left_to(&self, wanted: Wanted) -> Self {
        let other = Self::new(wanted);
        copy(&self.partial(), &other.partial());
        other
    }
}

/// Copies the partial folder in the middle of a build: what a kill at that moment leaves. Also notes what was resumed.
#[derive(Default)]
struct Killer {
    /// Stage, how often it was begun, and units done.
    at: Option<(&'static str, usize, u64)>,
    from: PathBuf,
    copy: PathBuf,
    stages: Mutex<Stages>,
}

#[derive(Default)]
struct Stages {
    stage: String,
    done: u64,
    /// All that were begun.
    begun: Vec<String>,
    resumed: Vec<(String, u64)>,
}

impl Killer {
    fn look(&self, stages: &Stages) {
        let now = self.at.is_some_and(|(stage, time, units)| {
            let times = stages.begun.iter().filter(|begun| *begun == stage).count();
            (stage, time) == (&stages.stage, times) && units <= stages.done
        });
        if now && !self.copy.exists() {
            copy(&self.from, &self.copy);
        }
    }
}

impl Progress for Killer {
    fn start(&self, stage: &str, _: u64, _: &'static str) {
        let mut stages = self.stages.lock().unwrap();
        (stages.stage, stages.done) = (stage.into(), 0);
        stages.begun.push(stage.into());
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

fn assert_same(one: &Folder, other: &Folder) {
    let (one, other) = (files(&one.table()), files(&other.table()));
    assert!(one.iter().map(|(name, _)| name).eq(other.iter().map(|(name, _)| name)));
    for ((name, one), (_, other)) in one.iter().zip(&other) {
        assert!(one == other, "{name}");
    }
}

fn layout(records: usize) -> (String, u64) {
    ("layout".into(), records as u64)
}

fn copy(from: &Path, to: &Path) {
    DirBuilder::new().mode(0o700).create(to).unwrap();
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
            let whole = Folder::new(wanted);
            let left = whole.killed(2, "pack columns", units);
            let mut resumed = left.resumed();
            assert_eq!(resumed.remove(0), layout(wanted.records));
            // The other thread may have recorded one more.
            match resumed.as_slice() {
                [] => assert_eq!(units, 0),
                [(stage, done)] => assert!(stage == "pack columns" && *done >= units, "{done}"),
                more => panic!("{more:?}"),
            }
            assert_same(&whole, &left);
        }
    }
}

#[test]
fn a_build_of_tiers_goes_on_in_the_segment_that_it_was_in() {
    let tiers = &[60, 300, 900];
    let whole = Folder::new(Wanted { by_key: true, records: 1500, columns: 1200, tiers, ..SMALL });
    let (time, units) = (3, 1);
    let left = whole.killed_in(1, time, "pack columns", units);
    let resumed = left.resumed();
    assert_eq!(resumed[0], layout(1500));
    assert!(resumed[1..].iter().all(|(stage, _)| stage == "pack columns"), "{resumed:?}");
    let done: Vec<u64> = resumed[1..].iter().map(|(_, done)| *done).collect();
    let descriptor = whole.descriptor();
    let plaintexts = descriptor.tables::<ColumnPacked<Colpack>>().unwrap();
    let plaintexts: Vec<u64> =
        plaintexts.iter().map(|table| table.pack_shape().plaintexts() as u64).collect();
    assert!(plaintexts[2] > units, "{plaintexts:?}");
    assert_eq!(done, [plaintexts[0], plaintexts[1], units]);
    assert_same(&whole, &left);
}

#[test]
fn only_what_is_damaged_is_done_again() {
    let whole = Folder::new(COLPACK);
    let left = whole.killed(1, "pack columns", 6);
    let table: ColumnTable = whole.descriptor().tables::<ColumnPacked<Colpack>>().unwrap()[0];
    assert_eq!(table.pack_shape().plaintexts() as u64, PLAINTEXTS);
    assert_eq!((table.pack_shape().planes(), table.pack_shape().plaintext_rows(9).len()), (2, 44));
    let row_of =
        |plaintext| table.columns_tiling().offset(table.pack_shape().plaintext_rows(plaintext).start, 7);
    let half = table.chain().bytes() as usize / 2;
    // One of the first six in each file, the seventh, which was not done, and part of an entry of the journal.
    for (name, byte, intact) in [
        (COLUMNS_FILE, row_of(0), 5),
        (COLUMNS_FILE, row_of(5), 5),
        (COLUMNS_FILE, row_of(6), 6),
        (CHAIN_FILE, 0, 5),
        (CHAIN_FILE, half + 5 * half / PLAINTEXTS as usize, 5),
        (CHAIN_FILE, half + 6 * half / PLAINTEXTS as usize, 6),
        ("build.journal", 40 * 3 + 20, 5),
    ] {
        let again = left.left_to(COLPACK);
        flip(&again.partial().join(name), byte);
        assert_eq!(again.resumed(), [layout(40), ("pack columns".into(), intact)], "{name}, {byte}");
        assert_same(&whole, &again);
    }
}

#[test]
fn files_of_another_length_are_made_anew() {
    let whole = Folder::new(COLPACK);
    let left = whole.killed(1, "pack columns", 6);
    for name in [COLUMNS_FILE, CHAIN_FILE] {
        let again = left.left_to(COLPACK);
        let path = again.partial().join(name);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(again.resumed(), [layout(40)]);
        assert_same(&whole, &again);
    }
}

#[test]
fn anything_else_starts_clean() {
    let left = Folder::new(COLPACK).killed(2, "pack columns", 2);
    let starts_clean = |folder: &Folder| {
        assert_eq!(folder.resumed(), []);
        Snapshot::open(&folder.table(), Verify::Full).unwrap();
    };
    for other in [
        Wanted { records: 39, ..COLPACK },
        Wanted { columns: 4, ..COLPACK },
        Wanted { by_key: true, ..COLPACK },
        Wanted { protocol: Protocol::ColpackS, ..COLPACK },
    ] {
        starts_clean(&left.left_to(other));
    }
    flip(&left.partial().join(DB_FILE), 1000);
    starts_clean(&left);
}

#[test]
fn hints_go_on_behind_what_was_done() {
    // Steps of 2048 rows; tiles of 16 plaintexts, eight slots. Of the first hint, where there is a second, nothing is kept.
    for (protocol, bytes, rows, done) in [
        (Protocol::Simple, 300, 0, None),
        (Protocol::Simple, 300, 4096, Some(4096)),
        (Protocol::Hybrid, 300, 0, None),
        (Protocol::ExppackS, 300, 8192, Some(7200)),
        (Protocol::ExppackD, 60, 2048, None),
        (Protocol::Double, 150, 4096, None),
    ] {
        let whole = Folder::new(Wanted::by_index(protocol, 40, bytes, 1));
        let left = whole.killed(1, "hint", rows);
        let again = done.map(|done| ("hint".into(), done));
        let expected: Vec<_> = [Some(layout(40)), again].into_iter().flatten().collect();
        assert_eq!(left.resumed(), expected, "{protocol}");
        assert_same(&whole, &left);
    }
}

#[test]
fn a_build_that_was_killed_before_there_was_a_state_starts_clean() {
    let left = Folder::new(COLPACK).killed(1, "layout", 40);
    assert_eq!(left.resumed(), [], "before there is a state");
}
