//! Tests of a killed build's files: only the same build takes them over, and only whole ones.

mod samples;

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use hush_store::{
    cancel::{Cancel, Cancelled},
    snapshot::{
        COLUMNS_FILE, DB_FILE, Identity, Journal, Phase, Snapshot, SnapshotError, SnapshotWriter, State,
        Verify,
    },
};
use tempfile::TempDir;

use samples::{descriptor, header};

const CONTENT: &[u8] = b"a database";

fn identity() -> Identity {
    Identity { program: "test 1".into(), options: "none".into(), records: [1; 32] }
}

/// A folder for a table that is built and killed.
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

    fn writer(&self) -> SnapshotWriter {
        SnapshotWriter::create(&self.target(), false).unwrap()
    }

    /// Returns a writer of a table that is laid out.
    fn laid_out(&self) -> SnapshotWriter {
        let writer = self.writer();
        let mut file = writer.create_mapped(DB_FILE, CONTENT.len()).unwrap();
        file.bytes().copy_from_slice(CONTENT);
        let database = file.finish().unwrap();
        writer
            .save(&State {
                identity: identity(),
                descriptor: descriptor(None),
                choice: None,
                changes: None,
                files: vec![database],
            })
            .unwrap();
        writer
    }

    /// Ends a build as a kill does: its lock is gone, its files stay.
    fn kill(&self, writer: SnapshotWriter) {
        let saved = self.0.path().join("saved");
        DirBuilder::new().mode(0o700).create(&saved).unwrap();
        for name in names(&self.partial()) {
            fs::copy(self.partial().join(&name), saved.join(&name)).unwrap();
        }
        drop(writer);
        assert!(!self.partial().exists());
        fs::rename(&saved, self.partial()).unwrap();
    }

    /// Returns whether the next build takes over what is there; else it has to be gone.
    fn is_taken_over(&self) -> bool {
        let writer = self.writer();
        let taken = writer.take_over(&identity(), |_| ()).unwrap().is_some();
        assert_eq!(names(&self.partial()).is_empty(), !taken);
        assert_eq!(*writer.phase().lock() == Phase::Fresh, !taken);
        taken
    }
}

/// Returns the names in a folder.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn flip(path: &Path, place: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[place] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn what_was_laid_out_becomes_the_snapshot() {
    let place = Place::new();
    place.kill(place.laid_out());
    fs::write(place.partial().join(".tmpXYZ"), b"scratch").unwrap();
    fs::write(place.partial().join("header.json"), b"of a build killed later").unwrap();
    let writer = place.writer();
    assert_eq!(*writer.phase().lock(), Phase::LeftOver);
    let mut checked = 0;
    let state = writer.take_over(&identity(), |bytes| checked = bytes).unwrap().unwrap();
    assert_eq!((state.descriptor, checked), (descriptor(None), CONTENT.len() as u64));
    assert_eq!(names(&place.partial()), ["build.json", DB_FILE]);
    assert_eq!(*writer.phase().lock(), Phase::LaidOut { done: 0, units: 0 });
    writer.segment(0).open_journal(&[], 3, [0; 32]).unwrap().record(2, b"").unwrap();
    writer.commit(&header(descriptor(None), vec![state.files[0].clone()])).unwrap();
    assert_eq!(names(&place.target()), [DB_FILE, "header.json"]);
    let mut snapshot = Snapshot::open(&place.target(), Verify::Full).unwrap();
    assert_eq!(snapshot.take(DB_FILE).unwrap().as_ref(), CONTENT);
    assert_eq!(names(place.0.path()), ["table"]);
}

#[test]
fn a_build_of_another_identity_starts_clean() {
    for other in [
        Identity { program: "test 2".into(), ..identity() },
        Identity { options: "some".into(), ..identity() },
        Identity { records: [2; 32], ..identity() },
    ] {
        let place = Place::new();
        place.kill(place.laid_out());
        let writer = place.writer();
        assert!(writer.take_over(&other, |_| panic!("it is not checked")).unwrap().is_none());
        assert!(names(&place.partial()).is_empty());
        writer.create_mapped(DB_FILE, 1).unwrap();
    }
}

