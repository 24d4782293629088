//! Copies of tables, and what is kept of them: each chunk that has arrived stays, no chunk that is not the table's own is taken for
//! it, and nothing is in place before all of it is there.

mod samples;

use std::{
    fs,
    path::{Path, PathBuf},
};

use hush_store::{
    cancel::Cancel,
    snapshot::{
        ArrivingSnapshot, CHANGES_FILE, CHUNK_BYTES, Changes, CopyBeside, DB_FILE, FileEntry, HEADER_FILE,
        Header, KEYS_FILE, KeptRecords, MAX_HEADER_BYTES, Piece, Snapshot, SnapshotError, SnapshotWriter,
        SparseFolder, Trust, VALUES_FILE, Verify, keep_epoch, kept_epochs, keys,
    },
};

use samples::{descriptor, header};

const CHUNKS: usize = 3;
/// The bytes of a database with a last chunk that is not full.
const BYTES: usize = (CHUNKS - 1) * CHUNK_BYTES + 10;

/// A folder with a table and room for copies.
struct Place(tempfile::TempDir);

impl Place {
    /// Makes a table with a database of byte `content`, and one change.
    fn new(content: u8) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write(content);
        place
    }

    fn table(&self) -> PathBuf {
        self.0.path().join("table")
    }

    fn copy(&self) -> PathBuf {
        self.0.path().join("copy")
    }

    fn write(&self, content: u8) {
        let writer = SnapshotWriter::create(&self.table(), true).unwrap();
        let mut file = writer.create_mapped(DB_FILE, BYTES).unwrap();
        file.bytes().fill(content);
        file.bytes()[BYTES - 1] = 1;
        let changes = writer.keep_changes(&changes()).unwrap();
        let mut descriptor = descriptor(None);
        descriptor.epoch = [content; 32];
        writer.commit(&header(descriptor, vec![file.finish().unwrap(), changes])).unwrap();
    }

    fn header(&self) -> Header {
        Snapshot::open(&self.table(), Verify::Header).unwrap().header().clone()
    }

    fn arriving(&self, trust: Trust) -> ArrivingSnapshot {
        ArrivingSnapshot::begin(self.header(), &self.copy(), trust, &Cancel::new()).unwrap()
    }

    /// Returns the bytes of a chunk of the table.
    fn bytes(&self, piece: Piece) -> Vec<u8> {
        let header = self.header();
        let entry = &header.files[piece.file];
        let range = piece.range(entry);
        let bytes = fs::read(self.table().join(&entry.name)).unwrap()
            [range.start as usize..range.end as usize]
            .to_vec();
        assert!(piece.is_intact(entry, &bytes));
        assert!(!piece.is_intact(entry, &bytes[1..]));
        assert!(!Piece { chunk: CHUNKS, ..piece }.is_intact(entry, &bytes));
        bytes
    }

    /// Fetches `most` of the missing chunks, and returns how many were missing.
    fn fetch(&self, most: usize, trust: Trust) -> (usize, ArrivingSnapshot) {
        let copy = self.arriving(trust);
        let missing = copy.missing().to_vec();
        let bytes: usize = missing.iter().map(|piece| self.bytes(*piece).len()).sum();
        assert_eq!(copy.missing_bytes(), bytes as u64);
        missing.iter().take(most).for_each(|piece| copy.put(*piece, &self.bytes(*piece)).unwrap());
        (missing.len(), copy)
    }

    /// Checks that the copy is the table.
    fn is_copied(&self) {
        let mut copy = Snapshot::open(&self.copy(), Verify::Full).unwrap();
        assert_eq!(copy.header().descriptor.epoch, self.header().descriptor.epoch);
        assert_eq!(copy.take(DB_FILE).unwrap().as_ref(), fs::read(self.table().join(DB_FILE)).unwrap());
        assert_eq!(Changes::take(&mut copy).unwrap(), changes());
        let left = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(left.filter(|name| name.contains("hush-fetched")).count(), 0);
    }
}

fn changes() -> Changes {
    Changes([(b"key".to_vec(), Some(b"value".to_vec()))].into())
}

