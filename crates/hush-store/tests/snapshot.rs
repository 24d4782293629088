//! Snapshots: what is written is read, damage is found and named, nothing is lost on the way.

use std::{fs, path::Path};

use hush_protocol::{
    Protocol,
    descriptor::{BlobRef, DESCRIPTOR_VERSION, Descriptor, Lookup},
    slot::SlotFormat,
};
use hush_store::snapshot::{
    CHUNK_BYTES, DB_FILE, FORMAT_VERSION, Header, Snapshot, SnapshotError, SnapshotWriter, Verify,
};

fn descriptor() -> Descriptor {
    Descriptor {
        version: DESCRIPTOR_VERSION,
        epoch: [0; 32],
        protocol: Protocol::Simple,
        preset: "none".into(),
        records: 1,
        columns: 1,
        blocks: 1,
        word_bits: Some([32; 3]),
        slot: SlotFormat::for_values(0, 1, 1),
        lookup: Lookup::Index,
        hint: Some(BlobRef { blake3: [0; 32], bytes: 0 }),
        whitening: None,
        database: [0; 32],
    }
}

/// Writes a snapshot with one file of `content`.
fn write(target: &Path, content: &[u8], force: bool) -> Result<(), SnapshotError> {
    let writer = SnapshotWriter::create(target, force)?;
    let mut file = writer.create_mapped(DB_FILE, content.len())?;
    file.bytes().copy_from_slice(content);
    let header = Header {
        version: FORMAT_VERSION,
        written_by: "test".into(),
        descriptor: descriptor(),
        payload_bytes: 1,
        source: "test".into(),
        files: vec![file.finish()?],
    };
    writer.commit(&header)
}

fn content(target: &Path) -> Vec<u8> {
    let mut snapshot = Snapshot::open(target, Verify::Full).unwrap();
    snapshot.take(DB_FILE).unwrap().as_ref().to_vec()
}

/// Names in the folder that holds the target.
fn siblings(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_written_is_read() {
    let dir = tempfile::tempdir().unwrap();
    for (name, length) in [("empty", 0), ("small", 1), ("chunk", CHUNK_BYTES), ("more", CHUNK_BYTES + 1)] {
        let bytes: Vec<u8> = (0..length).map(|i| (i * 7) as u8).collect();
        write(&dir.path().join(name), &bytes, false).unwrap();
        assert_eq!(content(&dir.path().join(name)), bytes);
    }
}

#[test]
fn replacing_needs_force_and_keeps_the_old_for_its_readers() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("table");
    write(&target, b"old", false).unwrap();
    let mut reader = Snapshot::open(&target, Verify::Full).unwrap();
    assert!(matches!(write(&target, b"new", false), Err(SnapshotError::Exists(_))));
    write(&target, b"new", true).unwrap();
    assert_eq!(content(&target), b"new");
    assert_eq!(reader.take(DB_FILE).unwrap().as_ref(), b"old");
    assert_eq!(siblings(dir.path()), [".table.hush-lock", "table"]);
}

#[test]
fn an_abandoned_build_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("table");
    let writer = SnapshotWriter::create(&target, false).unwrap();
    writer.create_mapped(DB_FILE, 100).unwrap();
    assert!(matches!(SnapshotWriter::create(&target, false), Err(SnapshotError::Busy(_))));
    drop(writer);
    assert_eq!(siblings(dir.path()), [".table.hush-lock"]);
}

#[test]
fn what_crashes_left_is_cleared_or_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("table");
    write(&target, b"good", false).unwrap();
    // A crash between moving the old one aside and putting the new one in place, after a crash in a build.
    fs::rename(&target, dir.path().join(".table.hush-old")).unwrap();
    fs::create_dir(dir.path().join(".table.hush-partial")).unwrap();
    fs::write(dir.path().join(".table.hush-partial/db.bin"), b"half").unwrap();
    assert!(matches!(SnapshotWriter::create(&target, false), Err(SnapshotError::Exists(_))));
    assert_eq!(content(&target), b"good");
    write(&target, b"better", true).unwrap();
    assert_eq!(content(&target), b"better");
    assert_eq!(siblings(dir.path()), [".table.hush-lock", "table"]);
}

#[test]
fn damage_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("table");
    write(&target, &vec![7; CHUNK_BYTES + 10], false).unwrap();
    let path = target.join(DB_FILE);
    let mut bytes = fs::read(&path).unwrap();
    bytes[CHUNK_BYTES + 3] ^= 1;
    fs::write(&path, &bytes).unwrap();
    match Snapshot::open(&target, Verify::Full) {
        Err(SnapshotError::Corrupt { path: named, start, .. }) => {
            assert_eq!((named, start), (path.clone(), CHUNK_BYTES as u64));
        }
        other => panic!("{:?}", other.map(|_| ())),
    }
    assert!(Snapshot::open(&target, Verify::Header).is_ok());
    fs::write(&path, &bytes[1..]).unwrap();
    assert!(matches!(Snapshot::open(&target, Verify::Header), Err(SnapshotError::Length { .. })));

    let header = target.join("header.json");
    let text = fs::read_to_string(&header).unwrap();
    for damaged in ["", "{}", "[1]", &text[1..], &text.replace("\"test\"", "\"tent\"")] {
        fs::write(&header, damaged).unwrap();
        let error = Snapshot::open(&target, Verify::Header).err().unwrap();
        assert!(matches!(error, SnapshotError::Header { .. }), "{error}");
    }
    assert!(matches!(Snapshot::open(dir.path(), Verify::Full), Err(SnapshotError::Missing { .. })));
}
