//! Tests of CSV.

use hush_ingest::{CsvDialect, Input, LongField, open};

use crate::{Fixture, IngestOptions, compression::gzip, options, pairs};

const PLAIN: CsvDialect = CsvDialect { separator: None, header: None, quote: Some(b'"'), backslash: false };
const BACKSLASH: CsvDialect = CsvDialect { backslash: true, ..PLAIN };
const UNQUOTED: CsvDialect = CsvDialect { quote: None, ..PLAIN };

fn in_dialect(csv: CsvDialect) -> IngestOptions {
    IngestOptions { csv, ..options("k", "") }
}

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
        "t.csv, row 2 (line 5): 1 fields, but the first row has 2; quote fields that contain ',', which ends a field"
    );
    let crlf = table("k,v\r\n1,\"x\r\ny\"\r\n2,b,c\r\n");
    assert!(
        crlf.error(&options("k", "v"))
            .starts_with("t.csv, row 2 (line 4): 3 fields, but the first row has 2")
    );
    let mark = table("\u{feff}k,v\n2,b,c\n");
    assert!(mark.error(&options("k", "v")).starts_with("t.csv, row 1 (line 2): 3 fields"));
}

#[test]
fn records_before_a_wrong_row_come_first() {
    let file = table("k,v\n1,a\n2\n3,c\n");
    let mut source = hush_ingest::open(&file.path.as_os_str().into(), &options("k", "v")).unwrap();
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
    let message = table("k,v\n1,\"a\nb\"\n2,\"\nc").error(&options("k", ""));
    assert!(message.starts_with("t.csv, row 2 (line 4): the file ends within the quoted field"), "{message}");
    // A quote within a field that does not start with one is text.
    let inches = table("k,v\n1,5\" disk\n");
    assert_eq!(inches.texts(&options("k", "v")), pairs(&[("1", "5\" disk")]));
}

