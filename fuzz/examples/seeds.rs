//! Writes the inputs that targets start from to `corpus/`: small, most of them taken by their decoder. Those that found bugs
//! stay as they are.
//!
//! `cargo run -p hush-fuzz --example seeds`

use std::{collections::HashSet, fs, path::Path, sync::Arc};

use hush_fuzz::{client::STATUS, sample};
use hush_he::params::INSECURE_RING_N256;
use hush_protocol::{
    Protocol,
    descriptor::{Descriptor, Lookup},
    facts::DB_FILE,
    ring_keys::RingKeys,
    sorted::{fences, found::range_value, leaf::LeafWriter, order::SortOrder},
    wire::{Answer, EvaluationKeys, Query, QueryRequest, QueryResponse, VERSION},
};
use hush_store::snapshot::{CHUNK_BYTES, FORMAT_VERSION, FileEntry, Header, Identity, State};
use parquet::{
    basic::{Compression, Encoding},
    data_type::{
        BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
        FloatType, Int32Type, Int64Type, Int96, Int96Type,
    },
    file::{
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};
use prost::Message;
use rusqlite::Connection;

use negative_vectors::{Negative, negatives};

#[path = "../../vectors/negatives.rs"]
mod negative_vectors;

/// The longest negative vector that is an input. Those that are longer have long runs of the same.
const MAX_NEGATIVE_BYTES: usize = 1000;

fn write(target: &str, name: &str, content: impl AsRef<[u8]>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), content).unwrap();
}

/// Choices of an input, then what the decoder reads.
fn input(choices: &[u8], content: impl AsRef<[u8]>) -> Vec<u8> {
    [choices, content.as_ref()].concat()
}

/// Returns the bytes behind their number.
fn piece(content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    input(&(content.len() as u16).to_le_bytes(), content)
}

fn main() {
    messages();
    descriptors();
    compressed();
    sorted();
    servers();
    headers();
    texts();
    parquets();
    databases();
    folders();
    snapshots();
    negative_seeds();
}

fn negative_seeds() {
    negatives_of("query_request", "query_request", |_| Some(Vec::new()));
    negatives_of("evaluation_keys", "evaluation_keys", |_| Some(Vec::new()));
    negatives_of("descriptor", "descriptor", |_| Some(vec![0]));
    negatives_of("url", "server_url", |_| Some(Vec::new()));
    negatives_of("tables", "problem", |_| Some(vec![0, 0]));
    negatives_of("problem", "problem", |vector| {
        let status =
            STATUS.iter().position(|status| vector.number("status") == Some(usize::from(*status)))?;
        Some(vec![status as u8, 0])
    });
    negatives_of("values", "fields", |vector| vector.name.starts_with("values: fields").then_some(vec![1]));
    negatives_of("values", "sorted", |vector| {
        let choices = [&[0, 0, 0, 1][..], &piece([0; 3]), &piece(""), &piece("b")].concat();
        vector.name.starts_with("values: leaf").then_some(choices)
    });
    negatives_of("values", "compressed", |vector| {
        let dictionary = vector.blobs.values().max_by_key(|content| content.len())?;
        vector.name.starts_with("values: compressed").then(|| piece(dictionary))
    });
}

/// Writes negative vectors of a format: the first of every verdict and reason for which there are `choices`.
fn negatives_of(format: &str, target: &str, choices: impl Fn(&Negative) -> Option<Vec<u8>>) {
    let mut seen = HashSet::new();
    for vector in negatives(format) {
        let Some(choices) = choices(&vector).filter(|_| vector.input.len() <= MAX_NEGATIVE_BYTES) else {
            continue;
        };
        let verdict = if vector.is_valid { "valid" } else { "invalid" };
        if seen.insert((vector.is_valid, vector.reason.clone())) {
            let name = format!("negative-{format}-{verdict}-{}", vector.reason);
            write(target, &name, input(&choices, &vector.input));
        }
    }
}

