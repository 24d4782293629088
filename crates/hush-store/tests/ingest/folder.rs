//! A folder of files.

use std::{fs, os::unix::fs::symlink, path::Path};

use hush_store::ingest::{IngestError, IngestOptions};
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
    let folder =
        folder(&[("b.txt", b"B"), ("a/z", b""), ("a/b/c", &long), ("é", b"\0\xff"), (".hidden", b"h")]);
    symlink(folder.path().join("b.txt"), folder.path().join("link")).unwrap();
    let records = read(folder.path(), &IngestOptions::default()).unwrap();
    let key = |at: usize| String::from_utf8(records[at].key.clone().unwrap()).unwrap();
    let keys: Vec<_> = (0..records.len()).map(key).collect();
    assert_eq!(keys, [".hidden", "a/b/c", "a/z", "b.txt", "link", "é"]);
    let values: Vec<&[u8]> = records.iter().map(|record| record.value.as_slice()).collect();
    assert_eq!(values, [b"h", long.as_slice(), b"", b"B", b"B", b"\0\xff"]);
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
    for (options, name) in [(options("k", ""), "--key"), (options("", "v"), "--value")] {
        assert!(
            error(folder.path(), &options).starts_with(&format!("DIR: {name} does not apply to a folder"))
        );
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
    let circle = folder(&[("a", b"1")]);
    symlink(circle.path(), circle.path().join("circle")).unwrap();
    assert!(
        error(circle.path(), &IngestOptions::default())
            .starts_with("DIR/circle: neither a file nor a folder")
    );
    let dangling = folder(&[("a", b"1")]);
    symlink("/nowhere/at/all", dangling.path().join("dangling")).unwrap();
    assert!(
        error(dangling.path(), &IngestOptions::default()).starts_with("DIR/dangling: cannot read: No such")
    );
}
