//! Tests of several files, folders and patterns as one table.

use std::fs;

use hush_ingest::{FolderAs, IngestError, IngestOptions, Input, open};
use tempfile::TempDir;

use crate::{Fixture, options, pairs, parquet, read, read_input, sqlite, texts};

/// Returns options of a folder whose files have rows.
fn rows(key: &str, value: &str) -> IngestOptions {
    IngestOptions { folder: Some(FolderAs::Rows), ..options(key, value) }
}

/// Creates a folder of these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

fn all(folder: &TempDir, names: &[&str]) -> Input {
    Input::of_all(names.iter().map(|name| Input::Path(folder.path().join(name))).collect())
}

fn pairs_of(input: &Input, options: &IngestOptions) -> Vec<(String, String)> {
    read_input(input, options).unwrap().into_iter().map(texts).collect()
}

/// Returns the message of the error without the folder.
fn error(folder: &TempDir, input: &Input, options: &IngestOptions) -> String {
    let error = read_input(input, options).unwrap_err().to_string();
    error.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn a_folder_of_tables_is_asked_about() {
    let files = [("b.csv", "k,v\n2,b\n"), ("a.csv", "v,k\na,1\n"), ("sub/c.csv", "k,v\n3,c\n")];
    let folder = folder(&files);
    for asked in [options("", ""), options("k", "v")] {
        let message = read(folder.path(), &asked).unwrap_err().to_string();
        assert!(message.contains(": a folder that has a.csv: 'as: rows' takes"), "{message}");
    }
    // The files are sorted by name, and the order of the columns does not matter.
    let expected = pairs(&[("1", "a"), ("2", "b"), ("3", "c")]);
    let found: Vec<_> = read(folder.path(), &rows("k", "")).unwrap().into_iter().map(texts).collect();
    assert_eq!(found, expected);
    let files = IngestOptions { folder: Some(FolderAs::Files), ..options("", "") };
    let found = read(folder.path(), &files).unwrap().into_iter().map(texts).collect::<Vec<_>>();
    assert_eq!(found[0], ("a.csv".into(), "v,k\na,1\n".into()));
    assert_eq!(found.len(), 3);
    // Folder options do not apply to a file.
    let message =
        Fixture::new("t.csv", "k\n1\n").error(&IngestOptions { folder: files.folder, ..options("", "") });
    assert_eq!(message, "t.csv: 'as: files' applies to folders only");
}

#[test]
fn what_writers_leave_beside_files_is_no_table() {
    let folder = folder(&[
        ("part-0.csv", "k\n1\n"),
        ("_SUCCESS", ""),
        (".part-0.csv.crc", "x"),
        ("_temporary/0.csv", "x"),
    ]);
    assert_eq!(read(folder.path(), &rows("k", "")).unwrap().len(), 1);
    let skipped = open(&Input::Path(folder.path().into()), &rows("k", "")).unwrap().skipped();
    assert_eq!((skipped.hidden_files, skipped.hidden_folders), (2, 1));
    fs::write(folder.path().join("README"), "x").unwrap();
    assert!(
        matches!(read(folder.path(), &rows("k", "")), Err(IngestError::UnknownFormat { path }) if path.ends_with("README"))
    );
    // The files that SQLite keeps beside a database belong to the database.
    let databases = tempfile::tempdir().unwrap();
    let database = sqlite::database("CREATE TABLE t (k TEXT); INSERT INTO t VALUES ('2')");
    fs::copy(&database.path, databases.path().join("db.sqlite")).unwrap();
    for name in ["db.sqlite-wal", "db.sqlite-shm"] {
        fs::write(databases.path().join(name), "").unwrap();
    }
    assert_eq!(read(databases.path(), &rows("k", "")).unwrap().len(), 1);
    fs::write(databases.path().join("other-wal"), "").unwrap();
    assert!(matches!(read(databases.path(), &rows("k", "")), Err(IngestError::UnknownFormat { .. })));
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(read(empty.path(), &rows("k", "")), Err(IngestError::EmptyInput { .. })));
}