fn messages() {
    let epoch = || vec![7; 32].into();
    let query = Query {
        first: vec![1, 2, 3, 4].into(),
        second: vec![5, 6].into(),
        packed: vec![7, 8, 9].into(),
        key_id: vec![10].into(),
    };
    for count in [1, 3] {
        let queries = vec![query.clone(); count];
        let request = QueryRequest { version: VERSION, epoch: epoch(), protocol: "simple".into(), queries };
        write("query_request", &format!("queries-{count}"), request.encode_to_vec());
    }
    write("query_request", "empty-entries", [0x22, 0].repeat(100));
    let answers = (0..3).map(|at| Answer { words: vec![at; 5].into() }).collect();
    let response = QueryResponse { version: VERSION, epoch: epoch(), answers };
    write("query_response", "answers", response.encode_to_vec());
    write("query_response", "empty-entries", [0x1a, 0].repeat(100));
    let keys = EvaluationKeys {
        version: VERSION,
        preset: "toy".into(),
        seed: vec![1; 32].into(),
        words: vec![3, 4, 5].into(),
    };
    write("evaluation_keys", "toy", keys.encode_to_vec());
    write("packed_words", "bits-20", input(&[19], (0..60).collect::<Vec<u8>>()));
    write("packed_words", "bits-64", input(&[63], [0xff; 33]));
    let upload = RingKeys::from_seed(&INSECURE_RING_N256, &[1; 32]);
    for kind in 0..4u8 {
        write("queries", &format!("zeros-{kind}"), [kind]);
        write("queries", &format!("ones-{kind}"), input(&[kind, 100, 0], [0xff; 40]));
    }
    write("queries", "head-of-keys", input(&[2, 0, 0], &upload.upload()[..60]));
    write("queries", "short", input(&[0x80], [0; 10]));
    for (at, descriptor) in sample::descriptors().iter().enumerate() {
        let by = match &descriptor.lookup {
            Lookup::Index => "index",
            Lookup::Key(_) => "key",
            Lookup::Position(_) => "tiers",
        };
        write("answers", &format!("{}-{by}", descriptor.protocol), input(&[at as u8], [at as u8 * 3; 8]));
    }
    write("answers", "short", input(&[0x80], [0; 3]));
}

fn descriptors() {
    for descriptor in sample::descriptors() {
        let by = match &descriptor.lookup {
            Lookup::Index => "index",
            Lookup::Key(_) => "key",
            Lookup::Position(_) => "tiers",
        };
        write("descriptor", &format!("{}-{by}", descriptor.protocol), input(&[1], descriptor.to_json()));
    }
    let large = Descriptor {
        preset: "COLPACK_N2048_Q52".into(),
        ..sample::descriptor(Protocol::Colpack, Lookup::Index)
    };
    write("descriptor", "colpack-secure", input(&[1], large.to_json()));
    write(
        "descriptor",
        "unsealed",
        input(&[0], sample::descriptor(Protocol::Simple, Lookup::Index).to_json()),
    );
}

/// Values of much the same text, and one that is longer than it says.
fn sorted() {
    let built = fences::built_text([&b""[..], b"b", b"d"]);
    let added = fences::added_text([(&b"c"[..], Some(3))]);
    let mut leaf = LeafWriter::default();
    for (key, value) in [("ant", "1"), ("bee", ""), ("beetle", "3")] {
        leaf.push(key.as_bytes(), value.as_bytes());
    }
    let leaf = leaf.finish();
    for by in 0..5 {
        let content = [piece(&built), piece(&added), piece("bee"), leaf.clone()].concat();
        write("sorted", &format!("match-{by}"), input(&[0, 0, by, 1], content));
    }
    let key = |text: &str| SortOrder::Ip.encode(text.as_bytes()).unwrap();
    let [first, last] = ["10.0.0.0", "10.255.255.255"].map(key);
    let mut leaf = LeafWriter::default();
    leaf.push(&first, &range_value(&first, &first, &last, b"x"));
    let content =
        [piece(fences::built_text([&b""[..]])), piece(""), piece("10.1.2.3"), leaf.finish()].concat();
    write("sorted", "network", input(&[2, 1, 4, 1], content));
}

fn compressed() {
    let texts: Vec<_> =
        (0..400).map(|i| format!("a private look-up of record {i} in table {}", i % 7)).collect();
    let dictionary = zstd::dict::from_samples(&texts, 1500).unwrap();
    for (name, text) in
        [("short", "a private look-up of record 7 in table 0".to_owned()), ("long", texts.concat())]
    {
        let mut compressor = zstd::bulk::Compressor::with_dictionary(9, &dictionary).unwrap();
        compressor.include_dictid(false).unwrap();
        let frame = compressor.compress(&text.as_bytes()[..text.len().min(4000)]).unwrap();
        write("compressed", name, [piece(&dictionary), frame[4..].to_vec()].concat());
    }
    let bomb = [&[0x20, 4][..], &[0b10, 0, 16, 9], &[0b11, 0, 16, 9]].concat();
    write("compressed", "bomb", [piece(&dictionary), bomb].concat());
}