#[test]
fn text_behind_a_closing_quote_is_refused() {
    for (content, place, [line, last_line], shown, advice) in [
        ("k,v\n1,\"a\\\"b\"\n", "row 1 (line 2)", [2, 2], r#"a\"b""#, "set 'escape: backslash'"),
        (
            "key,value\n\"a\"x,1\n",
            "row 1 (line 2)",
            [2, 2],
            r#"a"x,1"#,
            "write a quote within a quoted field twice",
        ),
        ("k,v\n1,a\n2,\"b\n\n3,\"c\n", "row 2 (line 3)", [3, 5], r#"3,"c"#, "set 'quote: none'"),
        ("k,v\n1,\"a\" \n", "row 1 (line 2)", [2, 2], r#"a" "#, "twice"),
        ("\"k\"x,v\n1,a\n", "row 0 (line 1)", [1, 1], r#"k"x,v"#, "twice"),
    ] {
        let message = table(content).error(&options("", ""));
        let start = format!(
            "t.csv, {place}: the quoted field that begins on line {line} has text behind its closing quote on line {last_line}: \
             {shown}; "
        );
        assert!(message.starts_with(&start) && message.contains(advice), "{content:?}: {message}");
    }
}

#[test]
fn a_stray_quote_swallows_no_rows() {
    let mut content = String::from("k,v,note\n");
    for row in 0..20_000 {
        let note = if row == 5000 || row == 13_900 { "\"an inch" } else { "none" };
        content += &format!("k{row},v{row},{note}\n");
    }
    // The column is not in use.
    let message = table(&content).error(&options("k", "v"));
    assert!(
        message.starts_with("t.csv, row 5001 (line 5002): the quoted field that begins on line 5002"),
        "{message}"
    );
    assert!(message.contains(r#"on line 13902: k13900,v13900,"an inch"#), "{message}");
    let unquoted = IngestOptions { csv: UNQUOTED, ..options("k", "note") };
    let rows = table(&content).texts(&unquoted);
    assert_eq!((rows.len(), &rows[5000]), (20_000, &("k5000".into(), "\"an inch".into())));
}

#[test]
fn dialects_are_read_as_they_are_meant() {
    let escaped = table("k,v\n1,\"a\\\"b\\\\\"\n2,\"C:\\new \"\"x\"\"\"\n3,a\\\"\n");
    assert_eq!(
        escaped.texts(&in_dialect(BACKSLASH)),
        pairs(&[("1", "a\"b\\"), ("2", "C:\\new \"x\""), ("3", "a\\\"")])
    );
    let unquoted = table("k,v\n1,\"a\n2,b\"c\n");
    assert_eq!(unquoted.texts(&in_dialect(UNQUOTED)), pairs(&[("1", "\"a"), ("2", "b\"c")]));
    let single = table("k,v\n1,'a,''b'\n2,\"c\n");
    let options = in_dialect(CsvDialect { quote: Some(b'\''), ..PLAIN });
    assert_eq!(single.texts(&options), pairs(&[("1", "a,'b"), ("2", "\"c")]));
    // A backslash at the end escapes the quote: the field never closes.
    let open = table("k,v\n1,\"a\\\"\n").error(&in_dialect(BACKSLASH));
    assert!(open.contains("ends within the quoted field that begins on line 2"), "{open}");
}

#[test]
fn the_longest_field_of_several_lines_is_known() {
    let file = table("k,v,w\n1,\"a\nb\",\"c\"\n2,\"dd\r\n\r\ne\",f\n3,\"g\nh\",much longer\n");
    let mut source = open(&Input::Path(file.path.clone()), &options("k", "w")).unwrap();
    assert_eq!(source.by_ref().filter(Result::is_ok).count(), 3);
    let summary = source.summary();
    assert_eq!(summary.rows, 3);
    assert_eq!(
        summary.longest_field,
        Some(LongField { path: file.path.clone(), bytes: 7, first_line: 4, last_line: 6 })
    );
    let schema = summary.columns.unwrap();
    assert_eq!((&schema.key[0].0[..], &schema.value[0].0[..]), ("k", "w"));
}

/// Returns the fields of all rows as the `csv` crate reads them.
fn by_csv_crate(content: &[u8], dialect: CsvDialect) -> Vec<Vec<String>> {
    let mut builder = csv::ReaderBuilder::new();
    builder.escape(dialect.backslash.then_some(b'\\')).quoting(dialect.quote.is_some());
    let mut reader = builder.quote(dialect.quote.unwrap_or(b'"')).from_reader(content);
    reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
}

#[test]
fn well_formed_texts_are_read_as_by_the_csv_crate() {
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    for round in 0..60 {
        let dialect = [CsvDialect::default(), BACKSLASH, UNQUOTED][round % 3];
        let mut content = String::from("a,b,c\n");
        // Every third round is longer than any buffer.
        let rows = if round % 9 < 3 { 9000 } else { 30 };
        for _ in 0..rows {
            for column in 0..3 {
                let pieces = ["x", "é", "some words ", "\\", "\"", ",", "\n", "\r\n", ""];
                let field: String = (0..random(6)).map(|_| pieces[random(9) as usize]).collect();
                let separator =
                    if column < 2 { "," } else { ["\n", "\r\n", "\r", "\n\n"][random(4) as usize] };
                let plain: String = field.chars().filter(|c| !",\r\n".contains(*c)).collect();
                let needs_no_quote = !plain.starts_with('"') || dialect.quote.is_none();
                let written = match dialect.quote {
                    Some(_) if !needs_no_quote || random(2) == 0 => {
                        let field = if dialect.backslash { field.replace('\\', "\\\\") } else { field };
                        let twice = if dialect.backslash && random(2) == 0 { "\\\"" } else { "\"\"" };
                        format!("\"{}\"", field.replace('"', twice))
                    }
                    _ => plain,
                };
                content += &(written + separator);
            }
        }
        let file = table(&content);
        let columns = IngestOptions { csv: dialect, ..options("", "a,b,c") };
        let own = file.read(&columns).unwrap().into_iter().map(|record| {
            let fields: std::collections::BTreeMap<String, String> =
                serde_json::from_slice(&record.value).unwrap();
            fields.into_values().collect::<Vec<_>>()
        });
        assert!(own.eq(by_csv_crate(content.as_bytes(), dialect)), "round {round}");
    }
}

#[test]
fn two_columns_of_one_name_matter_if_they_are_used() {
    let file = Fixture::new("t.csv", "k,x,v,x\na,1,2,3\n");
    assert_eq!(file.texts(&options("k", "v")), pairs(&[("a", "2")]));
    for (key, value) in [("k", ""), ("x", "v"), ("k", "v,x")] {
        let message = file.error(&options(key, value));
        assert_eq!(message, "t.csv: two columns are called \"x\"; rename one of them");
    }
}

#[test]
fn names_of_columns_cannot_steer_a_terminal() {
    let file = Fixture::new("t.csv", "k,\"v\u{1b}[31m\"\na,1\n");
    let message = file.error(&options("k", "w"));
    assert_eq!(message, r#"t.csv: no column "w"; the columns are "k", "v\u{1b}[31m""#);
    let message = Fixture::new("t.jsonl", "{\"v\\u0007\": null}").error(&options("v\u{7}", ""));
    assert!(message.contains(r#"column "v\u{7}": a key cannot be null"#), "{message}");
}

#[test]
fn utf_16_is_named() {
    for content in [&b"\xff\xfek\0,\0v\0\n\0"[..], b"\xfe\xff\0k\0,\0v\0\n"] {
        let message = table(content).error(&options("", ""));
        assert!(message.starts_with("t.csv: the text is in UTF-16"), "{message}");
    }
}

#[test]
fn a_row_without_end_does_not_fill_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "k,v\n1,a\n2,\"b").unwrap();
    // The file has a hole: it takes no disk, but has 4 GiB to read.
    std::fs::OpenOptions::new().append(true).open(&path).unwrap().set_len(4 << 30).unwrap();
    let error = crate::read(&path, &options("k", "v")).unwrap_err().to_string();
    assert!(error.contains("row 2 (line 3): longer than 67108864 bytes"), "{error}");
}

fn tsv(name: &str) -> Fixture {
    let text = "k\tv\na,b\t1\nc;d\t2\n";
    if name.ends_with(".gz") { Fixture::new(name, gzip(text)) } else { Fixture::new(name, text) }
}

#[test]
fn fields_end_with_the_separator() {
    let expected = pairs(&[("a,b", "1"), ("c;d", "2")]);
    let semicolons =
        IngestOptions { csv: CsvDialect { separator: Some(b';'), ..PLAIN }, ..options("k", "v") };
    assert_eq!(table("k;v\na,b;1\n\"c;d\";2\n").texts(&semicolons), expected);
    for name in ["t.tsv", "t.TSV", "t.tsv.gz"] {
        assert_eq!(tsv(name).texts(&options("k", "v")), expected, "{name}");
    }
    let commas = IngestOptions { csv: CsvDialect { separator: Some(b','), ..PLAIN }, ..options("k", "v") };
    assert_eq!(Fixture::new("t.tsv", "k,v\na\t,1\n").texts(&commas), pairs(&[("a\t", "1")]));
    let message = table("k;v\na;1;2\n").error(&semicolons);
    assert_eq!(
        message,
        "t.csv, row 1 (line 2): 3 fields, but the first row has 2; quote fields that contain ';', which ends a field"
    );
}

#[test]
fn a_list_of_hashes_is_read_as_it_is_downloaded() {
    let list =
        "0018A45C4D1DEF81644B54AB7F969B88D65A7C1B:21\r\n00D4F6E8FA6EECAD2A3AA415EEC418D38EC2A1B2:2\r\n";
    let csv = CsvDialect { separator: Some(b':'), header: Some(false), ..PLAIN };
    let expected = pairs(&[
        ("0018A45C4D1DEF81644B54AB7F969B88D65A7C1B", "21"),
        ("00D4F6E8FA6EECAD2A3AA415EEC418D38EC2A1B2", "2"),
    ]);
    // The options say that it is CSV.
    let file = Fixture::new("pwned.list", list);
    assert_eq!(file.texts(&IngestOptions { csv, ..options("1", "2") }), expected);
    let message = file.error(&IngestOptions { csv, ..options("hash", "") });
    assert_eq!(message, "pwned.list: no column \"hash\"; the columns are \"1\", \"2\"");
    let ragged = Fixture::new("t.csv", "a\nb:1\n").error(&IngestOptions { csv, ..options("1", "") });
    assert!(ragged.starts_with("t.csv, row 2 (line 2): 2 fields, but the first row has 1"), "{ragged}");
}

#[test]
fn a_first_row_that_looks_like_a_record_is_asked_about() {
    for (content, shown) in [
        ("alice@example.org,Alice\nbob@example.org,Bob\n", "\"alice@example.org\" is an e-mail address"),
        ("a,1\nb,2\n", "\"1\" is a number"),
        (
            "0018A45C4D1DEF81644B54AB7F969B88D65A7C1B\n",
            "\"0018A45C4D1DEF81644B54AB7F969B88D65A7C1B\" is a hash",
        ),
    ] {
        for asked in [options("", ""), options("k", "")] {
            let message = table(content).error(&asked);
            assert!(message.starts_with("t.csv: the first row looks like a record"), "{message}");
            assert!(message.contains(shown) && message.contains("no-header"), "{message}");
        }
    }
    // A caller who names columns or states that there is a header has seen the header.
    let years = table("country,2023,2024\nchad,1,2\n");
    assert_eq!(years.texts(&options("country", "2024")), pairs(&[("chad", "2")]));
    let header =
        |header| IngestOptions { csv: CsvDialect { header: Some(header), ..PLAIN }, ..options("", "") };
    assert_eq!(years.texts(&header(true)).len(), 1);
    assert_eq!(years.texts(&header(false)).len(), 2);
    for utf16 in [&b"k\0,\0v\0\n\0"[..], b"\0k\0,\0v\0\n"] {
        let message = Fixture::new("t.csv", utf16).error(&options("k", ""));
        assert!(message.starts_with("t.csv: the text is in UTF-16"), "{message}");
    }
    let message = table("k;v\n1;2\n").error(&options("k", ""));
    assert!(message.starts_with("t.csv: the first row has no comma, but ';'"), "{message}");
    let message =
        Fixture::new("t.csv", "0018A45C4D1DEF81644B54AB7F969B88D65A7C1B:21\n").error(&options("", ""));
    assert!(message.starts_with("t.csv: the first row has no comma, but ':'"), "{message}");
}