/// Changes a byte of a file.
fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    // The file is another one, as others may have links to it.
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn chunks_that_arrived_stay_and_the_last_one_puts_the_copy_in_place() {
    let place = Place::new(7);
    assert_eq!(place.fetch(1, Trust::Copy).0, CHUNKS + 1);
    assert!(!place.copy().exists());
    // What is damaged meanwhile is missing, and a file that is too long is cut.
    let here = place.0.path().join(".copy.hush-fetched").join(DB_FILE);
    let (missing, copy) = place.fetch(2, Trust::Copy);
    assert_eq!(missing, CHUNKS);
    drop(copy);
    flip(&here, CHUNK_BYTES + 1);
    fs::write(&here, [fs::read(&here).unwrap(), vec![0; 2 * CHUNK_BYTES]].concat()).unwrap();
    let stranger = place.0.path().join(".copy.hush-fetched/stranger");
    fs::write(&stranger, "of another table").unwrap();
    let (missing, copy) = place.fetch(9, Trust::Copy);
    assert_eq!((missing, stranger.exists(), place.copy().exists()), (2, false, false));
    assert!(!ArrivingSnapshot::is_current(&place.header(), &place.copy()));
    copy.finish().unwrap();
    place.is_copied();
    assert!(ArrivingSnapshot::is_current(&place.header(), &place.copy()));
}

#[test]
fn what_a_copy_has_is_not_fetched_again_but_what_is_damaged() {
    let place = Place::new(7);
    place.fetch(9, Trust::Copy).1.finish().unwrap();
    let before = place.header();
    place.write(8);
    assert!(!ArrivingSnapshot::is_current(&place.header(), &place.copy()));
    // The list of changes and the last chunk are the same: the file is another one.
    let (missing, copy) = place.fetch(9, Trust::Copy);
    assert_eq!(missing, CHUNKS);
    copy.finish().unwrap();
    place.is_copied();
    assert!(!ArrivingSnapshot::is_current(&before, &place.copy()));
    for (trust, missing) in [(Trust::Copy, 0), (Trust::Nothing, CHUNKS)] {
        flip(&place.copy().join(DB_FILE), 3);
        assert_eq!(place.fetch(0, trust).0, missing, "{trust:?}");
        flip(&place.copy().join(DB_FILE), 3);
    }
    assert_eq!(place.fetch(0, Trust::Nothing).0, 0);
    // A file of another length is never the table's.
    fs::remove_file(place.copy().join(CHANGES_FILE)).unwrap();
    fs::write(place.copy().join(CHANGES_FILE), "short").unwrap();
    assert!(!ArrivingSnapshot::is_current(&place.header(), &place.copy()));
    assert_eq!(place.fetch(0, Trust::Copy).0, 1);
    ArrivingSnapshot::forget(&place.copy()).unwrap();
    assert!(!place.0.path().join(".copy.hush-fetched").exists());
}

#[test]
fn a_sparse_copy_has_the_chunks_that_were_asked_for() {
    let place = Place::new(7);
    let copy = SparseFolder::begin(place.header(), &place.copy()).unwrap();
    assert!(matches!(copy.missing("none", &[]), Err(SnapshotError::Header { .. })));
    let missing = |ranges: &[std::ops::Range<usize>]| {
        let missing = copy.missing(DB_FILE, ranges).unwrap();
        let chunks: Vec<usize> = missing.pieces().iter().map(|piece| piece.chunk).collect();
        let bytes: usize = missing.pieces().iter().map(|piece| place.bytes(*piece).len()).sum();
        assert_eq!((missing.bytes(), &*missing.entry().name), (bytes as u64, DB_FILE));
        (chunks, missing)
    };
    assert!(missing(&[]).0.is_empty());
    assert_eq!(missing(&[5..5, CHUNK_BYTES - 1..CHUNK_BYTES]).0, [0]);
    assert_eq!(missing(&[CHUNK_BYTES - 1..CHUNK_BYTES + 1, 0..1]).0, [0, 1]);
    assert_eq!(missing(&[BYTES - 1..BYTES, CHUNK_BYTES..CHUNK_BYTES + 1]).0, [1, 2]);
    let (_, last) = missing(&[BYTES - 1..BYTES, CHUNK_BYTES..CHUNK_BYTES + 1]);
    assert!(matches!(copy.missing(DB_FILE, &[]), Err(SnapshotError::Busy(_))), "one at a time");
    last.pieces().iter().for_each(|piece| last.put(*piece, &place.bytes(*piece)).unwrap());
    last.finish().unwrap();
    assert_eq!(missing(&[0..BYTES]).0, [0]);
    flip(&copy.path().join(DB_FILE), BYTES - 1);
    // A copy that is opened again has what was fetched, and what is damaged is missing.
    let copy = SparseFolder::begin(place.header(), &place.copy()).unwrap();
    let missing = copy.missing(DB_FILE, &[0..BYTES]).unwrap();
    assert_eq!(missing.pieces().iter().map(|piece| piece.chunk).collect::<Vec<_>>(), [0, 2]);
    Snapshot::open(copy.path(), Verify::Header).unwrap();
    assert!(matches!(Snapshot::open(copy.path(), Verify::Full), Err(SnapshotError::Corrupt { .. })));
}