fn servers() {
    let busy = r#"{"code":"warming","detail":"the table is still loading"}"#;
    let with_header = input(&piece("5"), busy);
    write("problem", "busy", input(&[2, 1], with_header));
    write(
        "problem",
        "refused",
        input(&[4, 0], r#"{"code":"not_found","detail":"there is no such endpoint"}"#),
    );
    write("problem", "device-lost", input(&[2, 0], r#"{"code":"device_lost","detail":"a GPU"}"#));
    let gone = sample::descriptor(Protocol::Simple, Lookup::Index).to_json();
    let gone = [&br#"{"code":"epoch_gone","detail":"gone","descriptor":"#[..], &gone, b"}"].concat();
    write("problem", "epoch-gone", input(&[1, 0], &gone));
    write("problem", "moved", input(&[10, 2], [piece(""), piece("http://localhost:7701")].concat()));
    let list =
        r#"{"tables":[{"name":"t","state":"resident","epoch":"00","protocol":"simple","records":24}]}"#;
    write("problem", "list", input(&[0, 0], list));

    write("session", "right", [0; 8]);
    write("session", "part-of-the-hint", input(&[1], piece(&sample::hint(50)[..])));
    write("session", "another-hint", input(&[1], piece([9; 70])));
    write("session", "lost", [0, 0, 2, 0, 2, 0, 2, 0]);
    write("session", "spoilt-hint", input(&[0, 0, 0, 3, 5, 0], piece([1, 2, 3])));
    write("session", "cut", input(&[0, 0, 0], [4, 20, 0, 4, 30, 0, 0, 0]));
    let made_up = |status: u8, body: &[u8]| input(&[1, status, 0], piece(body));
    write("session", "gone", input(&[0, 0, 0, 0], made_up(1, &gone)));
    write("session", "list", input(&[0], made_up(0, list.as_bytes())));
    let descriptor = sample::descriptor(Protocol::Frodo, Lookup::Index).to_json();
    write("session", "another-table", input(&[0, 0], made_up(0, &descriptor)));

    write("client_cache", "good-seed", input(&[0], [piece(""), piece("hint")].concat()));
    write(
        "client_cache",
        "spoilt-seed",
        input(&[0], [piece([0, 0, 0, 0, 0, 0, 0, 0, 1]), piece("hint")].concat()),
    );
    write("client_cache", "another-seed", input(&[1], [piece([7; 80]), piece("hint")].concat()));
    write("client_cache", "whole-hint", input(&[2], [piece(""), piece("hint")].concat()));
    write("client_cache", "damaged-hint", input(&[6], [piece(""), piece("hint"), b"part".to_vec()].concat()));
    write("client_cache", "part", input(&[4], [piece(""), piece("hint"), b"part".to_vec()].concat()));
}

fn headers() {
    for (name, url) in [
        ("plain", "http://localhost:7700"),
        ("path", "https://Hush.Example:443/db/"),
        ("ipv6", "http://[::1]:80"),
        ("query", "http://a/?b#c"),
    ] {
        write("server_url", name, url);
    }
    for (name, kind, range) in [
        ("both", 0x40, "bytes=2-5"),
        ("from", 0x41, "bytes=7-"),
        ("last", 0x10, "Bytes = -3"),
        ("several", 0xf0, "bytes=1-2,4-"),
        ("large", 0xf0, "bytes=0-99999999999999999999"),
    ] {
        write("range", name, input(&[kind], range));
    }
    write("range", "another-tag", input(&[0x42], [piece("\"4567\""), b"bytes=2-5".to_vec()].concat()));
    write("keys_file", "lines", "alice\nbob\r\n\n18446744073709551615\n-1");
    write("keys_file", "bytes", b"\xff\t\\x\x1b[31m\xc2\x85\n\0");
}

/// Keys alone, keys and values, values alone, short values.
const CHOICES: [u8; 6] = [0b1010, 0b0001, 0b0100, 0b0000, 0b11010, 0b0110];

fn texts() {
    for choice in CHOICES {
        let csv = "k,v,w\na,1,x\nb,\"2,\"\"\n3\",\nc,\u{e9},\"\"\n";
        write("csv", &format!("quotes-{choice}"), input(&[choice], csv));
        let jsonl = "{\"k\":\"a\",\"v\":1,\"w\":\"x\"}\n\n{\"v\": [1, {\"a\": null}], \"k\":true,\"w\":\"\\u00e9\\n\"}\r\n";
        write("jsonl", &format!("values-{choice}"), input(&[choice], jsonl));
        let array = jsonl.trim_end().replacen("\n\n", ",\n\n", 1);
        write("jsonl", &format!("array-{choice}"), input(&[choice], format!("[{array}]")));
    }
    write("csv", "mark", input(&[0b1010], b"\xef\xbb\xbfk,v\r\na,1\r\n"));
    write("csv", "open-quote", input(&[0b1010], "k,v\na,\"1\n"));
    write(
        "jsonl",
        "numbers",
        input(&[0b0100], "{\"v\":1e400,\"w\":-0.0}\n{\"v\":123456789012345678901,\"w\":1.0}"),
    );
}

fn parquets() {
    let file = |schema: &str, compression, fill: &dyn Fn(&mut SerializedRowGroupWriter<'_, Vec<u8>>)| {
        let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
        let properties =
            WriterProperties::builder().set_compression(compression).set_created_by("x".into()).build();
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        fill(&mut group);
        group.close().unwrap();
        writer.into_inner().unwrap()
    };
    let three = "REQUIRED BYTE_ARRAY k (UTF8); OPTIONAL INT64 v; OPTIONAL BYTE_ARRAY w (UTF8);";
    let text = |text: &str| ByteArray::from(text);
    let fill = |group: &mut SerializedRowGroupWriter<'_, Vec<u8>>| {
        column::<ByteArrayType>(group, &[text("a"), text("b"), text("a")], None);
        column::<Int64Type>(group, &[1, 2], Some(&[1, 0, 1]));
        column::<ByteArrayType>(group, &[text("x")], Some(&[0, 1, 0]));
    };
    for choice in CHOICES {
        let content = file(three, Compression::UNCOMPRESSED, &fill);
        write("parquet", &format!("three-{choice}"), input(&[choice], content));
    }
    for (name, compression) in [
        ("snappy", Compression::SNAPPY),
        ("gzip", Compression::GZIP(Default::default())),
        ("lz4", Compression::LZ4_RAW),
        ("zstd", Compression::ZSTD(Default::default())),
        ("brotli", Compression::BROTLI(Default::default())),
    ] {
        write("parquet", name, input(&[0b1010], file(three, compression, &fill)));
    }
    let one = |name: &str, kind: &str, fill: &dyn Fn(&mut SerializedRowGroupWriter<'_, Vec<u8>>)| {
        let schema = format!("REQUIRED {kind};");
        write("parquet", name, input(&[0b1000], file(&schema, Compression::UNCOMPRESSED, fill)));
    };
    one("bool", "BOOLEAN v", &|group| column::<BoolType>(group, &[true, false], None));
    one("date", "INT32 v (DATE)", &|group| column::<Int32Type>(group, &[i32::MIN, i32::MAX], None));
    one("decimal", "INT32 v (DECIMAL(9,2))", &|group| column::<Int32Type>(group, &[-5], None));
    one("unsigned", "INT32 v (INTEGER(32,false))", &|group| column::<Int32Type>(group, &[-1], None));
    one("time", "INT64 v (TIME(MICROS,true))", &|group| column::<Int64Type>(group, &[-1, i64::MAX], None));
    one("timestamp", "INT64 v (TIMESTAMP(MILLIS,true))", &|group| {
        column::<Int64Type>(group, &[i64::MIN], None)
    });
    one("float", "FLOAT v", &|group| column::<FloatType>(group, &[f32::NAN, 0.1], None));
    one("double", "DOUBLE v", &|group| column::<DoubleType>(group, &[-0.0, 1e300], None));
    one("int96", "INT96 v", &|group| {
        let mut value = Int96::new();
        value.set_data(u32::MAX, u32::MAX, 2_440_588);
        column::<Int96Type>(group, &[value], None);
    });
    let fixed = |bytes: Vec<u8>| FixedLenByteArray::from(ByteArray::from(bytes));
    one("uuid", "FIXED_LEN_BYTE_ARRAY(16) v (UUID)", &|group| {
        column::<FixedLenByteArrayType>(group, &[fixed(vec![9; 16])], None);
    });
    one("float16", "FIXED_LEN_BYTE_ARRAY(2) v (FLOAT16)", &|group| {
        column::<FixedLenByteArrayType>(group, &[fixed(vec![0, 0x7e])], None);
    });
    for (name, encoding) in
        [("delta-length", Encoding::DELTA_LENGTH_BYTE_ARRAY), ("delta", Encoding::DELTA_BYTE_ARRAY)]
    {
        let schema = Arc::new(parse_message_type("message m { OPTIONAL BYTE_ARRAY v (UTF8); }").unwrap());
        let properties = WriterProperties::builder().set_dictionary_enabled(false).set_encoding(encoding);
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).unwrap();
        let mut group = writer.next_row_group().unwrap();
        column::<ByteArrayType>(&mut group, &[text("abc"), text("abd")], Some(&[1, 0, 1]));
        group.close().unwrap();
        write("parquet", name, input(&[0b1000], writer.into_inner().unwrap()));
    }
}

/// Writes the next column of a row group.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[T::T],
    levels: Option<&[i16]>,
) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(values, levels, None).unwrap();
    column.close().unwrap();
}

