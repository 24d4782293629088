//! Tests of Arrow IPC.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray,
    DurationSecondArray, FixedSizeBinaryArray, Float32Array, Float64Array, Int8Array, Int64Array,
    LargeStringArray, ListArray, NullArray, RecordBatch, StringArray, StringViewArray, StructArray,
    Time32SecondArray, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampSecondArray, UInt64Array,
    builder::{Int32Builder, MapBuilder, StringBuilder},
    types::{Int8Type, Int32Type},
};
use arrow_ipc::{
    CompressionType,
    writer::{FileWriter, IpcWriteOptions, StreamWriter},
};
use arrow_schema::{DataType, Field, Schema};
use hush_ingest::IngestError;

use crate::{Fixture, IngestOptions, compression, options, pairs};

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let nullable = columns.into_iter().map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(nullable).unwrap()
}

fn stream_of(batches: &[RecordBatch], compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn file_of(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn rows() -> RecordBatch {
    batch(vec![
        ("id", Arc::new(Int64Array::from(vec![1, 2]))),
        ("name", Arc::new(StringArray::from(vec!["a", "b"]))),
        ("note", Arc::new(StringArray::from(vec![Some("x"), None]))),
    ])
}

pub(crate) fn small() -> Vec<Fixture> {
    let (first, second) = (rows().slice(0, 1), rows().slice(1, 1));
    vec![
        Fixture::new("t.arrow", file_of(&rows())),
        Fixture::new("t.arrows", stream_of(&[first.clone(), second], None)),
        Fixture::new("t.feather", stream_of(&[first.slice(0, 0), rows()], Some(CompressionType::ZSTD))),
        Fixture::new(
            "t.arrows.gz",
            compression::gzip(stream_of(&[rows()], Some(CompressionType::LZ4_FRAME))),
        ),
    ]
}

#[test]
fn every_type_has_its_one_form() {
    let cases: Vec<(ArrayRef, &str, &str)> = vec![
        (Arc::new(BooleanArray::from(vec![true])), "true", "true"),
        (Arc::new(Int8Array::from(vec![-128])), "-128", "-128"),
        (Arc::new(UInt64Array::from(vec![u64::MAX])), "18446744073709551615", "18446744073709551615"),
        (Arc::new(Float32Array::from(vec![0.1])), "0.1", "0.1"),
        (Arc::new(Float64Array::from(vec![1e21])), "1e+21", "1e+21"),
        (Arc::new(Float64Array::from(vec![f64::NAN])), "NaN", "\"NaN\""),
        (
            Arc::new(Decimal128Array::from(vec![-150]).with_precision_and_scale(9, 2).unwrap()),
            "-1.50",
            "-1.50",
        ),
        (Arc::new(LargeStringArray::from(vec!["é\""])), "é\"", "\"é\\\"\""),
        (
            Arc::new(StringViewArray::from(vec!["a text longer than a view"])),
            "a text longer than a view",
            "\"a text longer than a view\"",
        ),
        (Arc::new(BinaryArray::from(vec![&b"ab"[..]])), "ab", "\"YWI=\""),
        (Arc::new(FixedSizeBinaryArray::try_from_iter(["ab"].into_iter()).unwrap()), "ab", "\"YWI=\""),
        (Arc::new(Date32Array::from(vec![19_782])), "2024-02-29", "\"2024-02-29\""),
        (Arc::new(Date64Array::from(vec![-1])), "1969-12-31", "\"1969-12-31\""),
        (Arc::new(Time32SecondArray::from(vec![43_200])), "12:00:00", "\"12:00:00\""),
        (Arc::new(Time64MicrosecondArray::from(vec![250_000])), "00:00:00.250000", "\"00:00:00.250000\""),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![250_000])),
            "1970-01-01T00:00:00.250000",
            "\"1970-01-01T00:00:00.250000\"",
        ),
        (
            Arc::new(TimestampSecondArray::from(vec![1_709_208_000]).with_timezone("Asia/Kathmandu")),
            "2024-02-29T12:00:00Z",
            "\"2024-02-29T12:00:00Z\"",
        ),
        (Arc::new(DictionaryArray::<Int8Type>::from_iter(["b", "a"]).slice(1, 1)), "a", "\"a\""),
        (Arc::new(NullArray::new(1)), "", "null"),
        (
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None])])),
            "[1,null]",
            "[1,null]",
        ),
    ];
    for (array, alone, member) in cases {
        let kind = array.data_type().clone();
        let one = Arc::new(Int64Array::from(vec![1]));
        let file = Fixture::new("t.arrows", stream_of(&[batch(vec![("k", one), ("v", array)])], None));
        assert_eq!(file.texts(&options("k", "")), pairs(&[("1", alone)]), "{kind}");
        let object = format!("{{\"k\":1,\"v\":{member}}}");
        assert_eq!(file.texts(&options("k", "k,v")), pairs(&[("1", &object)]), "{kind}");
    }
}

