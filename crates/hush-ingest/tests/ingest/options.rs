//! Tests of the properties that all formats share.

use std::{fs, path::PathBuf};

use hush_ingest::{CsvDialect, Format, IngestError, IngestOptions, Input, open};
use hush_protocol::{normal_form::Normalization, schema::Column, wording::Wording};

use crate::{Fixture, one_of_each_format, options, pairs, read};

#[test]
fn all_formats_give_the_same_records() {
    for file in one_of_each_format() {
        assert_eq!(file.texts(&options("id", "name")), pairs(&[("1", "a"), ("2", "b")]), "{:?}", file.path);
        assert_eq!(file.texts(&options("name,id", "note")), pairs(&[("a\x1f1", "x"), ("b\x1f2", "")]));
        assert_eq!(file.texts(&options("", "id")), pairs(&[("", "1"), ("", "2")]));
        assert_eq!(file.texts(&options("id", "id")), pairs(&[("1", "1"), ("2", "2")]));
        assert_eq!(file.texts(&options("id", "note")), pairs(&[("1", "x"), ("2", "")]));
    }
}

#[test]
fn several_values_are_an_object_in_the_order_given() {
    for file in one_of_each_format() {
        let records = file.texts(&options("id", "note,name"));
        let null = if file.path.ends_with("t.csv") { "\"\"" } else { "null" };
        assert_eq!(
            records,
            pairs(
                &[("1", r#"{"note":"x","name":"a"}"#), ("2", &format!(r#"{{"note":{null},"name":"b"}}"#)),]
            )
        );
        let all = file.texts(&options("", ""));
        let id = if file.path.ends_with("t.csv") { "\"1\"" } else { "1" };
        assert_eq!(all[0].1, format!(r#"{{"id":{id},"name":"a","note":"x"}}"#));
    }
}

#[test]
fn only_keys_make_a_membership_list() {
    for file in [Fixture::new("t.csv", "id\n1\n2\n"), Fixture::new("t.jsonl", "{\"id\":1}\n{\"id\":\"2\"}")] {
        assert_eq!(file.texts(&options("id", "")), pairs(&[("1", ""), ("2", "")]));
    }
}

#[test]
fn null_keys_are_refused() {
    for file in one_of_each_format().into_iter().filter(|file| !file.path.ends_with("t.csv")) {
        let message = file.error(&options("id,note", ""));
        assert!(message.contains(", row 2"), "{message}");
        assert!(message.contains(", column \"note\": a key cannot be null"), "{message}");
    }
}

#[test]
fn missing_columns_are_answered_with_the_columns() {
    for file in one_of_each_format() {
        for wrong in [options("ID", ""), options("", "ID"), options("id", "name,ID")] {
            let message = file.error(&wrong);
            assert!(
                message.ends_with(": no column \"ID\"; the columns are \"id\", \"name\", \"note\""),
                "{message}"
            );
        }
    }
}

#[test]
fn long_values_name_the_row_and_the_option() {
    for file in one_of_each_format() {
        let limited = |max_value_size| IngestOptions { max_value_size, ..options("id", "id,name") };
        // The value has two fields of a byte each, with their heads.
        let size = 4;
        assert_eq!(file.read(&limited(size)).unwrap().len(), 2);
        let message = file.error(&limited(size - 1));
        assert!(message.contains(", row 1"), "{message}");
        assert!(message.contains(&format!("the value has {size} bytes, the limit is {}", size - 1)));
        assert!(message.contains("'max-value-size'"));
    }
}

#[test]
fn repeated_and_foreign_options_are_refused() {
    for file in one_of_each_format() {
        let repeated = file.read(&options("id,name,id", "")).unwrap_err();
        assert_eq!(repeated.to_string(), "'key' names the column \"id\" twice; name it once");
        assert!(matches!(
            file.read(&options("", "id,id")),
            Err(IngestError::RepeatedOption { option: Wording("{value}"), .. })
        ));
        if !file.path.ends_with("t.db") {
            let sql = IngestOptions { sql: Some("select 1".into()), ..IngestOptions::default() };
            assert!(file.error(&sql).ends_with(": 'sql' applies to SQLite files and PostgreSQL only"));
            let table = IngestOptions { table: Some("t".into()), ..IngestOptions::default() };
            assert!(file.error(&table).ends_with(": 'table' applies to SQLite files and PostgreSQL only"));
        }
        let hidden = IngestOptions { hidden: true, ..IngestOptions::default() };
        assert!(file.error(&hidden).ends_with(": 'hidden: true' applies to folders only"));
        let follow_links = IngestOptions { follow_links: true, ..IngestOptions::default() };
        assert!(file.error(&follow_links).ends_with(": 'follow-links: true' applies to folders only"));
    }
    let sql = IngestOptions { sql: Some("select 1".into()), ..IngestOptions::default() };
    assert!(matches!(open(&Input::Stdin, &sql), Err(IngestError::Option { .. })));
}

#[test]
fn the_first_bytes_say_what_the_name_does_not() {
    let content = |fixture: &Fixture| std::fs::read(&fixture.path).unwrap();
    let sqlite = content(&crate::sqlite::small());
    for (name, content) in [
        ("t.sqlite3", sqlite.clone()),
        ("t.db3", sqlite.clone()),
        ("t.txt", sqlite.clone()),
        ("t", sqlite),
        ("t.data", content(&crate::parquet::small())),
        ("t.txt", b"{\"id\": 1, \"name\": \"a\"}\n{\"id\": 2, \"name\": \"b\"}\n".to_vec()),
        ("t.dump", b"{\"id\": 1, \"name\": \"a\"}\n{\"id\": 2, \"name\": \"b\"}\n".to_vec()),
        ("t.txt", b"id,name\n1,a\n2,b\n".to_vec()),
        ("t.TXT", crate::compression::gzip("id,name\n1,a\n2,b\n")),
        ("t.tsv", b"id\tname\n1\ta\n2\tb\n".to_vec()),
    ] {
        let texts = Fixture::new(name, content).texts(&options("id", "name"));
        assert_eq!(texts, pairs(&[("1", "a"), ("2", "b")]), "{name}");
    }
}

#[test]
fn unknown_formats_and_missing_files_are_refused() {
    for name in ["t.xlsx", "t", "csv", ".csv"] {
        let message = Fixture::new(name, "a\n1\n").error(&IngestOptions::default());
        assert!(message.starts_with(&format!("{name}: cannot tell the format")), "{message}");
        assert!(
            message.contains(
                ".csv, .tsv, .txt, .parquet, .jsonl, .ndjson, .json, .sqlite, .sqlite3, .db, .db3, .arrow, .arrows, .feather, a folder"
            ),
            "{message}"
        );
    }
    let named = IngestOptions { format: Some("csv".parse().unwrap()), ..options("a", "") };
    assert_eq!(Fixture::new("t", "a\n1\n").texts(&named), pairs(&[("1", "")]));
    assert_eq!(
        "xlsx".parse::<Format>().unwrap_err().to_string(),
        "expected one of: csv, jsonl, parquet, arrow, sqlite"
    );
    for name in ["/nowhere/t.csv", "/nowhere/t.parquet", "/nowhere/t.jsonl", "/nowhere/t.db"] {
        let error = read(&PathBuf::from(name), &IngestOptions::default()).unwrap_err();
        assert!(matches!(error, IngestError::Unreadable { .. }));
        assert!(error.to_string().starts_with(&format!("{name}: cannot read: No such file")), "{error}");
    }
}

#[test]
fn inputs_are_parsed_from_arguments() {
    assert_eq!("-".parse(), Ok(Input::Stdin));
    assert_eq!("./-".parse(), Ok(Input::Path("./-".into())));
    assert_eq!("a.csv".parse(), Ok(Input::Path("a.csv".into())));
}

#[test]
fn keys_have_a_limit() {
    for (size, fits) in [(4096, true), (4097, false)] {
        let file = Fixture::new("t.csv", format!("k,v\n{},1\n", "k".repeat(size)));
        match file.read(&options("k", "v")) {
            Ok(records) => assert!(fits && records[0].key.as_ref().unwrap().len() == size),
            Err(error) => {
                assert!(!fits);
                assert!(error.to_string().contains("row 1 (line 2): the key has 4097 bytes, at most 4096"));
            }
        }
    }
}

#[test]
fn the_separator_cannot_be_in_a_part_of_a_key() {
    let file = Fixture::new("t.csv", "a,b,v\nx,y,1\nx\x1f,y,2\n");
    let message = file.error(&options("a,b", "v"));
    assert!(message.starts_with("t.csv, row 2 (line 3), column \"a\": contains the byte 0x1f"), "{message}");
    // Text that is a key by itself cannot have the separator either: clients could not tell it from a key of two columns.
    assert!(file.error(&options("a", "v")).contains("contains the byte 0x1f"));
}

#[test]
fn sources_can_move_to_another_thread() {
    for file in one_of_each_format() {
        let source = open(&Input::Path(file.path.clone()), &options("id", "name")).unwrap();
        assert_eq!(std::thread::spawn(move || source.count()).join().unwrap(), 2);
    }
}

#[test]
fn quotes_and_escapes_are_of_csv_alone() {
    let refused = |file: &Fixture, quote, backslash| {
        let csv = CsvDialect { quote, backslash, ..CsvDialect::default() };
        file.error(&IngestOptions { csv, ..options("k", "") })
    };
    let jsonl = Fixture::new("t.jsonl", "{\"k\":1}\n");
    assert_eq!(refused(&jsonl, None, false), "t.jsonl: 'quote' applies to CSV only");
    assert_eq!(refused(&jsonl, Some(b'"'), true), "t.jsonl: 'escape' applies to CSV only");
    let csv = Fixture::new("t.csv", "k\n1\n");
    assert!(refused(&csv, None, true).starts_with("t.csv: 'escape' applies within quotes"));
    for (option, dialect) in [
        ("'separator'", CsvDialect { separator: Some(b';'), ..CsvDialect::default() }),
        ("'header: true'", CsvDialect { header: Some(true), ..CsvDialect::default() }),
        ("'no-header: true'", CsvDialect { header: Some(false), ..CsvDialect::default() }),
    ] {
        let message = jsonl.error(&IngestOptions { csv: dialect, ..options("k", "") });
        assert_eq!(message, format!("t.jsonl: {option} applies to CSV only"));
    }
    let quote = CsvDialect { separator: Some(b'"'), ..CsvDialect::default() };
    let message = csv.error(&IngestOptions { csv: quote, ..options("k", "") });
    assert!(message.starts_with("t.csv: 'separator' is the quote"), "{message}");
}

#[test]
fn columns_are_known_in_every_format() {
    for file in one_of_each_format() {
        let mut source = open(&Input::Path(file.path.clone()), &options("id", "name")).unwrap();
        assert_eq!(source.by_ref().filter(Result::is_ok).count(), 2);
        let schema = source.columns().unwrap();
        let shown = |columns: &[Column]| format!("{} {}", columns[0].0, columns[0].1.name());
        let id = if file.path.extension().is_some_and(|own| own == "csv") { "id string" } else { "id int64" };
        let types = (shown(&schema.key), shown(&schema.value));
        assert_eq!(types, (id.into(), "name string".into()), "{}", file.path.display());
    }
}

#[test]
fn keys_have_their_normal_form_and_values_do_not() {
    let normalize = [Normalization::Lower, Normalization::Nfc, Normalization::Trim].into_iter().collect();
    let normal = |key: &str, value: &str| IngestOptions { normalize, ..options(key, value) };
    let expected = pairs(&[("alice", " A "), ("\u{e9}", "B")]);
    for file in [
        Fixture::new("t.csv", "k,v\n Alice , A \nE\u{301},B\n"),
        Fixture::new("t.jsonl", "{\"k\":\" Alice \",\"v\":\" A \"}\n{\"k\":\"E\\u0301\",\"v\":\"B\"}\n"),
    ] {
        assert_eq!(file.texts(&normal("k", "v")), expected);
        let mut source = open(&Input::Path(file.path.clone()), &normal("k", "v")).unwrap();
        assert_eq!(source.by_ref().filter(Result::is_ok).count(), 2);
        assert_eq!(source.columns().unwrap().normalize, normalize);
        assert_eq!(file.error(&normal("", "v")).split(": ").nth(1), Some("'normalize' applies to keys"));
    }
    // Numbers beside text stay as they are. Clients could not tell the text of a column that has both.
    let numbers =
        Fixture::new("t.jsonl", "{\"k\":\"A\",\"n\":1,\"m\":\"B\"}\n{\"k\":\"B\",\"n\":2,\"m\":3}\n");
    assert_eq!(numbers.texts(&normal("k,n", "")), pairs(&[("a\x1f1", "B"), ("b\x1f2", "3")]));
    for (key, column) in [("m", "m"), ("k,m", "m"), ("n", "n")] {
        let message = numbers.error(&normal(key, "k"));
        assert!(
            message.starts_with(&format!("t.jsonl: the key column \"{column}\" is not all text")),
            "{message}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("A"), "a").unwrap();
    let error = read(folder.path(), &normal("", "")).unwrap_err().to_string();
    assert!(error.contains("'normalize' applies to keys"), "{error}");
}