#[test]
fn a_damaged_state_or_database_is_not_taken_over() {
    type Damage = fn(&Path);
    let damages: [Damage; 7] = [
        |dir| flip(&dir.join(DB_FILE), 3),
        |dir| fs::write(dir.join(DB_FILE), &CONTENT[1..]).unwrap(),
        |dir| fs::remove_file(dir.join(DB_FILE)).unwrap(),
        |dir| flip(&dir.join("build.json"), 100),
        |dir| fs::write(dir.join("build.json"), "").unwrap(),
        |dir| fs::write(dir.join("build.json"), "{}").unwrap(),
        // Killed while it was written.
        |dir| fs::rename(dir.join("build.json"), dir.join("build.tmp")).unwrap(),
    ];
    for damage in damages {
        let place = Place::new();
        place.kill(place.laid_out());
        damage(&place.partial());
        assert!(!place.is_taken_over());
    }
    let place = Place::new();
    place.kill(place.laid_out());
    assert!(place.is_taken_over());
}

#[test]
fn a_cancelled_build_keeps_what_can_be_gone_on_from() {
    let (place, cancel) = (Place::new(), Cancel::new());
    let is_cancelled = |error| matches!(error, SnapshotError::Cancelled(Cancelled));
    let writer = place.writer().cancelled_by(&cancel);
    let file = writer.create_mapped(DB_FILE, CONTENT.len()).unwrap();
    let other = writer.create_mapped(COLUMNS_FILE, 1).unwrap();
    assert!(file.blob_hash().is_ok() && other.finish().is_ok());
    cancel.cancel();
    assert_eq!(file.blob_hash(), Err(Cancelled));
    assert!(is_cancelled(file.finish().unwrap_err()));
    drop(writer);
    assert!(!place.partial().exists(), "nothing was laid out");

    drop(place.laid_out().cancelled_by(&cancel));
    assert_eq!(names(&place.partial()), ["build.json", DB_FILE]);
    let writer = place.writer().cancelled_by(&cancel);
    assert!(is_cancelled(writer.take_over(&identity(), |_| ()).unwrap_err()));
    assert_eq!(*writer.phase().lock(), Phase::LeftOver);
    drop(writer);
    assert_eq!(names(&place.partial()), ["build.json", DB_FILE]);

    let cancel = Cancel::new();
    let writer = place.writer().cancelled_by(&cancel);
    let state = writer.take_over(&identity(), |_| ()).unwrap().unwrap();
    let journal = writer.segment(0).open_journal(&[], UNITS, KEY).unwrap();
    journal.record(1, b"").unwrap();
    cancel.cancel();
    assert_eq!(journal.intact(|_, _| ()), Err(Cancelled));
    assert_eq!(*writer.phase().lock(), Phase::LaidOut { done: 1, units: UNITS });
    assert!(is_cancelled(
        writer.commit(&header(descriptor(None), vec![state.files[0].clone()])).unwrap_err()
    ));
    assert!(!place.target().exists());
    assert!(place.is_taken_over());
}

#[test]
fn a_build_that_fails_removes_what_is_its_own() {
    let place = Place::new();
    place.kill(place.laid_out());
    // It failed before it knew whether it could go on.
    drop(place.writer());
    assert_eq!(names(&place.partial()), ["build.json", DB_FILE]);
    // It knew, and failed later.
    place.writer().take_over(&identity(), |_| ()).unwrap().unwrap();
    assert!(!place.partial().exists());
    place.kill(place.laid_out());
    place.writer().discard().unwrap();
    assert!(!place.partial().exists());
}

const UNITS: usize = 5;
const FILES: [(&str, usize); 1] = [(COLUMNS_FILE, UNITS)];
const KEY: [u8; 32] = [9; 32];
const NONE: [usize; 0] = [];

/// Takes over and opens a journal whose units are bytes of a file.
fn open_journal(place: &Place, key: [u8; 32]) -> (SnapshotWriter, Journal) {
    let writer = place.writer();
    writer.take_over(&identity(), |_| ()).unwrap().unwrap();
    let journal = writer.segment(0).open_journal(&FILES, UNITS, key).unwrap();
    (writer, journal)
}

