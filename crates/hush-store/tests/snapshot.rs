//! Snapshots: what is written is read, damage is found and named, nothing is lost on the way.

mod samples;

use std::{
    fs::{self, DirBuilder, File},
    io::Write,
    ops::Range,
    os::unix::{
        fs::{DirBuilderExt, PermissionsExt, chown, symlink},
        net::UnixListener,
        process::ExitStatusExt,
    },
    path::Path,
    process::Command,
    sync::Arc,
    time::UNIX_EPOCH,
};

use hush_protocol::descriptor::BlobRef;
use hush_store::snapshot::{
    CHUNK_BYTES, Checksums, DB_FILE, HEADER_FILE, Header, MappedFile, ResidentFile, Snapshot, SnapshotError,
    SnapshotWriter, SparseFolder, Verified, Verify,
};

use samples::{descriptor, header};

/// Writes a snapshot with one file of `content`.
fn write(target: &Path, content: &[u8], force: bool) -> Result<(), SnapshotError> {
    let writer = SnapshotWriter::create(target, force)?;
    let mut file = writer.create_mapped(DB_FILE, content.len())?;
    file.bytes().copy_from_slice(content);
    let descriptor = descriptor(Some(BlobRef { blake3: [0; 32], bytes: 0 }));
    writer.commit(&header(descriptor, vec![file.finish()?]))
}

fn content(target: &Path) -> Vec<u8> {
    let mut snapshot = Snapshot::open(target, Verify::Full).unwrap();
    snapshot.take(DB_FILE).unwrap().as_ref().to_vec()
}

/// Returns the names in the folder that holds the target.
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
fn of_other_epochs_the_copy_that_was_used_last_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (table, copies) = (dir.path().join("table"), dir.path().join("copies"));
    write(&table, b"content", false).unwrap();
    let used = |epoch: u8| {
        let content = fs::read(table.join(HEADER_FILE)).unwrap();
        let mut header = Header::parse(&content, &table).unwrap();
        header.descriptor.epoch = [epoch; 32];
        let copy = SparseFolder::begin(header, &copies).unwrap();
        copy.forget_others();
        copy.path().to_owned()
    };
    let [a, b, again, c] = [1, 2, 1, 3].map(used);
    assert_eq!(a, again);
    assert_eq!([a, b, c].map(|copy| copy.exists()), [true, false, true]);
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
    assert_eq!(siblings(dir.path()), ["table"]);
}

#[test]
fn an_abandoned_build_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("table");
    let writer = SnapshotWriter::create(&target, false).unwrap();
    writer.create_mapped(DB_FILE, 100).unwrap();
    assert!(matches!(SnapshotWriter::create(&target, false), Err(SnapshotError::Busy(_))));
    drop(writer);
    assert!(siblings(dir.path()).is_empty());
    write(&target, b"old", false).unwrap();
    write(&target, b"new", false).unwrap_err();
    assert_eq!(siblings(dir.path()), ["table"]);
}

#[test]
fn what_crashes_left_is_cleared_or_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("table");
    write(&target, b"good", false).unwrap();
    // A crash between moving the old one aside and putting the new one in place, after a crash in a build.
    fs::rename(&target, dir.path().join(".table.hush-old")).unwrap();
    DirBuilder::new().mode(0o700).create(dir.path().join(".table.hush-partial")).unwrap();
    fs::write(dir.path().join(".table.hush-partial/db.bin"), b"half").unwrap();
    assert!(matches!(SnapshotWriter::create(&target, false), Err(SnapshotError::Exists(_))));
    assert_eq!(content(&target), b"good");
    write(&target, b"better", true).unwrap();
    assert_eq!(content(&target), b"better");
    assert_eq!(siblings(dir.path()), ["table"]);
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

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn an_unfinished_table_is_its_owners_alone_and_a_finished_one_as_any_folder() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("table");
    let writer = SnapshotWriter::create(&target, false).unwrap();
    assert_eq!(mode(writer.partial_dir()), 0o700);
    drop(writer);
    write(&target, b"content", false).unwrap();
    let any = dir.path().join("any");
    fs::create_dir(&any).unwrap();
    assert_eq!(mode(&target), mode(&any));
    assert_eq!(siblings(&target), [DB_FILE, "header.json"]);
}