fn databases() {
    let file = |sql: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        Connection::open(&path).unwrap().execute_batch(&format!("PRAGMA page_size = 512; {sql}")).unwrap();
        fs::read(path).unwrap()
    };
    let three =
        "CREATE TABLE t (k, v, w); INSERT INTO t VALUES ('a', 1, 'x'), (2.5, X'00ff', NULL), ('', -1, 'y')";
    for choice in CHOICES {
        write("sqlite", &format!("three-{choice}"), input(&[choice], file(three)));
    }
    let keyed =
        "CREATE TABLE t (k TEXT PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO t VALUES ('a', 1), ('b', 2)";
    write("sqlite", "without-row-ids", input(&[0b1010], file(keyed)));
    let long = "CREATE TABLE t (k, v); INSERT INTO t VALUES ('a', zeroblob(2000)), ('b', 1)";
    write("sqlite", "overflow-pages", input(&[0b1010], file(long)));
    let view = "CREATE VIEW s AS SELECT 'a' AS k, 1 AS v UNION ALL SELECT 'b', 2";
    write("sqlite", "view", input(&[0b1010], file(view)));
    write(
        "sqlite",
        "utf16",
        input(
            &[0b1010],
            file("PRAGMA encoding = 'UTF-16'; CREATE TABLE t (k, v); INSERT INTO t VALUES ('é', 'x')"),
        ),
    );
}