/// Returns the units that are intact, after whatever was done to the folder of a build that was killed when it had done 1, 4 and 2.
fn intact_after(damage: impl FnOnce(&Path), key: [u8; 32]) -> Vec<usize> {
    let place = Place::new();
    let writer = place.laid_out();
    let journal = writer.segment(0).open_journal(&FILES, UNITS, KEY).unwrap();
    let mut file = writer.open_mapped(COLUMNS_FILE, UNITS).unwrap();
    assert!(journal.intact(|_, _| panic!("nothing is recorded")).unwrap().is_empty());
    for (done, unit) in [1, 4, 2].into_iter().enumerate() {
        assert_eq!(*writer.phase().lock(), Phase::LaidOut { done, units: UNITS });
        file.bytes()[unit] = 10 + unit as u8;
        journal.record(unit, &file.as_bytes()[unit..=unit]).unwrap();
    }
    place.kill(writer);
    damage(&place.partial());
    let (writer, journal) = open_journal(&place, key);
    let file = writer.open_mapped(COLUMNS_FILE, UNITS).unwrap();
    let intact = journal.intact(|unit, take| take(&file.as_bytes()[unit..=unit])).unwrap();
    assert_eq!(*writer.phase().lock(), Phase::LaidOut { done: intact.len(), units: UNITS });
    for &unit in &intact {
        assert_eq!(usize::from(file.as_bytes()[unit]), 10 + unit);
    }
    // What is appended now is found next time.
    journal.record(0, &file.as_bytes()[..1]).unwrap();
    place.kill(writer);
    let (_writer, journal) = open_journal(&place, key);
    assert_eq!(
        journal.intact(|unit, take| take(&file.as_bytes()[unit..=unit])).unwrap(),
        [&[0], &intact[..]].concat()
    );
    intact
}

#[test]
fn units_are_done_again_unless_they_are_as_they_were_recorded() {
    let journal = |dir: &Path| dir.join("build.journal");
    assert_eq!(intact_after(|_| (), KEY), [1, 2, 4]);
    assert_eq!(intact_after(|_| (), [8; 32]), NONE);
    // A unit whose content is another.
    assert_eq!(intact_after(|dir| flip(&dir.join(COLUMNS_FILE), 4), KEY), [1, 2]);
    // Half an entry at the end, of whatever length.
    for torn in 1..40 {
        let tear = |dir: &Path| {
            let bytes = fs::read(journal(dir)).unwrap();
            fs::write(journal(dir), &bytes[..bytes.len() - torn]).unwrap();
        };
        assert_eq!(intact_after(tear, KEY), [1, 4]);
    }
    // An entry that is damaged: its number, so that there is none like it, and its checksum.
    assert_eq!(intact_after(|dir| flip(&journal(dir), 0), KEY), [2, 4]);
    assert_eq!(intact_after(|dir| flip(&journal(dir), 7), KEY), [2, 4]);
    assert_eq!(intact_after(|dir| flip(&journal(dir), 39), KEY), [2, 4]);
    // What a file system makes of entries that it lost.
    let zeros =
        |dir: &Path| fs::write(journal(dir), [fs::read(journal(dir)).unwrap(), vec![0; 100]].concat());
    assert_eq!(intact_after(|dir| zeros(dir).unwrap(), KEY), [1, 2, 4]);
    assert_eq!(intact_after(|dir| fs::remove_file(journal(dir)).unwrap(), KEY), NONE);
}

#[test]
fn files_that_are_not_as_long_as_they_should_be_start_anew() {
    let columns = |dir: &Path| dir.join(COLUMNS_FILE);
    assert_eq!(intact_after(|dir| fs::remove_file(columns(dir)).unwrap(), KEY), NONE);
    assert_eq!(intact_after(|dir| fs::write(columns(dir), [0; UNITS + 1]).unwrap(), KEY), NONE);
    assert_eq!(intact_after(|dir| fs::write(columns(dir), []).unwrap(), KEY), NONE);
}
