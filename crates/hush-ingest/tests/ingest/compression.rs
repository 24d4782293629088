//! Tests of compressed text.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use zstd::stream::Encoder;

use crate::{Fixture, IngestOptions, options, pairs};

const TEXT: &str = "{\"id\":1,\"name\":\"a\"}\n{\"id\":2,\"name\":\"b\"}\n";

pub(crate) fn gzip(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_ref()).unwrap();
    encoder.finish().unwrap()
}

/// Compresses a text with a checksum.
pub(crate) fn zstd(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(text.as_ref()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn members_and_frames_are_read_on() {
    let (first, second) = TEXT.split_at(30);
    let skipped = b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc";
    let expected = pairs(&[("1", "a"), ("2", "b")]);
    for (name, content) in [
        ("t.jsonl.gz", [gzip(first), gzip(second)].concat()),
        ("t.jsonl.gz", [gzip(TEXT), vec![0; 100_000]].concat()),
        ("t.jsonl.gz", [gzip(first), vec![0; 3], gzip(second), vec![0]].concat()),
        ("t.ndjson.zst", [zstd(first), zstd(second)].concat()),
        ("t.jsonl.ZST", [skipped.to_vec(), zstd(TEXT)].concat()),
        // The name does not state the compression.
        ("t.jsonl", gzip(TEXT)),
        ("t.jsonl", zstd(TEXT)),
        ("t.jsonl", [skipped.to_vec(), zstd(TEXT)].concat()),
    ] {
        assert_eq!(Fixture::new(name, content).texts(&options("id", "name")), expected, "{name}");
    }
    let csv = Fixture::new("t.csv.gz", gzip("id,name\n1,a\n2,\"b\n"));
    assert!(csv.error(&options("id", "")).starts_with("t.csv.gz, row 2 (line 3): the file ends within"));
}

#[test]
fn data_that_is_cut_off_is_refused() {
    for (name, content) in [("t.jsonl.gz", gzip(TEXT)), ("t.jsonl.zst", zstd(TEXT))] {
        for length in 1..content.len() {
            let message = Fixture::new(name, &content[..length]).error(&options("id", ""));
            assert!(message.starts_with(&format!("{name}: cannot read: the ")), "{length}: {message}");
            assert!(
                message.ends_with(" data ends too soon; fetch the rest of the file"),
                "{length}: {message}"
            );
        }
    }
    assert!(Fixture::new("t.jsonl.gz", "").read(&options("id", "")).is_err());
    let message = Fixture::new("t.jsonl.gz", [gzip(TEXT), b"\0\0no gzip data at all".to_vec()].concat())
        .error(&options("id", ""));
    assert!(message.contains("damaged, or not gzip data"), "{message}");
}

#[test]
fn data_that_is_damaged_gives_no_other_records() {
    let expected = pairs(&[("1", "a"), ("2", "b")]);
    for (name, content) in [("t.jsonl.gz", gzip(TEXT)), ("t.jsonl.zst", zstd(TEXT))] {
        for at in 0..content.len() {
            let mut damaged = content.clone();
            damaged[at] ^= 0x41;
            let file = Fixture::new(name, damaged);
            match file.read(&options("id", "name")) {
                Ok(_) => assert_eq!(file.texts(&options("id", "name")), expected, "{name}, byte {at}"),
                // A row may be malformed before the checksum is.
                Err(error) => assert!(error.to_string().contains(name), "{error}"),
            }
        }
    }
    let plain = Fixture::new("t.csv.gz", "id,name\n1,a\n").error(&IngestOptions::default());
    assert!(plain.starts_with("t.csv.gz: cannot read: damaged, or not gzip data: "), "{plain}");
    let plain = Fixture::new("t.csv.zst", "id,name\n1,a\n").error(&IngestOptions::default());
    assert!(plain.starts_with("t.csv.zst: cannot read: damaged, or not Zstandard data: "), "{plain}");
}

#[test]
fn long_windows_are_refused() {
    let compressed = |window_log| {
        let mut encoder = Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(window_log).unwrap();
        encoder.write_all(TEXT.as_bytes()).unwrap();
        // The flush comes before the end is known, so that the window is as long as requested.
        encoder.flush().unwrap();
        encoder.finish().unwrap()
    };
    assert_eq!(Fixture::new("t.jsonl.zst", compressed(27)).read(&options("id", "")).unwrap().len(), 2);
    assert_eq!(
        Fixture::new("t.jsonl.zst", compressed(28)).error(&options("id", "")),
        "t.jsonl.zst: cannot read: its Zstandard window is longer than 128 MiB; compress it again with zstd --long=27 at most"
    );
}

#[test]
fn a_row_without_end_does_not_fill_the_memory() {
    let long = "x".repeat(65 << 20);
    for (name, content) in [
        ("t.csv.gz", gzip(format!("k\n1\n\"{long}"))),
        ("t.jsonl.zst", zstd(format!("{{\"k\":1}}\n{{\"k\":\"{long}"))),
    ] {
        assert!(content.len() < 1 << 20);
        let error = Fixture::new(name, content).read(&options("k", "")).unwrap_err().to_string();
        assert!(error.contains(", row 2 (line "), "{error}");
        assert!(error.contains("longer than 67108864 bytes"), "{error}");
    }
}

#[test]
fn other_formats_are_decompressed_first() {
    for name in ["t.parquet.gz", "t.db.zst"] {
        let message = Fixture::new(name, gzip(TEXT)).error(&IngestOptions::default());
        assert!(
            message
                .ends_with(": of compressed files only CSV, JSONL and Arrow are read; decompress it first")
        );
    }
}
