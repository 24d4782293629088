//! CSV.

use crate::{Fixture, IngestOptions, options, pairs};

fn table(content: impl AsRef<[u8]>) -> Fixture {
    Fixture::new("t.csv", content)
}

#[test]
fn quotes_newlines_and_unicode_survive() {
    let file = table("k,v\n\"a,\"\"b\"\"\",\"two\nlines\r\n\"\nключ,\"日本 \u{1f600}\"\n\"\",\n");
    assert_eq!(
        file.texts(&options("k", "")),
        pairs(&[("a,\"b\"", "two\nlines\r\n"), ("ключ", "日本 \u{1f600}"), ("", "")])
    );
}

#[test]
fn line_ends_marks_and_blank_lines_do_not_matter() {
    let expected = pairs(&[("1", "a"), ("2", "b")]);
    for content in [
        "k,v\n1,a\n2,b\n",
        "k,v\n1,a\n2,b",
        "k,v\r\n1,a\r\n2,b\r\n",
        "\u{feff}k,v\n1,a\n2,b\n",
        "\n\nk,v\n\n1,a\n\n\n2,b\n\n",
        "k,v\n1,a\n2,\"b\"",
    ] {
        assert_eq!(table(content).texts(&options("k", "v")), expected, "{content:?}");
    }
}

#[test]
fn values_are_not_trimmed_or_parsed() {
    let file = table("k,v\n1, 007 \n2,1e3\n3,\"\"\n");
    assert_eq!(file.texts(&options("k", "v")), pairs(&[("1", " 007 "), ("2", "1e3"), ("3", "")]));
}

#[test]
fn values_up_to_the_default_limit_are_kept() {
    let long = "é\"".repeat(65_536 / 3) + "x";
    assert_eq!(long.len(), 65_536);
    let file = table(format!("k,v\n1,\"{}\"\n", long.replace('"', "\"\"")));
    assert_eq!(file.texts(&options("k", "")), pairs(&[("1", &long)]));
    let file = table(format!("k,v\n1,{}\n", "x".repeat(65_537)));
    assert!(file.error(&options("k", "")).contains("the value has 65537 bytes, the limit is 65536"));
}

#[test]
fn ragged_rows_are_refused_with_their_line() {
    let lf = table("k,v\n1,\"x\ny\"\n\n2\n3,c\n");
    assert_eq!(
        lf.error(&options("k", "v")),
        "t.csv, row 2 (line 5): 1 fields, but the header has 2; quote fields that contain commas"
    );
    let crlf = table("k,v\r\n1,\"x\r\ny\"\r\n2,b,c\r\n");
    assert!(
        crlf.error(&options("k", "v")).starts_with("t.csv, row 2 (line 4): 3 fields, but the header has 2")
    );
    let mark = table("\u{feff}k,v\n2,b,c\n");
    assert!(mark.error(&options("k", "v")).starts_with("t.csv, row 1 (line 2): 3 fields"));
}

#[test]
fn records_before_a_wrong_row_come_first() {
    let file = table("k,v\n1,a\n2\n3,c\n");
    let mut source = hush_store::ingest::open(&file.path.as_os_str().into(), &options("k", "v")).unwrap();
    assert!(source.next().unwrap().is_ok());
    assert!(source.next().unwrap().is_err());
    assert!(source.next().is_none());
}

#[test]
fn bad_utf8_is_refused_where_it_is_used() {
    let file = table(b"k,v,w\n1,a,b\n2,\xff,c\n");
    assert_eq!(
        file.error(&options("k", "v")),
        "t.csv, row 2 (line 3), column \"v\": not valid UTF-8; convert the file to UTF-8"
    );
    assert_eq!(file.texts(&options("k", "w")), pairs(&[("1", "b"), ("2", "c")]));
    let header = table(b"k\xff,v\n1,a\n");
    assert!(header.error(&options("", "")).starts_with("t.csv, row 0 (line 1): not valid UTF-8"));
}

#[test]
fn empty_files_are_refused() {
    for content in ["", "\n\n", "k,v", "k,v\n", "\u{feff}"] {
        let message = table(content).error(&IngestOptions::default());
        assert_eq!(message, "t.csv: no records; a table needs at least one", "{content:?}");
    }
}

#[test]
fn columns_of_one_name_are_refused() {
    let message = table("k,v,k\n1,2,3\n").error(&options("v", ""));
    assert_eq!(message, "t.csv: two columns are called \"k\"; rename one of them");
}

#[test]
fn quotes_that_never_close_are_refused() {
    for content in ["k,v\n1,a\n2,\"b", "k,v\n1,a\n2,\"b\n3,c\n", "k,v\n1,a\n\"2,b\"\"\n3,c\n"] {
        let message = table(content).error(&options("", "k"));
        assert!(message.starts_with("t.csv, row 2 (line 3): "), "{content:?}: {message}");
    }
    // A quote within a field that does not start with one is text.
    let inches = table("k,v\n1,5\" disk\n");
    assert_eq!(inches.texts(&options("k", "v")), pairs(&[("1", "5\" disk")]));
}

#[test]
fn a_row_without_end_does_not_fill_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "k,v\n1,a\n2,\"b").unwrap();
    // A file with a hole: no disk, but 4 GiB to read.
    std::fs::OpenOptions::new().append(true).open(&path).unwrap().set_len(4 << 30).unwrap();
    let error = crate::read(&path, &options("k", "v")).unwrap_err().to_string();
    assert!(error.contains("row 2 (line 3): longer than 67108864 bytes"), "{error}");
}