#[test]
fn what_others_may_have_left_is_refused_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (target, partial) = (dir.path().join("table"), dir.path().join(".table.hush-partial"));
    let check_refused = |expected: &str| {
        let error = SnapshotWriter::create(&target, false).err().unwrap();
        assert!(matches!(error, SnapshotError::NotOurs { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(partial.symlink_metadata().is_ok());
    };
    fs::create_dir(&partial).unwrap();
    // With and without something to go on from.
    for _ in 0..2 {
        fs::set_permissions(&partial, fs::Permissions::from_mode(0o777)).unwrap();
        check_refused("can be written by others (mode 777)");
        fs::set_permissions(&partial, fs::Permissions::from_mode(0o700)).unwrap();
        // Root alone can give a folder away.
        if chown(&partial, Some(12345), None).is_ok() {
            check_refused("belongs to the user 12345");
            chown(&partial, Some(0), None).unwrap();
        }
        fs::write(partial.join("build.json"), b"{}").unwrap();
    }
    let elsewhere = dir.path().join("elsewhere");
    fs::rename(&partial, &elsewhere).unwrap();
    symlink(&elsewhere, &partial).unwrap();
    check_refused("is a symbolic link");
    fs::remove_file(&partial).unwrap();
    write(&target, b"content", false).unwrap();
}

#[test]
fn files_of_a_table_are_no_links_but_its_folder_may_be_one() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("table");
    write(&target, b"content", false).unwrap();
    let current = dir.path().join("current");
    symlink("table", &current).unwrap();
    assert_eq!(content(&current), b"content");
    for name in [DB_FILE, "header.json"] {
        let (file, moved) = (target.join(name), dir.path().join("moved"));
        fs::rename(&file, &moved).unwrap();
        let check_refused = || {
            for verify in [Verify::Header, Verify::Full] {
                let error = Snapshot::open(&target, verify).err().unwrap();
                let path = match &error {
                    SnapshotError::NotRegular { path } => path,
                    other => panic!("{other}"),
                };
                assert_eq!(*path, file);
                assert!(error.to_string().contains("put the file itself there"), "{error}");
            }
        };
        symlink(&moved, &file).unwrap();
        check_refused();
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        check_refused();
        fs::remove_dir(&file).unwrap();
        // Opening a pipe without a writer must not wait for one.
        assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        check_refused();
        fs::remove_file(&file).unwrap();
        let _socket = UnixListener::bind(&file).unwrap();
        check_refused();
        fs::remove_file(&file).unwrap();
        fs::rename(&moved, &file).unwrap();
    }
    assert_eq!(content(&target), b"content");
}

#[test]
fn a_link_to_a_folder_stays_and_its_folder_is_replaced() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (link, real) = (dir.path().join("link"), disk.path().join("real"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    for (content_now, with_slash) in [(&b"first"[..], false), (b"second", true)] {
        let target = if with_slash { dir.path().join("link/") } else { link.clone() };
        let writer = SnapshotWriter::create(&target, true).unwrap();
        // On the disk of the folder, which no rename leaves.
        assert_eq!(writer.partial_dir().parent().unwrap(), disk.path().canonicalize().unwrap());
        drop(writer);
        write(&target, content_now, true).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(content(&real), content_now);
        assert_eq!((siblings(dir.path()), siblings(disk.path())), (vec!["link".into()], vec!["real".into()]));
    }
    // Both names lock one folder.
    let _writer = SnapshotWriter::create(&link, true).unwrap();
    assert!(matches!(SnapshotWriter::create(&real, true), Err(SnapshotError::Busy(_))));
}

#[test]
fn a_target_that_cannot_be_put_in_place_is_refused_and_nothing_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |target: &Path| {
        let error = SnapshotWriter::check(target, true).unwrap_err();
        let same = SnapshotWriter::create(target, true).err().unwrap();
        assert_eq!(error.to_string(), same.to_string());
        error
    };
    let link = dir.path().join("link");
    symlink("nothing/here", &link).unwrap();
    for name in ["link", "link/"] {
        let error = refused(&dir.path().join(name));
        assert!(matches!(error, SnapshotError::DanglingLink { .. }), "{error}");
        assert!(error.to_string().ends_with(
            "is a link to nothing/here, and nothing is there: create that folder, or remove the link"
        ));
    }
    let ring = dir.path().join("ring");
    symlink("ring", &ring).unwrap();
    assert!(matches!(refused(&ring), SnapshotError::Io { action: "resolve", .. }));
    for mounted in ["/proc", "/"] {
        assert!(matches!(refused(mounted.as_ref()), SnapshotError::MountPoint(_)));
    }
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    assert!(matches!(refused(&file), SnapshotError::NotASnapshot(_)));
    let inside = refused(&file.join("table"));
    let start = format!("{}: no table can be put there: Not a directory", file.display());
    assert!(inside.to_string().starts_with(&start), "{inside}");
    assert_eq!(siblings(dir.path()), ["file", "link", "ring"]);
    // What is not there yet can be made.
    SnapshotWriter::check(&dir.path().join("a/b/c"), false).unwrap();
    assert!(!dir.path().join("a").exists());
}

/// Returns the file of a snapshot in memory of this process, every byte of it checked.
fn resident(
    target: &Path,
    ranges: &[Range<usize>],
    checksums: Checksums,
) -> Result<Arc<ResidentFile>, SnapshotError> {
    let snapshot = Snapshot::open(target, Verify::Header).unwrap();
    let (entry, file) = snapshot.file(DB_FILE).unwrap();
    file.read(entry, ranges, checksums)
}

fn whole_chunks(chunks: usize) -> Vec<u8> {
    (0..chunks * CHUNK_BYTES + 5).map(|at| (at * 7 + at / CHUNK_BYTES) as u8).collect()
}

#[test]
fn files_in_memory_are_read_and_checked_at_once_and_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (target, content) = (dir.path().join("table"), whole_chunks(3));
    let all = [0..content.len()];
    write(&target, &content, false).unwrap();
    let path = target.join(DB_FILE);
    let first = resident(&target, &all, Checksums::Compare).unwrap();
    assert!((*first).as_ref() == content);
    // Some of it: the rest is zeros.
    let ranges = [5..10, CHUNK_BYTES - 1..CHUNK_BYTES + 1, 3 * CHUNK_BYTES..content.len()];
    for checksums in [Checksums::Compare, Checksums::Skip] {
        let some = resident(&target, &ranges, checksums).unwrap();
        for (at, byte) in (*some).as_ref().iter().enumerate() {
            let is_read = ranges.iter().any(|range| range.contains(&at));
            assert_eq!(*byte, if is_read { content[at] } else { 0 }, "{at}");
        }
    }
    // Another epoch that links the file, and another table of the same content, share it.
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    for name in [DB_FILE, "header.json"] {
        fs::hard_link(target.join(name), other.join(name)).unwrap();
    }
    write(&dir.path().join("again"), &content, false).unwrap();
    for same in [&target, &other, &dir.path().join("again")] {
        assert!(Arc::ptr_eq(&first, &resident(same, &all, Checksums::Compare).unwrap()));
    }
    // Whoever writes into the file does not write into the memory, and whoever reads the file anew finds it.
    let mut damaged = content.clone();
    damaged[2 * CHUNK_BYTES + 1] ^= 1;
    fs::write(&path, &damaged).unwrap();
    assert!((*first).as_ref() == content);
    drop(first);
    match resident(&target, &all, Checksums::Compare).err() {
        Some(SnapshotError::Corrupt { path: named, start, end }) => {
            assert_eq!((named, start, end), (path.clone(), 2 * CHUNK_BYTES as u64, 3 * CHUNK_BYTES as u64));
        }
        other => panic!("{other:?}"),
    }
    let part = [2 * CHUNK_BYTES + 7..2 * CHUNK_BYTES + 9];
    assert!(resident(&target, &part, Checksums::Compare).is_err(), "a chunk is checked as a whole");
    // A part is read without the chunk that is damaged.
    assert!(resident(&target, &[0..9], Checksums::Compare).is_ok());
    // Content that was not checked is nobody's who wants it checked.
    let unchecked = resident(&target, &all, Checksums::Skip).unwrap();
    assert!((*unchecked).as_ref() == damaged);
    assert!(Arc::ptr_eq(&unchecked, &resident(&target, &all, Checksums::Skip).unwrap()));
    assert!(resident(&target, &all, Checksums::Compare).is_err());
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (target, content) = (dir.path().join("table"), whole_chunks(2));
    write(&target, &content, false).unwrap();
    let snapshot = Snapshot::open(&target, Verify::Header).unwrap();
    let (entry, file) = snapshot.file(DB_FILE).unwrap();
    File::options().write(true).open(target.join(DB_FILE)).unwrap().set_len(CHUNK_BYTES as u64 + 1).unwrap();
    for checksums in [Checksums::Compare, Checksums::Skip] {
        match file.read(entry, &[0..content.len()], checksums).err() {
            Some(SnapshotError::Length { path, expected, actual }) => {
                assert_eq!(path, target.join(DB_FILE));
                assert_eq!((expected, actual), (content.len() as u64, CHUNK_BYTES as u64 + 1));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(snapshot.verify(&Verified::default(), |_| true).is_err());
}

#[test]
fn a_file_that_is_written_to_while_it_is_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (target, mut content) = (dir.path().join("table"), whole_chunks(1));
    write(&target, &content, false).unwrap();
    let snapshot = Snapshot::open(&target, Verify::Header).unwrap();
    let (entry, file) = snapshot.file(DB_FILE).unwrap();
    content[0] ^= 1;
    fs::write(target.join(DB_FILE), &content).unwrap();
    // Nothing compares the checksums of these, known ones neither: the stamp of the file tells.
    for checksums in [Checksums::Skip, Checksums::Known] {
        let read = file.read(entry, &[0..content.len()], checksums);
        assert!(matches!(read.err(), Some(SnapshotError::Changed { .. })), "{checksums:?}");
    }
    // Of a file that is fetched piece by piece, other ranges are written meanwhile.
    assert!(file.read(entry, &[0..content.len()], Checksums::Fetched).is_ok());
}

#[test]
fn mapped_files_that_shrink_or_are_written_to_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let content = whole_chunks(1);
    let mapped = |name: &str| {
        let target = dir.path().join(name);
        write(&target, &content, false).unwrap();
        // Long ago: the system's clock of files has coarse steps.
        File::open(target.join(DB_FILE)).unwrap().set_modified(UNIX_EPOCH).unwrap();
        (Snapshot::open(&target, Verify::Full).unwrap().take(DB_FILE).unwrap(), target.join(DB_FILE))
    };
    let ((whole, _), (cut, cut_path), (written, written_path)) = (mapped("a"), mapped("b"), mapped("c"));
    File::options().write(true).open(&cut_path).unwrap().set_len(10_000).unwrap();
    // From a thread of its own, as scans are. What is not there any more is zeros.
    let read = std::thread::scope(|scope| scope.spawn(|| cut.as_ref().to_vec()).join().unwrap());
    assert!(read.len() == content.len() && read[20_000..].iter().all(|byte| *byte == 0));
    assert!(matches!(cut.check(), Err(SnapshotError::Changed { path }) if path == cut_path));
    assert!(cut.make_resident().is_ok());
    File::options().write(true).open(&written_path).unwrap().write_all(b"other").unwrap();
    assert!(matches!(written.check(), Err(SnapshotError::Changed { path }) if path == written_path));
    assert!(whole.check().is_ok() && whole.as_ref() == content);
    // A folder that takes the place of another leaves its files as they are.
    write(&dir.path().join("a"), b"new", true).unwrap();
    assert!(whole.check().is_ok() && whole.as_ref() == content);
    // The same addresses may be another file's now.
    drop(cut);
    let (next, _) = mapped("d");
    assert!(next.check().is_ok() && next.as_ref() == content);
}

/// In a process of its own: it ends.
#[test]
fn a_fault_elsewhere_ends_the_process_as_before() {
    const CHILD: &str = "HUSH_TEST_FAULT";
    let dir = tempfile::tempdir().unwrap();
    if let Some(path) = std::env::var_os(CHILD) {
        let guarded = MappedFile::open(Path::new(&path)).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        // SAFETY: read below, where it ends the process.
        let unguarded = unsafe { memmap2::Mmap::map(&file) }.unwrap();
        file.set_len(0).unwrap();
        assert_eq!(guarded.as_ref()[9000], 0);
        std::hint::black_box(unguarded[9000]);
        return;
    }
    let path = dir.path().join("file");
    fs::write(&path, vec![1; 10_000]).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "a_fault_elsewhere_ends_the_process_as_before"]).env(CHILD, &path);
    assert_eq!(child.output().unwrap().status.signal(), Some(libc::SIGBUS));
}
