//! Tests of Parquet, with files that are written here.

use std::{fs, sync::Arc};

use hush_ingest::{IngestError, IngestOptions};
use parquet::{
    basic::{Compression, Encoding, GzipLevel, ZstdLevel},
    data_type::{
        BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
        FloatType, Int32Type, Int64Type, Int96, Int96Type,
    },
    file::{
        properties::{WriterProperties, WriterVersion},
        writer::{SerializedColumnWriter, SerializedFileWriter},
    },
    schema::parser::parse_message_type,
};

use crate::{Fixture, options, pairs, texts};

/// The values of a column in a row group.
pub(crate) enum Values {
    Bool(Vec<Option<bool>>),
    I32(Vec<Option<i32>>),
    I64(Vec<Option<i64>>),
    I96(Vec<Option<Int96>>),
    F32(Vec<Option<f32>>),
    F64(Vec<Option<f64>>),
    Bytes(Vec<Option<Vec<u8>>>),
    Fixed(Vec<Option<Vec<u8>>>),
    /// Values with the definition and the repetition level of every entry.
    Entries {
        levels: Vec<(i16, i16)>,
        values: Plain,
    },
}

/// Values that are not null.
#[derive(Clone)]
pub(crate) enum Plain {
    I32(Vec<i32>),
    Texts(Vec<&'static str>),
    Bytes(Vec<&'static [u8]>),
}

fn bytes(values: &[Option<&[u8]>]) -> Values {
    Values::Bytes(values.iter().map(|value| value.map(Into::into)).collect())
}

fn put<T: DataType>(writer: &mut SerializedColumnWriter, values: Vec<Option<T::T>>) {
    let writer = writer.typed::<T>();
    let max_level = writer.get_descriptor().max_def_level();
    let levels: Vec<i16> =
        values.iter().map(|value| if value.is_some() { max_level } else { max_level - 1 }).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    writer.write_batch(&values, Some(&levels).filter(|_| max_level > 0).map(Vec::as_slice), None).unwrap();
}

fn put_values(writer: &mut SerializedColumnWriter, values: Values) {
    let byte_array = |value: Vec<u8>| ByteArray::from(value);
    match values {
        Values::Bool(values) => put::<BoolType>(writer, values),
        Values::I32(values) => put::<Int32Type>(writer, values),
        Values::I64(values) => put::<Int64Type>(writer, values),
        Values::I96(values) => put::<Int96Type>(writer, values),
        Values::F32(values) => put::<FloatType>(writer, values),
        Values::F64(values) => put::<DoubleType>(writer, values),
        Values::Bytes(values) => {
            put::<ByteArrayType>(writer, values.into_iter().map(|value| value.map(byte_array)).collect())
        }
        Values::Fixed(values) => {
            let values = values.into_iter();
            let fixed = values.map(|value| value.map(|value| FixedLenByteArray::from(byte_array(value))));
            put::<FixedLenByteArrayType>(writer, fixed.collect())
        }
        Values::Entries { levels, values } => {
            let (definitions, repetitions): (Vec<_>, Vec<_>) = levels.into_iter().unzip();
            let (definitions, repetitions) = (Some(&definitions[..]), Some(&repetitions[..]));
            match values {
                Plain::I32(values) => {
                    writer.typed::<Int32Type>().write_batch(&values, definitions, repetitions).unwrap()
                }
                Plain::Texts(texts) => {
                    let values: Vec<ByteArray> = texts.into_iter().map(ByteArray::from).collect();
                    writer.typed::<ByteArrayType>().write_batch(&values, definitions, repetitions).unwrap()
                }
                Plain::Bytes(bytes) => {
                    let values: Vec<ByteArray> =
                        bytes.into_iter().map(|value| ByteArray::from(value.to_vec())).collect();
                    writer.typed::<ByteArrayType>().write_batch(&values, definitions, repetitions).unwrap()
                }
            };
        }
    }
}

pub(crate) fn file_bytes(schema: &str, properties: WriterProperties, groups: Vec<Vec<Values>>) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    for columns in groups {
        let mut group = writer.next_row_group().unwrap();
        for values in columns {
            let mut column = group.next_column().unwrap().unwrap();
            put_values(&mut column, values);
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

pub(crate) fn file(schema: &str, columns: Vec<Values>) -> Fixture {
    Fixture::new("t.parquet", file_bytes(schema, WriterProperties::default(), vec![columns]))
}

/// A file of pyarrow whose pages have checksums.
const WITH_CHECKSUMS: &[u8] = include_bytes!("checksum.parquet");

#[test]
fn pages_are_checked_where_they_have_checksums() {
    let read = |bytes: &[u8]| Fixture::new("t.parquet", bytes).read(&options("k", "v"));
    let expected = pairs(&[("a", "first"), ("b", "second")]);
    assert_eq!(read(WITH_CHECKSUMS).unwrap().into_iter().map(texts).collect::<Vec<_>>(), expected);
    let mut damaged = WITH_CHECKSUMS.to_vec();
    let at = damaged.windows(5).position(|bytes| bytes == b"first").unwrap();
    damaged[at] ^= 1;
    let message = read(&damaged).unwrap_err().to_string();
    assert!(message.contains("column \"v\"") && message.contains("checksum"), "{message}");
}

pub(crate) fn small() -> Fixture {
    file(
        "REQUIRED INT64 id; REQUIRED BYTE_ARRAY name (UTF8); OPTIONAL BYTE_ARRAY note (UTF8);",
        vec![
            Values::I64(vec![Some(1), Some(2)]),
            bytes(&[Some(b"a"), Some(b"b")]),
            bytes(&[Some(b"x"), None]),
        ],
    )
}

/// Returns the text of a column of one row, alone and in JSON.
fn forms(schema: &str, values: Values) -> (String, String) {
    let file = file(&format!("REQUIRED INT32 k; {schema}"), vec![Values::I32(vec![Some(1)]), values]);
    let alone = file.texts(&options("k", "v")).remove(0).1;
    let member = file.texts(&options("", "k,v")).remove(0).1;
    (alone, member.strip_prefix("{\"k\":1,\"v\":").unwrap().strip_suffix('}').unwrap().into())
}

#[test]
fn every_number_has_its_text() {
    let i32s = |value| Values::I32(vec![Some(value)]);
    let i64s = |value| Values::I64(vec![Some(value)]);
    for (schema, values, text) in [
        ("OPTIONAL BOOLEAN v;", Values::Bool(vec![Some(true)]), "true"),
        ("OPTIONAL INT32 v;", i32s(i32::MIN), "-2147483648"),
        ("REQUIRED INT32 v (INTEGER(8,true));", i32s(-5), "-5"),
        ("REQUIRED INT32 v (INTEGER(32,false));", i32s(-1), "4294967295"),
        ("REQUIRED INT32 v (UINT_32);", i32s(-1), "4294967295"),
        ("REQUIRED INT64 v (INTEGER(64,false));", i64s(-1), "18446744073709551615"),
        ("REQUIRED INT64 v;", i64s(i64::MIN), "-9223372036854775808"),
        ("REQUIRED FLOAT v;", Values::F32(vec![Some(0.1)]), "0.1"),
        ("REQUIRED DOUBLE v;", Values::F64(vec![Some(-1e-9)]), "-1e-9"),
        ("REQUIRED INT32 v (DECIMAL(9,2));", i32s(-150), "-1.50"),
        ("REQUIRED INT64 v (DECIMAL(18,4));", i64s(12), "0.0012"),
        // The value has more digits than the column allows.
        ("REQUIRED INT32 v (DECIMAL(4,2));", i32s(1_234_567), "12345.67"),
        ("REQUIRED BYTE_ARRAY v (DECIMAL(9,1));", bytes(&[Some(&[0xff, 0x00])]), "-25.6"),
        (
            "REQUIRED FIXED_LEN_BYTE_ARRAY(16) v (DECIMAL(38,0));",
            Values::Fixed(vec![Some(u128::MAX.to_be_bytes().into())]),
            "-1",
        ),
        ("REQUIRED FIXED_LEN_BYTE_ARRAY(2) v (FLOAT16);", Values::Fixed(vec![Some(vec![0x00, 0x3e])]), "1.5"),
    ] {
        assert_eq!(forms(schema, values), (text.to_string(), text.to_string()), "{schema}");
    }
}

#[test]
fn every_text_and_time_has_its_text() {
    let mut int96 = Int96::new();
    int96.set_data(1_000_000, 0, 2_440_588);
    // This day is out of range for nanoseconds since 1970.
    let mut first = Int96::new();
    first.set_data(0, 0, 1_721_426);
    let uuid = (0..16).map(|i| i * 17).collect::<Vec<u8>>();
    for (schema, values, text) in [
        ("OPTIONAL BYTE_ARRAY v (UTF8);", bytes(&[Some("é".as_bytes())]), "é"),
        ("OPTIONAL BYTE_ARRAY v (STRING);", bytes(&[Some(b"")]), ""),
        ("OPTIONAL BYTE_ARRAY v (ENUM);", bytes(&[Some(b"RED")]), "RED"),
        ("REQUIRED INT32 v (DATE);", Values::I32(vec![Some(19_782)]), "2024-02-29"),
        ("REQUIRED INT32 v (TIME(MILLIS,true));", Values::I32(vec![Some(1)]), "00:00:00.001"),
        ("REQUIRED INT64 v (TIME(NANOS,false));", Values::I64(vec![Some(60_000_000_000)]), "00:01:00"),
        ("REQUIRED INT64 v (TIMESTAMP(MILLIS,true));", Values::I64(vec![Some(0)]), "1970-01-01T00:00:00Z"),
        (
            "REQUIRED INT64 v (TIMESTAMP(MICROS,false));",
            Values::I64(vec![Some(-1)]),
            "1969-12-31T23:59:59.999999",
        ),
        ("REQUIRED INT64 v (TIMESTAMP_MICROS);", Values::I64(vec![Some(0)]), "1970-01-01T00:00:00Z"),
        ("REQUIRED INT96 v;", Values::I96(vec![Some(int96)]), "1970-01-01T00:00:00.001000000"),
        ("REQUIRED INT96 v;", Values::I96(vec![Some(first)]), "0001-01-01T00:00:00"),
        (
            "REQUIRED FIXED_LEN_BYTE_ARRAY(16) v (UUID);",
            Values::Fixed(vec![Some(uuid)]),
            "00112233-4455-6677-8899-aabbccddeeff",
        ),
    ] {
        assert_eq!(forms(schema, values), (text.to_string(), format!("\"{text}\"")), "{schema}");
    }
}

#[test]
fn binary_stays_binary_alone_and_is_base64_in_json() {
    let file = file(
        "OPTIONAL BYTE_ARRAY a; REQUIRED FIXED_LEN_BYTE_ARRAY(3) b;",
        vec![
            bytes(&[Some(&[0xff, 0]), None]),
            Values::Fixed(vec![Some(vec![0x1f, 2, 0xfe]), Some(vec![9; 3])]),
        ],
    );
    let records = file.read(&options("b", "a")).unwrap();
    assert_eq!(records[0].key.as_deref(), Some(&[0x1f, 2, 0xfe][..]));
    assert_eq!((records[0].value.as_slice(), records[1].value.as_slice()), (&[0xff, 0][..], &[][..]));
    let json = file.texts(&options("", ""));
    assert_eq!(json, pairs(&[("", r#"{"a":"/wA=","b":"HwL+"}"#), ("", r#"{"a":null,"b":"CQkJ"}"#)]));
}

#[test]
fn row_groups_batches_encodings_and_compressions_are_read_in_order() {
    let rows = |from: usize, to: usize| {
        let ids = (from..to).map(|i| Some(i as i64));
        let texts =
            (from..to).map(|i| (!i.is_multiple_of(3)).then(|| format!("value {}", i % 100).into_bytes()));
        vec![Values::I64(ids.collect()), Values::Bytes(texts.collect())]
    };
    let schema = "REQUIRED INT64 id; OPTIONAL BYTE_ARRAY v (UTF8);";
    let base = || WriterProperties::builder().set_data_page_row_count_limit(700).set_write_batch_size(100);
    let with = |compression| base().set_compression(compression).build();
    let plain_as = |encoding| {
        let of_texts = base().set_dictionary_enabled(false).set_column_encoding("v".into(), encoding);
        of_texts.set_column_encoding("id".into(), Encoding::DELTA_BINARY_PACKED).build()
    };
    for properties in [
        with(Compression::UNCOMPRESSED),
        with(Compression::SNAPPY),
        with(Compression::GZIP(GzipLevel::default())),
        with(Compression::ZSTD(ZstdLevel::default())),
        with(Compression::LZ4_RAW),
        with(Compression::BROTLI(Default::default())),
        base().set_dictionary_enabled(false).set_encoding(Encoding::PLAIN).build(),
        base().set_writer_version(WriterVersion::PARQUET_2_0).build(),
        plain_as(Encoding::DELTA_LENGTH_BYTE_ARRAY),
        plain_as(Encoding::DELTA_BYTE_ARRAY),
    ] {
        let groups = vec![rows(0, 2500), rows(2500, 2501), rows(2501, 4000)];
        let records =
            Fixture::new("t.parquet", file_bytes(schema, properties, groups)).texts(&options("id", "v"));
        assert_eq!(records.len(), 4000);
        for (i, (key, value)) in records.iter().enumerate() {
            assert_eq!(*key, i.to_string());
            assert_eq!(*value, if i % 3 > 0 { format!("value {}", i % 100) } else { String::new() });
        }
    }
}

/// A page may have a long value once, and refer to it in every row.
#[test]
fn long_values_of_a_dictionary_are_kept_once() {
    let values = || (0..4000).map(|row| Some(vec![row as u8 % 3; 60_000])).collect();
    let schema = "REQUIRED BYTE_ARRAY a; REQUIRED FIXED_LEN_BYTE_ARRAY(60000) b;";
    let properties = WriterProperties::builder().set_dictionary_page_size_limit(1 << 20).build();
    let groups = vec![vec![Values::Bytes(values()), Values::Fixed(values())]];
    let file = Fixture::new("t.parquet", file_bytes(schema, properties, groups));
    for column in ["a", "b"] {
        let records = file.read(&options("", column)).unwrap();
        assert_eq!(records.len(), 4000);
        assert!(records.iter().enumerate().all(|(row, record)| record.value == [row as u8 % 3; 60_000]));
    }
}

#[test]
fn values_of_fixed_length_that_are_too_long_are_refused() {
    for length in [0, 16_777_217] {
        let none =
            file(&format!("OPTIONAL FIXED_LEN_BYTE_ARRAY({length}) v;"), vec![Values::Fixed(vec![None])]);
        let message = none.error(&options("", "v"));
        assert!(
            message.contains("the column \"v\" is of values of no bytes, or of more than 16 MiB"),
            "{message}"
        );
    }
}

#[test]
fn intervals_are_refused() {
    let interval =
        file("REQUIRED FIXED_LEN_BYTE_ARRAY(12) v (INTERVAL);", vec![Values::Fixed(vec![Some(vec![0; 12])])]);
    assert!(interval.error(&IngestOptions::default()).contains("the column \"v\" is an interval"));
}

#[test]
fn long_values_are_kept() {
    let long = vec![0xa5; 65_536];
    let records =
        file("REQUIRED BYTE_ARRAY v;", vec![bytes(&[Some(&long)])]).read(&options("", "v")).unwrap();
    assert_eq!(records[0].value, long);
}

#[test]
fn bad_utf8_and_empty_files_are_refused() {
    let bad = file("REQUIRED BYTE_ARRAY v (UTF8);", vec![bytes(&[Some(b"ok"), Some(b"\xff")])]);
    assert_eq!(
        bad.error(&IngestOptions::default()),
        "t.parquet, row 2, column \"v\": not valid UTF-8; correct this text, or leave the column out with 'value'; \
         'sql' can read it as bytes: CAST(column AS BLOB)"
    );
    for groups in [vec![], vec![vec![Values::I32(vec![])]]] {
        let empty = file_bytes("REQUIRED INT32 v;", WriterProperties::default(), groups);
        let message = Fixture::new("t.parquet", empty).error(&IngestOptions::default());
        assert_eq!(message, "t.parquet: no records; a table needs at least one");
    }
}

/// Without the check the reader would allocate as much memory as such a file states.
#[test]
fn sizes_that_nothing_is_behind_are_refused() {
    for (version, encoding) in [
        (WriterVersion::PARQUET_1_0, Encoding::DELTA_LENGTH_BYTE_ARRAY),
        (WriterVersion::PARQUET_2_0, Encoding::DELTA_BYTE_ARRAY),
    ] {
        let properties = WriterProperties::builder().set_writer_version(version);
        let properties = properties.set_dictionary_enabled(false).set_encoding(encoding).build();
        let values = vec![bytes(&[Some(b"a"), None, Some(b"b")])];
        let mut file = file_bytes("OPTIONAL BYTE_ARRAY v (UTF8);", properties, vec![values]);
        // The page has blocks of 128 lengths in 4 parts, two lengths in all. A greater number replaces the count and the first
        // length.
        let at = file.windows(4).position(|bytes| bytes == [0x80, 1, 4, 2]).unwrap();
        file[at + 3..at + 5].copy_from_slice(&[0xff, 0x7f]);
        let message = Fixture::new("t.parquet", &file).error(&options("", "v"));
        assert!(message.contains("a page has 16383 lengths of values, at most 3 are possible"), "{message}");
    }
}

/// The metadata has a long list of booleans, which the reader would count one by one, and nested groups.
#[test]
fn metadata_that_would_keep_the_reader_busy_is_refused() {
    let with_metadata = |metadata: &[u8]| {
        let length = (metadata.len() as u32).to_le_bytes();
        Fixture::new("t.parquet", [b"PAR1", metadata, &length, b"PAR1"].concat()).error(&options("", ""))
    };
    let list = with_metadata(&[0x15, 2, 0xe9, 0xf1, 0xff, 0xff, 0xff, 0xff, 7, 0]);
    assert_eq!(list, "t.parquet: cannot read as Parquet: Parquet error: its metadata has a list of booleans");
    let nested = with_metadata(&[&[0xfc][..], &[0x1c; 1 << 16]].concat());
    assert_eq!(nested, "t.parquet: cannot read as Parquet: Parquet error: its metadata is nested too deep");
    // The reader would take this text for the number that should be here.
    let text = with_metadata(&[0x18, 2, b'a', b'b', 0]);
    assert_eq!(
        text,
        "t.parquet: cannot read as Parquet: Parquet error: its metadata has a field of another type"
    );
    // The groups of a schema stand one behind the other, each within the last.
    let group = [0x35, 0, 0x18, 1, b'g', 0x15, 2, 0];
    let schema = [&[0x15, 2, 0x19, 0xfc, 0xa0, 0x8d, 6][..], &group.repeat(100_000), &[0]].concat();
    let deep = with_metadata(&schema);
    assert_eq!(deep, "t.parquet: cannot read as Parquet: Parquet error: the schema is nested too deep");
}

#[test]
fn damaged_files_are_errors() {
    let bytes = fs::read(small().path).unwrap();
    for wrong in ["", "PAR1", "k,v\n1,2\n"] {
        let message = Fixture::new("t.parquet", wrong).error(&IngestOptions::default());
        assert!(message.starts_with("t.parquet: cannot read as Parquet: "), "{message}");
    }
    // Damage may also change names, values or texts into others.
    let is_refused = |bytes: &[u8]| {
        matches!(Fixture::new("t.parquet", bytes).read(&options("id", "")), Err(IngestError::Parquet { .. }))
    };
    assert!((0..bytes.len()).step_by(7).all(|size| is_refused(&bytes[..size])));
    let mut refused = 0;
    for at in (0..bytes.len()).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        refused += usize::from(is_refused(&damaged));
    }
    assert!(refused > bytes.len() / 12);
}
