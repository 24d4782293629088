//! Tests of bad rows that are left out, and of the number of rows.

use std::fs;

use hush_ingest::{IngestError, IngestOptions, Input, open};
use serde_json::{Value, json};

use crate::{Fixture, arrow, options, pairs, parquet, read, sqlite};

/// Returns the records of a file without its bad rows, and the bad rows.
fn without_bad_rows(file: &Fixture, options: &IngestOptions) -> (Vec<(String, String)>, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let bad_rows = folder.path().join("bad.jsonl");
    fs::write(&bad_rows, "{\"input\":\"of\",\"row\":1,\"error\":\"an earlier build\"}\n{}\n").unwrap();
    let records = file.texts(&IngestOptions { bad_rows: Some(bad_rows.clone()), ..options.clone() });
    let bad = fs::read_to_string(bad_rows).unwrap();
    (records, bad.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn bad_rows_are_left_out_and_written() {
    let csv = "k,v\n1,a\n2\n3,\"c\"x\n4,\"d\n5,e\n6,\"f\n7,g,\u{e9}\r\n8,h\n";
    let file = Fixture::new("t.csv", csv);
    let (records, bad) = without_bad_rows(&file, &options("k", "v"));
    assert_eq!(records, pairs(&[("1", "a"), ("8", "h")]));
    let input = file.path.display().to_string();
    let about: Vec<_> =
        bad.iter().map(|bad| (bad["row"].as_u64(), bad["line"].as_u64(), &bad["content"])).collect();
    assert_eq!(
        about,
        [
            (Some(2), Some(3), &json!(["2"])),
            (Some(3), Some(4), &json!(["3", "c", "x"])),
            // The bad row has the rows that a stray quote has swallowed, and the text behind it.
            (Some(4), Some(5), &json!(["4", "d\n5,e\n6,", "f"])),
            (Some(5), Some(8), &json!(["7", "g", "\u{e9}"])),
        ]
    );
    assert_eq!(bad[0]["input"], input);
    assert!(
        bad[2]["error"].as_str().unwrap().contains("on line 5 has text behind its closing quote on line 7"),
        "{}",
        bad[2]
    );

    let jsonl = "{\"k\":1,\"v\":\"a\"}\n{\"k\":2\n[3]\n{\"v\":\"d\"}\n{\"k\":5,\"v\":\"e\",\"w\":0}\n{\"k\":6,\"v\":\"f\"}\n";
    let (records, bad) = without_bad_rows(&Fixture::new("t.jsonl", jsonl), &options("k", ""));
    assert_eq!(records, pairs(&[("1", "a"), ("6", "f")]));
    assert_eq!(bad.iter().map(|bad| bad["row"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 3, 4, 5]);
    assert_eq!(bad[1]["content"], "[3]");
    let array = "[{\"k\":1,\"v\":\"a\"},\n7,\n{\"k\":},\n{\"k\":6,\"v\":\"f\"}]";
    let (records, bad) = without_bad_rows(&Fixture::new("t.json", array), &options("k", ""));
    assert_eq!(records, pairs(&[("1", "a"), ("6", "f")]));
    assert_eq!(bad.iter().map(|bad| &bad["content"]).collect::<Vec<_>>(), ["7", "{\"k\":}"]);
}

#[test]
fn bad_rows_are_not_written_over_the_input() {
    let file = Fixture::new("t.csv", "k,v\n1,a\n2\n");
    let link = file.path.with_extension("link");
    std::os::unix::fs::symlink(&file.path, &link).unwrap();
    for bad_rows in [file.path.clone(), link] {
        let options = IngestOptions { bad_rows: Some(bad_rows), ..options("k", "v") };
        let message = file.error(&options);
        assert_eq!(message, "t.csv: 'skip-bad-rows' names the input itself: choose another file");
        assert_eq!(fs::read_to_string(&file.path).unwrap(), "k,v\n1,a\n2\n");
    }
}

#[test]
fn every_format_goes_on_behind_a_bad_row() {
    let mut files = vec![sqlite::small(), parquet::small()];
    files.extend(arrow::small());
    for file in files {
        // The note of row 2 is null, which no key may be.
        let (records, bad) = without_bad_rows(&file, &options("note", "id"));
        assert_eq!(records, pairs(&[("x", "1")]), "{:?}", file.path);
        assert_eq!((bad.len(), bad[0]["row"].as_u64(), bad[0].get("content")), (1, Some(2), None));
    }
}

#[test]
fn what_is_no_row_stays_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let bad_rows = Some(folder.path().join("bad.jsonl"));
    let refused = |content: &str, key: &str| {
        let options = IngestOptions { bad_rows: bad_rows.clone(), ..options(key, "") };
        Fixture::new("t.csv", content).read(&options).unwrap_err()
    };
    assert!(matches!(refused("k,v\n1,a\n2,\"b\n3,c\n", "k"), IngestError::UnclosedQuote { .. }));
    assert!(matches!(refused("k,v\n1,a\n", "w"), IngestError::MissingColumn { .. }));
    assert!(matches!(refused("\"k\"x,v\n1,a\n", "k"), IngestError::BehindQuote { .. }));
    let message = refused("k,v\n1\n2\n", "k").to_string();
    assert!(message.contains("no records: all 2 rows are bad, and are in "), "{message}");
    let precious = folder.path().join("precious.txt");
    fs::write(&precious, "kept\n").unwrap();
    let over_it = IngestOptions { bad_rows: Some(precious.clone()), ..options("k", "") };
    let message = Fixture::new("t.csv", "k\n1\n").read(&over_it).unwrap_err().to_string();
    assert!(
        message.contains("precious.txt: cannot write the bad rows: it is there, and has no bad rows"),
        "{message}"
    );
    assert_eq!(fs::read_to_string(precious).unwrap(), "kept\n");
    let nowhere = IngestOptions { bad_rows: Some("/nowhere/at/all".into()), ..options("k", "") };
    let error = Fixture::new("t.csv", "k\n1\n").read(&nowhere).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/at/all: cannot write the bad rows: No such file"), "{error}");
    // The header of a later file is no row.
    let input = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        Input::Path(path)
    };
    let both = Input::of_all(vec![input("a.csv", b"k\n1\n"), input("b.csv", b"k\xff\n2\n")]);
    assert!(open(&both, &IngestOptions { bad_rows, ..options("k", "") }).is_err());
}

#[test]
fn rows_are_counted() {
    let file = Fixture::new("t.csv", "k,v\n1,a\n2\n3,c\n");
    let of = |expect_rows, bad_rows| IngestOptions {
        expect_rows: Some(expect_rows),
        bad_rows,
        ..options("k", "v")
    };
    let folder = tempfile::tempdir().unwrap();
    let bad_rows = Some(folder.path().join("bad.jsonl"));
    // Bad rows count as rows.
    assert_eq!(file.read(&of(3, bad_rows.clone())).unwrap().len(), 2);
    for wrong in [0, 2, 4] {
        let message = file.error(&of(wrong, bad_rows.clone()));
        assert!(
            message.starts_with(&format!("t.csv: 3 rows, where {wrong} are expected; fetch the input again")),
            "{message}"
        );
    }
    let whole = Fixture::new("t.csv", "k,v\n1,a\n3,c\n");
    assert_eq!(read(&whole.path, &of(2, None)).unwrap().len(), 2);
    assert!(read(&whole.path, &of(3, None)).is_err());
}