#[test]
fn a_folder_as_an_object_store_has_it_is_refused() {
    let place = Place::new(7);
    let mut header = place.header();
    header.objects.insert(DB_FILE.parse().unwrap(), "db.bin.b".parse().unwrap());
    let text = header.to_text();
    assert_eq!(Header::parse(text.as_bytes(), Path::new("")).unwrap().objects, header.objects);
    fs::write(place.table().join(HEADER_FILE), text).unwrap();
    let error = Snapshot::open(&place.table(), Verify::Header).err().unwrap();
    assert!(error.to_string().ends_with("serve the table from its URL"), "{error}");
}

#[test]
fn what_is_taken_from_a_table_is_checked() {
    let place = Place::new(7);
    let mut snapshot = Snapshot::open(&place.table(), Verify::Header).unwrap();
    assert_eq!(Changes::take(&mut snapshot).unwrap(), changes());
    assert_eq!(snapshot.take_checked(DB_FILE).unwrap().as_ref()[0], 7);
    flip(&place.table().join(CHANGES_FILE), 0);
    flip(&place.table().join(DB_FILE), BYTES - 1);
    let mut snapshot = Snapshot::open(&place.table(), Verify::Header).unwrap();
    assert!(matches!(Changes::take(&mut snapshot), Err(SnapshotError::Corrupt { .. })));
    let start = (BYTES - 10) as u64;
    match snapshot.take_checked(DB_FILE) {
        Err(SnapshotError::Corrupt { start: from, end, .. }) => {
            assert_eq!((from, end), (start, BYTES as u64))
        }
        other => panic!("{:?}", other.map(drop)),
    }
}

#[test]
fn records_are_kept_in_order_and_checked() {
    let place = Place::new(7);
    let long = vec![b'k'; 65_535];
    let records: [(&[u8], &[u8]); 4] =
        [(b"a", b"first"), (b"", b"of the empty key"), (&long, b""), (b"last", &[9; 300])];
    let writer = SnapshotWriter::create(&place.table(), true).unwrap();
    let files = writer.keep_records(records.into_iter()).unwrap();
    assert_eq!(files.each_ref().map(|file| file.bytes), [4 * 6 + 65_540, 5 + 16 + 300]);
    let digests = files.each_ref().map(FileEntry::digest);
    assert_ne!(digests[0], digests[1]);
    writer.commit(&header(descriptor(None), files.to_vec())).unwrap();
    let open = || Snapshot::open(&place.table(), Verify::Header).unwrap();
    let kept = KeptRecords::take(&mut open()).unwrap();
    assert_eq!(kept.iter().collect::<Vec<_>>(), records);
    kept.check().unwrap();
    let content = fs::read(place.table().join(KEYS_FILE)).unwrap();
    let lengths = records.map(|(key, value)| (key, value.len()));
    assert_eq!(keys(&content).collect::<Vec<_>>(), lengths);
    assert_eq!(
        keys(&content[..content.len() - 1]).collect::<Vec<_>>(),
        lengths[..3],
        "what is cut is no key"
    );
    // A change through the file system is found.
    fs::write(place.table().join(VALUES_FILE), vec![1; 321]).unwrap();
    assert!(matches!(kept.check(), Err(SnapshotError::Changed { .. })));
    assert!(matches!(KeptRecords::take(&mut open()), Err(SnapshotError::Corrupt { .. })));
}

