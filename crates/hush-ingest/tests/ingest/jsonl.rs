//! Tests of JSONL.

use hush_ingest::IngestError;

use crate::{Fixture, IngestOptions, options, pairs};

fn lines(content: impl AsRef<[u8]>) -> Fixture {
    Fixture::new("t.jsonl", content)
}

#[test]
fn every_type_has_its_text() {
    let values = [
        ("\"text\"", "text"),
        ("\"\\u00e9\\n\\\"\\ud83d\\ude00\"", "é\n\"\u{1f600}"),
        ("\"\"", ""),
        ("null", ""),
        ("true", "true"),
        ("false", "false"),
        ("-12", "-12"),
        ("1.50", "1.50"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("1E400", "1E400"),
        ("[1, 2, {\"a b\" : \" c \"}]", "[1,2,{\"a b\":\" c \"}]"),
        ("{ \"x\" : null }", "{\"x\":null}"),
        ("[]", "[]"),
    ];
    let content: String = values.iter().map(|(json, _)| format!("{{\"k\": 1 , \"v\": {json} }}\n")).collect();
    let expected: Vec<_> = values.iter().map(|(_, text)| ("1", *text)).collect();
    assert_eq!(lines(content).texts(&options("k", "")), pairs(&expected));
}

#[test]
fn several_values_keep_their_json_types() {
    let file = lines(r#"{"a":"\u00e9\t","b":1.50,"c":[ 1 ],"d":true,"e":null,"f \"":{}}"#);
    assert_eq!(
        file.texts(&options("b", "")),
        pairs(&[("1.50", r#"{"a":"é\t","c":[1],"d":true,"e":null,"f \"":{}}"#)])
    );
}

#[test]
fn named_values_may_be_missing_and_others_are_ignored() {
    let file = lines("{\"k\":1,\"x\":[]}\n{\"v\":\"b\",\"k\":2}\n{\"k\":3,\"v\":null,\"y\":0,\"y\":1}\n");
    assert_eq!(file.texts(&options("k", "v")), pairs(&[("1", ""), ("2", "b"), ("3", "")]));
    let message = file.error(&options("k", "v,z"));
    assert_eq!(message, "t.jsonl: no column \"z\"; the columns are \"k\", \"x\"");
}

#[test]
fn a_field_that_comes_twice_matters_where_it_is_used() {
    let file = lines("{\"k\":1,\"v\":\"a\",\"y\":0,\"y\":1}\n{\"k\":2,\"y\":2,\"y\":3,\"v\":\"b\"}\n");
    assert_eq!(file.texts(&options("k", "v")), pairs(&[("1", "a"), ("2", "b")]));
    for (key, value) in [("k", "y"), ("y", "v"), ("k", "")] {
        let message = file.error(&options(key, value));
        assert!(message.contains("row 1 (line 1)") && message.contains("has two fields \"y\""), "{message}");
    }
}

#[test]
fn without_named_values_the_first_object_sets_the_columns() {
    let file = lines("{\"k\":1,\"v\":\"a\",\"w\":2}\n{\"k\":2}\n{\"w\":3,\"k\":3}\n");
    assert_eq!(
        file.texts(&options("k", "")),
        pairs(&[("1", r#"{"v":"a","w":2}"#), ("2", r#"{"v":null,"w":null}"#), ("3", r#"{"v":null,"w":3}"#)])
    );
    let file = lines("{\"k\":1,\"v\":\"a\"}\n\n{\"k\":2,\"v\":\"b\",\"extra\":1}\n");
    let message = file.error(&options("k", ""));
    assert!(message.starts_with("t.jsonl, row 2 (line 3): the field \"extra\" is not in the first object"));
    assert!(message.ends_with("name the columns to keep with 'value'"));
}

#[test]
fn line_ends_marks_and_blank_lines_do_not_matter() {
    for content in [
        "{\"v\":1}\n{\"v\":2}\n",
        "{\"v\":1}\r\n{\"v\":2}",
        "\u{feff}{\"v\":1}\n{\"v\":2}",
        "\n  {\"v\":1} \n\n \t\r\n{\"v\":2}\n\n",
    ] {
        assert_eq!(lines(content).texts(&options("", "v")), pairs(&[("", "1"), ("", "2")]), "{content:?}");
    }
}

#[test]
fn lines_that_are_not_objects_are_refused() {
    for (line, found) in [
        ("[1]", "an array"),
        ("\"x\"", "a string"),
        ("null", "null"),
        ("true", "a boolean"),
        ("-1", "a number"),
    ] {
        assert_eq!(
            lines(format!("{{\"v\":1}}\n{line}\n")).error(&IngestOptions::default()),
            format!(
                "t.jsonl, row 2 (line 2): expected a JSON object, found {found}; write one object per line, or an array of \
                 objects"
            )
        );
    }
}

#[test]
fn broken_json_is_refused_with_its_byte() {
    for (line, byte) in [
        ("{\"v\":}", 6),
        ("{\"v\":1", 6),
        ("{\"v\":1} x", 9),
        ("{\"v\":\"a}", 8),
        ("{v:1}", 2),
        ("x", 1),
        ("{\"v\":\"\\ud800\"}", 8),
        ("{\"v\":{\"a\":01}}", 12),
    ] {
        let error = lines(format!("{{\"v\":1}}\n\n{line}\n")).read(&IngestOptions::default()).unwrap_err();
        let IngestError::InvalidJson { place, byte: at, .. } = &error else { panic!("{error}") };
        assert_eq!((place.row, place.line), (2, Some(3)));
        assert!(at.abs_diff(byte) <= 1, "{line}: {error}");
        assert!(!error.to_string().contains("line 1 column"), "{error}");
    }
}

#[test]
fn bad_utf8_is_refused() {
    let message = lines(b"{\"v\":1}\n{\"v\":\"\xff\"}\n").error(&IngestOptions::default());
    assert_eq!(message, "t.jsonl, row 2 (line 2): not valid UTF-8; convert the file to UTF-8");
}

#[test]
fn missing_keys_and_repeated_fields_are_refused() {
    let message = lines("{\"k\":1,\"v\":1}\n{\"v\":2}\n").error(&options("k", "v"));
    assert!(message.starts_with("t.jsonl, row 2 (line 2): the object has no field \"k\""), "{message}");
    for first in ["", "{\"v\":1}\n"] {
        let message = lines(format!("{first}{{\"v\":1,\"\\u0076\":2}}\n")).error(&IngestOptions::default());
        assert!(message.ends_with("the object has two fields \"v\"; remove one of them"), "{message}");
    }
}

#[test]
fn empty_files_are_refused() {
    for content in ["", "\n \n", "\u{feff}"] {
        let message = lines(content).error(&IngestOptions::default());
        assert_eq!(message, "t.jsonl: no records; a table needs at least one");
    }
}

#[test]
fn long_values_and_deep_nesting_are_kept() {
    let text = "é".repeat(32_768);
    assert_eq!(lines(format!("{{\"v\":\"{text}\"}}")).texts(&options("", "v")), pairs(&[("", &text)]));
    let deep = "[".repeat(20_000) + &"]".repeat(20_000);
    assert_eq!(lines(format!("{{\"v\":{deep}}}")).texts(&options("", "v")), pairs(&[("", &deep)]));
}

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    std::fs::write(&path, "{\"v\":1}\n").unwrap();
    std::fs::OpenOptions::new().append(true).open(&path).unwrap().set_len(4 << 30).unwrap();
    let error = crate::read(&path, &options("", "v")).unwrap_err().to_string();
    assert!(error.contains("row 2 (line 2): longer than 67108864 bytes"), "{error}");
}

#[test]
fn an_object_may_have_very_many_fields() {
    let fields: Vec<_> = (0..100_000).map(|at| format!("\"{at}\":1")).collect();
    let file = lines(format!("{{{}}}\n", fields.join(",")));
    let columns = IngestOptions { max_value_size: 1 << 20, ..options("0", "99999") };
    assert_eq!(file.texts(&columns), pairs(&[("1", "1")]));
    let twice = |name| lines(format!("{{{},\"{name}\":2}}\n", fields.join(",")));
    assert_eq!(twice("7").texts(&columns), pairs(&[("1", "1")]));
    assert!(twice("99999").error(&columns).contains("has two fields \"99999\""));
}

#[test]
fn an_object_over_several_lines_is_named_as_that() {
    for text in ["{\n \"k\": 1\n}\n", "{\"k\": [\n1]}\n"] {
        let message = lines(text).error(&options("k", ""));
        assert!(
            message.contains(
                "the line ends within the object (one object is one line, or all are in one array)"
            ),
            "{message}"
        );
    }
}

#[test]
fn utf_16_is_named() {
    let message = Fixture::new("t.jsonl", b"\xff\xfe{\0").error(&options("", ""));
    assert!(message.starts_with("t.jsonl: the text is in UTF-16"), "{message}");
}

#[test]
fn an_array_of_objects_is_read_element_by_element() {
    let expected = pairs(&[("1", "a]}"), ("2", "[{\"x\":\"\\\"]\"}]")]);
    for content in [
        r#"[{"k":1,"v":"a]}"},{"k":2,"v":[{"x":"\"]"}]}]"#,
        "\u{feff} \n[\n  {\"k\":1,\n   \"v\":\"a]}\"} ,\r\n  {\"k\":2,\"v\":[ {\"x\":\"\\\"]\"} ]}\n]\n\n",
    ] {
        for name in ["t.json", "t.jsonl"] {
            assert_eq!(Fixture::new(name, content).texts(&options("k", "v")), expected, "{content:?}");
        }
    }
    // The extension `.json` is read as one object a line, too.
    assert_eq!(
        Fixture::new("t.json", "{\"v\":1}\n{\"v\":2}\n").texts(&options("", "v")),
        pairs(&[("", "1"), ("", "2")])
    );
    let long = format!("[{}]", vec![r#"{"k":"key","v":"value"}"#; 50_000].join(",\n"));
    assert_eq!(lines(long).read(&options("k", "v")).unwrap().len(), 50_000);
}

#[test]
fn arrays_that_are_damaged_are_refused_with_their_line() {
    let start = "[\n {\"v\":1},\n";
    for (rest, said) in [
        ("", "row 2 (line 3): the JSON array ends too soon; fetch the rest of the file"),
        (" {\"v\":", "row 2 (line 3): the JSON array ends too soon; fetch the rest of the file"),
        (" {\"v\":2}", "row 3 (line 3): the JSON array ends too soon; fetch the rest of the file"),
        (
            " {\"v\":2} {\"v\":3}]",
            "row 3 (line 3): the JSON array has something behind an element that is no comma; correct it",
        ),
        (" {\"v\":2}] x", "row 3 (line 3): the JSON array is followed by something else"),
        (" 7]", "row 2 (line 3): expected a JSON object, found a number"),
        (" [{\"v\":2}]]", "row 2 (line 3): expected a JSON object, found an array"),
        (" {\"v\":}]", "row 2 (line 3): not valid JSON: expected value at byte 7 of the line"),
        (" {\n \"v\":}]", "row 2 (line 4): not valid JSON: expected value at byte 6 of the line"),
        ("]", "row 2 (line 3): not valid JSON: EOF while parsing"),
        (" , {\"v\":3}]", "row 2 (line 3): not valid JSON: EOF while parsing"),
    ] {
        let message = lines(format!("{start}{rest}")).error(&options("", "v"));
        assert!(message.starts_with(&format!("t.jsonl, {said}")), "{rest:?}: {message}");
    }
    assert!(lines("[]").error(&options("", "v")).contains("no records"));
}

#[test]
fn an_element_without_end_does_not_fill_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.json");
    std::fs::write(&path, "[{\"v\":1},{").unwrap();
    std::fs::OpenOptions::new().append(true).open(&path).unwrap().set_len(4 << 30).unwrap();
    let error = crate::read(&path, &options("", "v")).unwrap_err().to_string();
    assert!(error.contains("row 2 (line 1): longer than 67108864 bytes"), "{error}");
}
