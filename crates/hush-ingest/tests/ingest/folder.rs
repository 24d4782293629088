//! Tests of a folder of files.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
};

use hush_ingest::{IngestError, IngestOptions, Input, Skipped, open};
use tempfile::{TempDir, tempdir};

use crate::{options, read, texts};

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

fn error(folder: &Path, options: &IngestOptions) -> String {
    read(folder, options).unwrap_err().to_string().replace(&folder.display().to_string(), "DIR")
}

#[test]
fn names_are_keys_and_contents_values() {
    let long = vec![0xff; 65_536];
    let folder = folder(&[("b.txt", b"B"), ("a/z", b""), ("a/b/c", &long), ("é", b"\0\xff"), ("c.d", b"h")]);
    let records = read(folder.path(), &IngestOptions::default()).unwrap();
    let keys: Vec<_> =
        records.iter().map(|record| String::from_utf8(record.key.clone().unwrap()).unwrap()).collect();
    assert_eq!(keys, ["a/b/c", "a/z", "b.txt", "c.d", "é"]);
    let values: Vec<&[u8]> = records.iter().map(|record| record.value.as_slice()).collect();
    assert_eq!(values, [long.as_slice(), b"", b"B", b"h", b"\0\xff"]);
}

#[test]
fn a_slash_at_the_end_does_not_matter() {
    let folder = folder(&[("x", b"1")]);
    let path = folder.path().join("");
    let records = read(&path, &IngestOptions::default()).unwrap();
    assert_eq!(texts(records[0].clone()), ("x".into(), "1".into()));
}

#[test]
fn options_for_columns_are_refused() {
    let folder = folder(&[("x", b"1")]);
    for options in [options("k", ""), options("", "v")] {
        let message = error(folder.path(), &options);
        assert!(message.starts_with("DIR: 'key' and 'value' do not apply to a folder"), "{message}");
    }
}

#[test]
fn long_files_are_named() {
    let folder = folder(&[("a", b"1"), ("b/c", b"12345")]);
    let options = IngestOptions { max_value_size: 4, ..IngestOptions::default() };
    let message = error(folder.path(), &options);
    assert!(message.starts_with("DIR/b/c, row 2: the value has 5 bytes, the limit is 4"), "{message}");
}

#[test]
fn empty_folders_and_odd_entries_are_refused() {
    let empty = folder(&[]);
    fs::create_dir(empty.path().join("sub")).unwrap();
    assert!(matches!(read(empty.path(), &IngestOptions::default()), Err(IngestError::EmptyInput { .. })));
    let socket = folder(&[("a", b"1")]);
    let _listener = UnixListener::bind(socket.path().join("socket")).unwrap();
    let message = error(socket.path(), &IngestOptions::default());
    assert_eq!(message, "DIR/socket: neither a file nor a folder; remove it");
}

/// Returns the keys, and the counts of what was skipped.
fn taken(folder: &Path, hidden: bool, follow_links: bool) -> (Vec<String>, Skipped) {
    let options = IngestOptions { hidden, follow_links, ..IngestOptions::default() };
    let skipped = open(&Input::Path(folder.into()), &options).unwrap().skipped();
    let records = read(folder, &options).unwrap();
    (records.into_iter().map(|record| texts(record).0).collect(), skipped)
}

#[test]
fn hidden_files_and_links_are_taken_only_if_asked_for() {
    let outside = folder(&[("secret", b"s"), ("sub/.deep", b"d")]);
    let folder = folder(&[("a", b"1"), (".env", b"2"), (".git/x", b"3"), (".git/y/z", b"4"), ("b/.c", b"5")]);
    symlink(outside.path().join("secret"), folder.path().join("b/link")).unwrap();
    symlink(outside.path().join("sub"), folder.path().join("out")).unwrap();
    symlink("/nowhere/at/all", folder.path().join(".gone")).unwrap();

    let (keys, skipped) = taken(folder.path(), false, false);
    assert_eq!(keys, ["a"]);
    assert_eq!(skipped, Skipped { hidden_files: 3, hidden_folders: 1, links: 2 });
    let line = "skipped 3 hidden files, 1 hidden folder and 2 links: 'hidden: true' and 'follow-links: true' take them";
    assert_eq!(skipped.to_string(), line);

    let (keys, skipped) = taken(folder.path(), true, false);
    assert_eq!(keys, [".env", ".git/x", ".git/y/z", "a", "b/.c"]);
    assert_eq!(skipped.to_string(), "skipped 3 links: 'follow-links: true' takes them");

    let (keys, skipped) = taken(folder.path(), false, true);
    assert_eq!(keys, ["a", "b/link"]);
    assert_eq!(skipped.to_string(), "skipped 4 hidden files and 1 hidden folder: 'hidden: true' takes them");

    fs::remove_file(folder.path().join(".gone")).unwrap();
    let (keys, skipped) = taken(folder.path(), true, true);
    assert_eq!(keys, [".env", ".git/x", ".git/y/z", "a", "b/.c", "b/link", "out/.deep"]);
    assert!(skipped.is_empty());
    let one = Skipped { links: 1, ..Skipped::default() };
    assert_eq!(one.to_string(), "skipped 1 link: 'follow-links: true' takes it");

    // The folder itself may be hidden or a link, since the builder of the table names it.
    let places = tempdir().unwrap();
    symlink(folder.path(), places.path().join(".link")).unwrap();
    assert_eq!(taken(&places.path().join(".link"), false, false).0, ["a"]);
}

#[test]
fn links_in_a_circle_and_to_nothing_are_refused() {
    let follow = IngestOptions { follow_links: true, ..IngestOptions::default() };
    let circle = folder(&[("a/b/c", b"1")]);
    // Links to the same folder twice form no circle.
    symlink("a/b", circle.path().join("twice")).unwrap();
    assert_eq!(taken(circle.path(), false, true).0, ["a/b/c", "twice/c"]);
    symlink("..", circle.path().join("a/b/circle")).unwrap();
    let message = error(circle.path(), &follow);
    assert!(message.starts_with("DIR/a/b/circle: this link leads back to a folder"), "{message}");
    assert_eq!(taken(circle.path(), false, false).0, ["a/b/c"]);
    let dangling = folder(&[("a", b"1")]);
    symlink("/nowhere/at/all", dangling.path().join("dangling")).unwrap();
    assert!(error(dangling.path(), &follow).starts_with("DIR/dangling: cannot read: No such"));
    let itself = folder(&[("a", b"1")]);
    symlink("itself", itself.path().join("itself")).unwrap();
    assert!(error(itself.path(), &follow).starts_with("DIR/itself: cannot read: Too many levels"));
}
