//! Tests of lists, maps and structs of Parquet as nested JSON, with files whose levels are written here.

use parquet::file::properties::WriterProperties;

use crate::{
    Fixture, options, pairs,
    parquet::{Plain, Values, file, file_bytes},
};

fn ints(levels: &[(i16, i16)], values: &[i32]) -> Values {
    Values::Entries { levels: levels.to_vec(), values: Plain::I32(values.to_vec()) }
}

fn texts(levels: &[(i16, i16)], values: &[&'static str]) -> Values {
    Values::Entries { levels: levels.to_vec(), values: Plain::Texts(values.to_vec()) }
}

/// Returns the values of the only column, `v`, row by row.
fn values(schema: &str, columns: Vec<Values>) -> Vec<String> {
    let records = file(schema, columns).texts(&options("", "v"));
    records.into_iter().map(|(_, value)| value).collect()
}

const TAGS: &str = "OPTIONAL group v (LIST) { REPEATED group list { OPTIONAL BYTE_ARRAY element (UTF8); } }";

#[test]
fn a_list_may_be_null_or_empty_and_so_may_its_elements() {
    let tags = texts(&[(0, 0), (1, 0), (2, 0), (3, 0), (2, 1), (3, 1)], &["a", "b\""]);
    assert_eq!(values(TAGS, vec![tags]), ["", "[]", "[null]", r#"["a",null,"b\""]"#]);
    // Among other fields, null is null.
    let schema = format!("REQUIRED INT32 k; {TAGS}");
    let columns = vec![ints(&[(0, 0), (0, 0)], &[1, 2]), texts(&[(0, 0), (3, 0)], &["a"])];
    let file = file(&schema, columns);
    let whole = [("", r#"{"k":1,"v":null}"#), ("", r#"{"k":2,"v":["a"]}"#)];
    assert_eq!(file.texts(&options("", "")), pairs(&whole));
    // As a key, a list is its text.
    assert_eq!(
        file.error(&options("v", "k")),
        "t.parquet, row 1, column \"v\": a key cannot be null; remove the row or choose another 'key'"
    );
}

#[test]
fn lists_of_lists() {
    let schema = "OPTIONAL group v (LIST) { REPEATED group list { OPTIONAL group element (LIST) {
        REPEATED group list { REQUIRED INT32 element; } } } }";
    let levels = [(4, 0), (4, 2), (3, 1), (2, 1), (4, 0), (0, 0), (1, 0), (4, 0), (4, 1)];
    let column = ints(&levels, &[1, 2, 3, 4, 5]);
    assert_eq!(values(schema, vec![column]), ["[[1,2],[],null]", "[[3]]", "", "[]", "[[4],[5]]"]);
}

#[test]
fn maps_are_objects() {
    let schema = "OPTIONAL group v (MAP) { REPEATED group key_value {
        REQUIRED BYTE_ARRAY key (UTF8); OPTIONAL INT32 value; } }";
    let keys = texts(&[(2, 0), (2, 1), (1, 0), (0, 0)], &["a", "\"b\""]);
    let counts = ints(&[(3, 0), (2, 1), (1, 0), (0, 0)], &[1]);
    assert_eq!(values(schema, vec![keys, counts]), [r#"{"a":1,"\"b\"":null}"#, "{}", ""]);
    // The map has keys that are no text, and no values at all.
    let schema = "REQUIRED group v (MAP_KEY_VALUE) { REPEATED group map { REQUIRED INT32 key; } }";
    assert_eq!(values(schema, vec![ints(&[(1, 0), (1, 1)], &[7, -8])]), [r#"{"7":null,"-8":null}"#]);
}

#[test]
fn structs_are_objects_in_lists_and_where_they_are_asked_for() {
    let schema = "OPTIONAL group v (LIST) { REPEATED group list { OPTIONAL group element {
        REQUIRED INT32 x; OPTIONAL BYTE_ARRAY y (UTF8); } } }";
    let (x, y) = (ints(&[(3, 0), (2, 1), (3, 1)], &[1, 2]), texts(&[(4, 0), (2, 1), (3, 1)], &["p"]));
    assert_eq!(values(schema, vec![x, y]), [r#"[{"x":1,"y":"p"},null,{"x":2,"y":null}]"#]);

    let schema = "OPTIONAL group s { OPTIONAL BYTE_ARRAY f (UTF8); OPTIONAL group t { REQUIRED INT32 g; } }";
    let (f, g) = (
        texts(&[(0, 0), (1, 0), (2, 0), (2, 0)], &["x", "y"]),
        ints(&[(0, 0), (1, 0), (1, 0), (2, 0)], &[5]),
    );
    let file = file(schema, vec![f, g]);
    let column = |value: &str| {
        let texts = file.texts(&options("", value));
        texts.into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };
    let whole = ["", r#"{"f":null,"t":null}"#, r#"{"f":"x","t":null}"#, r#"{"f":"y","t":{"g":5}}"#];
    assert_eq!(column("s"), whole);
    assert_eq!(column("s.t"), ["", "", "", r#"{"g":5}"#]);
    assert_eq!(column("s.f"), ["", "", "x", "y"]);
    // Without options the fields are the columns; a struct and its field may both be requested.
    assert_eq!(column("")[3], r#"{"s.f":"y","s.t.g":5}"#);
    assert_eq!(column("s.t.g,s")[3], r#"{"s.t.g":5,"s":{"f":"y","t":{"g":5}}}"#);
}

#[test]
fn lists_as_older_writers_have_them() {
    let entries = || ints(&[(1, 0), (1, 1), (0, 0), (1, 0)], &[1, 2, 3]);
    assert_eq!(values("REPEATED INT32 v;", vec![entries()]), ["[1,2]", "[]", "[3]"]);
    let two_levels = "REQUIRED group v (LIST) { REPEATED INT32 element; }";
    assert_eq!(values(two_levels, vec![entries()]), ["[1,2]", "[]", "[3]"]);
    for (group, field) in [("array", "a"), ("v_tuple", "b")] {
        let schema =
            format!("REQUIRED group v (LIST) {{ REPEATED group {group} {{ REQUIRED INT32 {field}; }} }}");
        let objects =
            [format!(r#"[{{"{field}":1}},{{"{field}":2}}]"#), "[]".into(), format!(r#"[{{"{field}":3}}]"#)];
        assert_eq!(values(&schema, vec![entries()]), objects);
    }
    let two_fields =
        "REQUIRED group v (LIST) { REPEATED group pair { REQUIRED INT32 a; REQUIRED INT32 b; } }";
    assert_eq!(
        values(two_fields, vec![entries(), entries()]),
        [r#"[{"a":1,"b":1},{"a":2,"b":2}]"#, "[]", r#"[{"a":3,"b":3}]"#]
    );
}

#[test]
fn rows_are_kept_apart_over_pages_and_row_groups() {
    let schema = "REQUIRED INT32 k; REPEATED group v { REPEATED INT32 w; }";
    // Row i has i % 5 groups, group j of it (i + j) % 4 numbers.
    let groups = (0..3).map(|group| {
        let (mut keys, mut levels, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for row in 400 * group..400 * (group + 1) {
            keys.push(row);
            let mut repetition = 0;
            for inner in 0..row % 5 {
                for number in 0..(row + inner) % 4 {
                    levels.push((2, if number > 0 { 2 } else { repetition }));
                    numbers.push(100 * row + 10 * inner + number);
                }
                if (row + inner) % 4 == 0 {
                    levels.push((1, repetition));
                }
                repetition = 1;
            }
            if row % 5 == 0 {
                levels.push((0, 0));
            }
        }
        let starts = vec![(0, 0); keys.len()];
        vec![ints(&starts, &keys), ints(&levels, &numbers)]
    });
    let properties = WriterProperties::builder().set_data_page_size_limit(64).set_write_batch_size(7).build();
    let file = Fixture::new("t.parquet", file_bytes(schema, properties, groups.collect()));
    let records = file.texts(&options("k", "v"));
    assert_eq!(records.len(), 1200);
    for (row, (key, value)) in records.into_iter().enumerate() {
        assert_eq!(key, row.to_string());
        let mut expected = Vec::new();
        for inner in 0..row % 5 {
            let numbers = (0..(row + inner) % 4).map(|number| (100 * row + 10 * inner + number).to_string());
            expected.push(format!(r#"{{"w":[{}]}}"#, numbers.collect::<Vec<_>>().join(",")));
        }
        assert_eq!(value, format!("[{}]", expected.join(",")));
    }
}

#[test]
fn columns_of_a_list_that_do_not_fit_together_are_an_error() {
    let schema = "REQUIRED group v (LIST) { REPEATED group pair { REQUIRED INT32 a; REQUIRED INT32 b; } }";
    let (two, three) = (ints(&[(1, 0), (1, 1)], &[1, 2]), ints(&[(1, 0), (1, 1), (1, 1)], &[1, 2, 3]));
    let message = "t.parquet: cannot read as Parquet: column \"v\": Parquet error: Not all children array length are the same!";
    for columns in [[&two, &three], [&three, &two]] {
        let columns = columns.map(|column: &Values| match column {
            Values::Entries { levels, values } => {
                Values::Entries { levels: levels.clone(), values: values.clone() }
            }
            _ => unreachable!("made of entries"),
        });
        assert_eq!(file(schema, columns.into()).error(&options("", "v")), message);
    }
}

#[test]
fn lists_that_are_too_long_are_refused_early() {
    let many: Vec<i32> = (0..100_000).collect();
    let levels: Vec<_> = (0..many.len()).map(|at| (1, i16::from(at > 0))).collect();
    let list = file("REPEATED INT32 v;", vec![ints(&levels, &many)]);
    let message = list.error(&options("", "v"));
    assert!(message.starts_with("t.parquet, row 1: the value has 655"), "{message}");
    // Many nulls take only bytes in the file, and have more entries than any real file.
    let nulls: Vec<_> = (0..3 << 20).map(|at| (2, i16::from(at > 0))).collect();
    let nulls = file(TAGS, vec![texts(&nulls, &[])]);
    let message = nulls.error(&options("", "v"));
    assert!(message.ends_with("a few rows have too many elements in their lists"), "{message}");
}

/// The metadata says that rows have few elements. The reader therefore decodes many at a time.
#[test]
fn lists_are_read_where_the_longest_come_first() {
    let elements = |row: usize| if row < 1000 { 3000 } else { 1 };
    let (mut levels, mut numbers) = (Vec::new(), Vec::new());
    for row in 0..200_000 {
        levels.extend((0..elements(row)).map(|at| (1, i16::from(at > 0))));
        numbers.extend((0..elements(row)).map(|_| row as i32 % 10));
    }
    let properties =
        WriterProperties::builder().set_data_page_row_count_limit(100).set_write_batch_size(1000).build();
    let groups = vec![vec![ints(&levels, &numbers)]];
    let file = Fixture::new("t.parquet", file_bytes("REPEATED INT32 v;", properties, groups));
    let records = file.texts(&options("", "v"));
    assert_eq!(records.len(), 200_000);
    for (row, (_, value)) in records.into_iter().enumerate() {
        assert_eq!(value.len(), 1 + 2 * elements(row), "row {row}");
        assert_eq!(value[1..2], (row % 10).to_string());
    }
}

#[test]
fn repeated_groups_that_no_list_is_around_and_maps_of_lists() {
    // A map whose entries have more than a key and a value is a list of structs.
    let schema = "REQUIRED group v (MAP) { REPEATED group map {
        REQUIRED INT32 a; REQUIRED INT32 b; REQUIRED INT32 c; } }";
    let column = |number| ints(&[(1, 0), (0, 0)], &[number]);
    let columns = vec![column(1), column(2), column(3)];
    assert_eq!(values(schema, columns), [r#"[{"a":1,"b":2,"c":3}]"#, "[]"]);
    // The maps are in a repeated map without a list around it.
    let schema = "REPEATED group v (MAP) { REPEATED group map {
        REQUIRED BYTE_ARRAY key (UTF8); REQUIRED BYTE_ARRAY value (UTF8); } }";
    let levels = [(2, 0), (2, 2), (1, 1), (0, 0)];
    let columns = vec![texts(&levels, &["a", "b"]), texts(&levels, &["x", "y"])];
    assert_eq!(values(schema, columns), [r#"[{"a":"x","b":"y"},{}]"#, "[]"]);
    // A key that is a struct is the text of its JSON.
    let schema = "REQUIRED group v (MAP) { REPEATED group map {
        REQUIRED group key { REQUIRED INT32 k; } OPTIONAL group value (LIST) {
        REPEATED group list { OPTIONAL BYTE_ARRAY element (UTF8); } } } }";
    let columns =
        vec![ints(&[(1, 0), (1, 1), (0, 0)], &[7, 8]), texts(&[(4, 0), (3, 2), (1, 1), (0, 0)], &["x"])];
    assert_eq!(values(schema, columns), [r#"{"{\"k\":7}":["x",null],"{\"k\":8}":null}"#, "{}"]);
}

#[test]
fn bad_utf8_in_a_list_names_the_row() {
    let schema = "REPEATED BYTE_ARRAY v (UTF8);";
    let levels = vec![(1, 0), (1, 0), (1, 1)];
    let values = Plain::Bytes(vec![b"ok", b"ok", b"\xff"]);
    let file = file(schema, vec![Values::Entries { levels, values }]);
    assert!(file.error(&options("", "v")).starts_with("t.parquet, row 2, column \"v\": not valid UTF-8"));
}