#[test]
fn several_inputs_and_patterns_are_one_table() {
    let folder = folder(&[
        ("a.csv", "k,v\n1,a\n"),
        ("b.csv", "k,v\n2,b\n"),
        (".c.csv", "k,v\n3,c\n"),
        ("[x].csv", "k,v\n4,d\n"),
    ]);
    let [a, b, d] = [("1", "a"), ("2", "b"), ("4", "d")];
    // In the order of the command line.
    assert_eq!(pairs_of(&all(&folder, &["b.csv", "a.csv"]), &options("k", "v")), pairs(&[b, a]));
    assert_eq!(pairs_of(&all(&folder, &["?.csv"]), &options("k", "v")), pairs(&[a, b]));
    assert_eq!(pairs_of(&all(&folder, &["*.csv"]), &options("k", "v")), pairs(&[d, a, b]));
    // The name of a file takes precedence over a pattern.
    assert_eq!(pairs_of(&all(&folder, &["[x].csv"]), &options("k", "v")), pairs(&[d]));
    let message = error(&folder, &all(&folder, &["*.parquet"]), &options("k", "v"));
    assert!(message.contains("*.parquet: cannot read: No such file"), "{message}");
    assert_eq!(all(&folder, &["a.csv", "b.csv"]).path(), folder.path().join("a.csv and 1 more"));
    let mut source = open(&all(&folder, &["a.csv", "b.csv"]), &options("k", "v")).unwrap();
    assert_eq!(source.by_ref().filter(Result::is_ok).count(), 2);
    let map = source.summary().row_map;
    assert_eq!(map.row(2), (Some(&*folder.path().join("b.csv")), 1));
}

#[test]
fn columns_that_differ_are_told_before_anything_is_read() {
    let folder = folder(&[
        ("a.csv", "k,v\n1,a\n"),
        ("less.csv", "k\n2\n"),
        ("more.csv", "k,v,w\n2,b,c\n"),
        ("t.jsonl", "{\"k\":\"2\",\"v\":\"b\"}\n"),
        ("nothing.csv", ""),
    ]);
    for (name, said) in [
        ("less.csv", "less.csv: no column \"v\"; the columns are \"k\""),
        ("more.csv", "more.csv: the first input has no column \"w\", and sets the columns of all"),
        ("nothing.csv", "nothing.csv: no records"),
    ] {
        let input = all(&folder, &["a.csv", name]);
        let refused = open(&input, &options("k", "")).err().unwrap().to_string();
        assert!(refused.contains(said), "{refused}");
    }
    // Named columns may be among others.
    let named = pairs_of(&all(&folder, &["a.csv", "more.csv"]), &options("k", "v"));
    assert_eq!(named, pairs(&[("1", "a"), ("2", "b")]));
    let message = error(&folder, &all(&folder, &["a.csv", "t.jsonl"]), &options("k", ""));
    assert!(
        message.starts_with("t.jsonl: the column \"k\" is of type any here, and of type string"),
        "{message}"
    );
    for alone in [Input::Stdin, Input::Path(folder.path().into())] {
        let input = Input::of_all(vec![Input::Path(folder.path().join("a.csv")), alone]);
        assert!(matches!(open(&input, &options("k", "")), Err(IngestError::NotAmongSeveral { .. })));
    }
}

#[test]
fn types_are_those_of_all_files() {
    let folder = folder(&[
        ("a.jsonl", "{\"k\":\"1\",\"v\":1}\n"),
        ("b.jsonl", "{\"k\":\"2\",\"v\":1.5}\n{\"k\":\"3\"}\n"),
        ("c.jsonl", "{\"k\":\"4\"}\n"),
        ("d.jsonl", "{\"k\":\"5\",\"w\":1}\n"),
    ]);
    let mut source = open(&all(&folder, &["a.jsonl", "b.jsonl", "c.jsonl"]), &options("k", "")).unwrap();
    assert_eq!(source.by_ref().filter(Result::is_ok).count(), 4);
    assert_eq!(source.columns().unwrap().value[0].1.name(), "float64");
    let message = error(&folder, &all(&folder, &["a.jsonl", "d.jsonl"]), &options("k", ""));
    assert!(message.starts_with("d.jsonl: the first input has no column \"w\""), "{message}");
}

#[test]
fn files_of_one_format_are_read_one_after_another() {
    for file in [sqlite::small(), parquet::small()] {
        let twice = Input::of_all(vec![Input::Path(file.path.clone()), Input::Path(file.path.clone())]);
        let records = pairs_of(&twice, &options("id", "name"));
        assert_eq!(records, pairs(&[("1", "a"), ("2", "b"), ("1", "a"), ("2", "b")]));
    }
}