#[test]
fn a_header_lists_each_file_once_with_all_its_checksums() {
    let place = Place::new(7);
    let whole = place.header();
    type Change = fn(&mut Header);
    let parsed = |change: Change| {
        let mut header = whole.clone();
        change(&mut header);
        Header::parse(header.to_text().as_bytes(), Path::new("header.json"))
            .map_err(|error| error.to_string())
    };
    assert_eq!(parsed(|_| ()).unwrap().files, whole.files);
    let wrong: [(Change, &str); 5] = [
        (|header| header.files.push(header.files[0].clone()), "or twice"),
        (|header| header.files[0].name = HEADER_FILE.parse().unwrap(), "as a file of its own"),
        (|header| header.files[0].chunk_bytes -= 1, "do not fit its length"),
        (|header| header.files[0].chunks.truncate(32), "do not fit its length"),
        (|header| header.files[0].bytes = 4, "do not fit its length"),
    ];
    for (change, said) in wrong {
        let error = parsed(change).err().unwrap();
        assert!(error.contains(said), "{error}");
    }
    fs::remove_file(place.table().join(HEADER_FILE)).unwrap();
    fs::create_dir(place.table().join(HEADER_FILE)).unwrap();
    let said = |place: &Path| Snapshot::open(place, Verify::Header).err().unwrap().to_string();
    for (there, words) in [
        (place.table(), "header.json"),
        (place.0.path().join("none"), "is not a hushdb snapshot"),
        ("s3://bucket/table".into(), "is a URL, and the folder of a table is needed"),
        ("x".repeat(300).into(), "too long"),
    ] {
        let said = said(&there);
        assert!(said.contains(words), "{said}");
        assert_eq!(said.contains("not a hushdb"), words.contains("not a hushdb"), "{said}");
    }
    fs::remove_dir(place.table().join(HEADER_FILE)).unwrap();
    let long = fs::File::create(place.table().join(HEADER_FILE)).unwrap();
    long.set_len(MAX_HEADER_BYTES + 1).unwrap();
    assert!(said(&place.table()).contains("bytes is no header"));
}

#[test]
fn a_copy_beside_is_held_by_one_and_removed_by_the_next() {
    let place = Place::new(7);
    let beside = CopyBeside::hold(&place.table()).unwrap();
    assert!(matches!(CopyBeside::hold(&place.table()), Err(SnapshotError::Busy(_))));
    beside.make(&place.table()).unwrap();
    let content = || fs::read(beside.table().join(DB_FILE)).unwrap()[0];
    assert_eq!(
        (Snapshot::open(&beside.table(), Verify::Full).unwrap().header().files.len(), content()),
        (2, 7)
    );
    place.write(8);
    assert_eq!(content(), 7);
    CopyBeside::remove_left(&place.table()).unwrap();
    assert!(beside.table().exists(), "somebody works on it");
    beside.make(&place.table()).unwrap();
    assert_eq!(content(), 8);
    let table = beside.table();
    drop(beside);
    CopyBeside::remove_left(&place.table()).unwrap();
    assert!(!table.exists());
    CopyBeside::remove_left(&place.table()).unwrap();
    assert_eq!(
        fs::read_dir(place.0.path()).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()).count(),
        1
    );
}

#[test]
fn an_epoch_that_is_kept_is_whole_and_the_newest_stay() {
    let place = Place::new(1);
    let epochs = || -> Vec<u8> {
        let kept = kept_epochs(&place.table()).unwrap();
        kept.iter()
            .map(|epoch| Snapshot::open(&epoch.path, Verify::Full).unwrap().header().descriptor.epoch[0])
            .collect()
    };
    assert!(epochs().is_empty());
    let folder = place.0.path().join(".table.epochs");
    fs::write(&folder, "no folder").unwrap();
    assert!(kept_epochs(&place.table()).is_err());
    fs::remove_file(&folder).unwrap();
    for (content, most, kept) in
        [(1, 2, vec![1]), (2, 2, vec![1, 2]), (1, 2, vec![2, 1]), (3, 2, vec![1, 3]), (4, 1, vec![4])]
    {
        place.write(content);
        keep_epoch(&place.table(), most).unwrap();
        assert_eq!(epochs(), kept);
    }
}