fn folders() {
    let entry = |kind: u8, name: &str, content: &str| [vec![kind], piece(name), piece(content)].concat();
    write(
        "folder",
        "files",
        input(&[0], [entry(2, "a", "1"), entry(2, "sub/b", "2"), entry(2, "\u{e9}", "")].concat()),
    );
    write(
        "folder",
        "links",
        input(&[0], [entry(2, "a", "1"), entry(0, "b", "a"), entry(0, "c", ".")].concat()),
    );
    let empty = [vec![1], piece("empty")].concat();
    write("folder", "empty", input(&[0x10], [empty, entry(2, "a", "longer than is allowed")].concat()));
}

fn snapshots() {
    let files = |descriptor: &Descriptor| {
        let specs = descriptor.params().unwrap().files();
        let entries = specs.iter().map(|spec| FileEntry {
            name: spec.name.parse().unwrap(),
            bytes: spec.content.bytes(),
            chunk_bytes: CHUNK_BYTES as u64,
            chunks: Vec::new(),
        });
        entries.collect::<Vec<_>>()
    };
    let header = |descriptor: Descriptor| {
        let files = files(&descriptor);
        Header {
            version: FORMAT_VERSION,
            written_by: "test".into(),
            descriptor,
            payload_bytes: 1,
            source: "t.csv".into(),
            followed: None,
            choice: None,
            changes: None,
            objects: Default::default(),
            files,
        }
    };
    for protocol in Protocol::ALL {
        let header = header(sample::descriptor(*protocol, Lookup::Index));
        let text = serde_json::to_string(&header).unwrap();
        write("snapshot", &protocol.to_string(), input(&[2], input(&piece(&text), [1; 100])));
        if *protocol == Protocol::Simple {
            write("snapshot", "enveloped", input(&[1], piece(&text)));
            write("snapshot", "bare", input(&[0], piece(format!("{{\"blake3\":\"00\",\"body\":{text}}}"))));
        }
    }
    let database = FileEntry {
        name: DB_FILE.parse().unwrap(),
        bytes: 3,
        chunk_bytes: CHUNK_BYTES as u64,
        chunks: Vec::new(),
    };
    let identity = Identity { program: "test 1".into(), options: "none".into(), records: [1; 32] };
    let state = State {
        identity,
        descriptor: sample::descriptor(Protocol::Colpack, Lookup::Index),
        choice: None,
        changes: None,
        files: vec![database],
    };
    let text = serde_json::to_string(&state).unwrap();
    let journal = [[3, 0, 0, 0, 0, 0, 0, 0].as_slice(), &[0; 32], &[0xff; 40], &[1; 5]].concat();
    for kind in 0..2 {
        write(
            "build_state",
            &format!("state-{kind}"),
            input(&[kind], [piece(&text), piece("abc"), journal.clone()].concat()),
        );
    }
    write("build_state", "nothing", [0]);
}