#[test]
fn nested_columns_are_as_those_of_parquet() {
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("a \"b\"");
    map.values().append_value(1);
    map.append(true).unwrap();
    map.append(false).unwrap();
    let inner: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None]));
    let field = Arc::new(Field::new("n", inner.data_type().clone(), true));
    let outer = StructArray::from(vec![(field, inner)]);
    let id = Arc::new(Int64Array::from(vec![1, 2]));
    let content =
        stream_of(&[batch(vec![("id", id), ("s", Arc::new(outer)), ("m", Arc::new(map.finish()))])], None);
    let file = Fixture::new("t.arrows", content);
    assert_eq!(file.texts(&options("id", "s.n")), pairs(&[("1", "7"), ("2", "")]));
    assert_eq!(file.texts(&options("id", "s")), pairs(&[("1", "{\"n\":7}"), ("2", "{\"n\":null}")]));
    assert_eq!(file.texts(&options("id", "m")), pairs(&[("1", "{\"a \\\"b\\\"\":1}"), ("2", "")]));
    assert!(file.error(&options("x", "")).ends_with("the columns are \"id\", \"s.n\", \"m\""));
    let time = Arc::new(DurationSecondArray::from(vec![1]));
    let file = Fixture::new("t.arrows", stream_of(&[batch(vec![("t", time)])], None));
    assert!(
        file.error(&options("", "t")).contains("the column \"t\" is a duration, which cannot be looked up")
    );
}

#[test]
fn uuids_are_text() {
    let bytes: Vec<u8> = (0..16).map(|byte| byte * 0x11).collect();
    let array = FixedSizeBinaryArray::try_from_iter([bytes].into_iter()).unwrap();
    let name = [("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())];
    let field = Field::new("u", DataType::FixedSizeBinary(16), false).with_metadata(name);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(array)]).unwrap();
    let file = Fixture::new("t.arrows", stream_of(&[batch], None));
    assert_eq!(file.texts(&options("", "u")), pairs(&[("", "00112233-4455-6677-8899-aabbccddeeff")]));
}

/// The vectors are made by `arrow/make.py`.
#[test]
fn streams_of_other_writers_are_read() {
    for (name, content) in [
        ("pyarrow.arrows", &include_bytes!("arrow/pyarrow.arrows")[..]),
        ("polars.arrow", include_bytes!("arrow/polars.arrow")),
    ] {
        let records = Fixture::new(name, content).texts(&options("k", ""));
        assert_eq!(
            records,
            pairs(&[
                (
                    "a",
                    r#"{"n":1,"x":0.5,"c":"red","d":"2024-02-29","t":"2024-02-29T12:00:00.250000Z","l":[1,2]}"#
                ),
                ("b", r#"{"n":null,"x":null,"c":"blue","d":null,"t":null,"l":null}"#),
                ("é", r#"{"n":3,"x":1e+21,"c":"red","d":"1969-12-31","t":"1970-01-01T00:00:00Z","l":[]}"#),
            ]),
            "{name}"
        );
    }
}

#[test]
fn streams_that_are_cut_off_are_refused() {
    let content = stream_of(&[rows(), rows()], None);
    for length in 0..content.len() {
        let error = Fixture::new("t.arrows", &content[..length]).read(&options("", "")).unwrap_err();
        assert!(
            error.to_string().contains("t.arrows: cannot read as Arrow: the stream ends too soon"),
            "{error}"
        );
    }
    let message =
        Fixture::new("t.arrows", [&content[..], &content].concat()).error(&IngestOptions::default());
    assert!(message.ends_with("there is more behind the end of the stream; give one stream"), "{message}");
    let file = file_of(&rows());
    for length in 0..file.len() {
        let error = Fixture::new("t.arrow", &file[..length]).read(&options("", "")).unwrap_err().to_string();
        assert!(error.contains("t.arrow: cannot read as Arrow: "), "{error}");
    }
    let text = Fixture::new("t.arrows", "id,name\n1,a\n").error(&IngestOptions::default());
    assert_eq!(text, "t.arrows: cannot read as Arrow: it is no stream of Arrow IPC");
}

#[test]
fn damaged_streams_are_errors_or_other_records() {
    let words = DictionaryArray::<Int8Type>::from_iter(["b", "a"]);
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None]), None]);
    let rows = [batch(vec![
        ("k", Arc::new(StringArray::from(vec!["a", "b"]))),
        ("w", Arc::new(words)),
        ("l", Arc::new(lists)),
    ])];
    for content in [
        stream_of(&rows, None),
        stream_of(&rows, Some(CompressionType::ZSTD)),
        stream_of(&rows, Some(CompressionType::LZ4_FRAME)),
        file_of(&rows[0]),
    ] {
        for at in (0..content.len()).step_by(3) {
            let mut damaged = content.clone();
            damaged[at] ^= 1 << (at % 8);
            let file = Fixture::new("t.arrows", damaged);
            let source = hush_ingest::open(&file.path.as_os_str().into(), &options("", "k,w,l"));
            // A damaged stream may give anything but a panic.
            let _ = source.map(|source| source.take(1000).count());
        }
    }
}

#[test]
fn lengths_that_a_stream_states_take_no_memory() {
    let ids = batch(vec![("id", Arc::new(Int64Array::from(vec![7; 1000])))]);
    let content = stream_of(&[ids], Some(CompressionType::ZSTD));
    // The decompressed length of the ids stands in front of a frame.
    let head = [&8000u64.to_le_bytes()[..], &[0x28, 0xb5, 0x2f, 0xfd]].concat();
    let at = content.windows(12).position(|window| window == head);
    for length in [1u64 << 40, i64::MAX as u64] {
        let mut damaged = content.clone();
        damaged[at.unwrap()..][..8].copy_from_slice(&length.to_le_bytes());
        let error = Fixture::new("t.arrows", damaged).read(&options("", "id")).unwrap_err();
        assert!(
            error.to_string().ends_with("a buffer is to be longer than it can be; write the stream again")
        );
    }
    let mut metadata = content.clone();
    metadata[4..8].copy_from_slice(&i32::MAX.to_le_bytes());
    assert!(matches!(
        Fixture::new("t.arrows", metadata).read(&options("", "")),
        Err(IngestError::Arrow { .. })
    ));
}
