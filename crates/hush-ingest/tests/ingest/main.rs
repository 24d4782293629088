//! Tests of the ingest: every format gives the records that its rules promise, and every malformed input a helpful error.

mod arrow;
mod bad_rows;
mod compression;
mod csv;
mod folder;
mod jsonl;
mod options;
mod parquet;
mod parquet_nested;
mod several;
mod spool;
mod sqlite;

use std::{
    fs,
    path::{Path, PathBuf},
};

use hush_ingest::{IngestError, IngestOptions, Input, Record, open};
use tempfile::TempDir;

/// Returns options with these key and value columns, separated by commas.
fn options(key: &str, value: &str) -> IngestOptions {
    let columns = |list: &str| list.split(',').filter(|name| !name.is_empty()).map(String::from).collect();
    IngestOptions { key: columns(key), value: columns(value), ..IngestOptions::default() }
}

/// A file of this name and content in a separate folder.
struct Fixture {
    _folder: TempDir,
    path: PathBuf,
}

impl Fixture {
    fn new(name: &str, content: impl AsRef<[u8]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        Self { _folder: folder, path }
    }

    fn read(&self, options: &IngestOptions) -> Result<Vec<Record>, IngestError> {
        read(&self.path, options)
    }

    /// Returns the keys and values as text.
    fn texts(&self, options: &IngestOptions) -> Vec<(String, String)> {
        self.read(options).unwrap().into_iter().map(texts).collect()
    }

    /// Returns the message of the error, which must name the file, without its folder.
    fn error(&self, options: &IngestOptions) -> String {
        let message = self.read(options).unwrap_err().to_string();
        let folder = format!("{}/", self.path.parent().unwrap().display());
        assert!(message.starts_with(&folder), "{message}");
        message.replace(&folder, "")
    }
}

fn read(path: &Path, options: &IngestOptions) -> Result<Vec<Record>, IngestError> {
    read_input(&Input::Path(path.into()), options)
}

fn read_input(input: &Input, options: &IngestOptions) -> Result<Vec<Record>, IngestError> {
    let mut source = open(input, options)?;
    let has_keys = source.has_keys();
    let mut records = source.by_ref().collect::<Result<Vec<_>, _>>()?;
    // The values are compared in the form that clients get.
    let schema = source.columns().unwrap();
    for Record { value, .. } in &mut records {
        *value = schema.readable(value).unwrap();
    }
    assert!(source.next().is_none());
    assert!(records.iter().all(|record| record.key.is_some() == has_keys));
    let progress = source.progress();
    assert!(progress.read > 0);
    assert!(progress.total.is_none_or(|total| total == progress.read), "{progress:?}");
    Ok(records)
}

fn texts(record: Record) -> (String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(record.key.unwrap_or_default()), text(record.value))
}

/// Converts pairs of texts for comparison.
fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// Returns small files of every format, with the columns id (1, 2), name and note (null or empty in row 2).
fn one_of_each_format() -> Vec<Fixture> {
    let jsonl = "{\"id\":1,\"name\":\"a\",\"note\":\"x\"}\n{\"id\":2,\"name\":\"b\",\"note\":null}\n";
    let mut all = vec![
        Fixture::new("t.csv", "id,name,note\n1,a,x\n2,b,\n"),
        Fixture::new("t.jsonl", jsonl),
        Fixture::new("t.NDJSON", jsonl),
        Fixture::new("t.jsonl.gz", compression::gzip(jsonl)),
        Fixture::new("t.jsonl.zst", compression::zstd(jsonl)),
        sqlite::small(),
        parquet::small(),
    ];
    all.extend(arrow::small());
    all
}
