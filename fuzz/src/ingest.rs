//! Tables to be built: files of every format.

use std::{
    cell::Cell,
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    panic,
    path::{Path, PathBuf},
    sync::Once,
};

use hush_ingest::{
    CsvDialect, FolderAs, IngestError, IngestOptions, Input as Source, MAX_KEY_SIZE, Record, open,
};
use serde_json::value::RawValue;

use crate::{
    allocation::{FIXED, bounded},
    input::Input,
    place,
};

/// Records that are read of an input.
const MOST_RECORDS: usize = 2000;
/// The longest value where values are to be short.
const SHORT_VALUE: u32 = 16;

/// Returns the columns that the first byte of an input chooses.
fn options(choice: u8) -> IngestOptions {
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    IngestOptions {
        key: match choice & 3 {
            0 => names(&[]),
            1 => names(&["k", "v"]),
            _ => names(&["k"]),
        },
        value: match choice >> 2 & 3 {
            0 => names(&[]),
            1 => names(&["w", "v"]),
            _ => names(&["v"]),
        },
        max_value_size: if choice & 0x10 == 0 { 1 << 16 } else { SHORT_VALUE },
        ..IngestOptions::default()
    }
}

/// Returns all records, or the first error; what does not hold for every record of every input is a panic.
fn read(path: &Path, options: &IngestOptions) -> Result<Vec<Record>, IngestError> {
    let mut source = open(&Source::Path(path.into()), options)?;
    let has_keys = source.has_keys();
    let mut records = Vec::new();
    for record in source.by_ref().take(MOST_RECORDS) {
        let record = record?;
        assert_eq!(record.key.is_some(), has_keys);
        assert!(record.key.as_ref().is_none_or(|key| key.len() <= MAX_KEY_SIZE));
        // A value whose bytes are all 0xff is kept with one more.
        assert!(record.value.len() <= options.max_value_size as usize + 1);
        records.push(record);
    }
    // As clients get them.
    let schema = source.columns().expect("there is a record");
    for record in &mut records {
        record.value = schema.readable(&record.value).expect("the ingest wrote the fields");
    }
    let _ = source.progress();
    assert!(!records.is_empty(), "no records are an error");
    Ok(records)
}

/// Reads an input, with bounded memory, by an extension of the file's name.
fn read_bytes(extension: &str, content: &[u8], options: &IngestOptions, limit: usize) -> Option<Vec<Record>> {
    let path = place::shared().join("input").with_extension(extension);
    fs::write(&path, content).expect("room for the input");
    let outcome = bounded(limit, || read(&path, options));
    outcome.inspect_err(check_message).ok()
}

/// An error is one line that can be shown.
fn check_message(error: &IngestError) {
    assert!(!error.to_string().is_empty());
}

/// Values of several columns are JSON objects of these columns.
fn check_objects(records: &[Record], options: &IngestOptions) {
    if options.value.len() < 2 {
        return;
    }
    for record in records {
        let object: HashMap<String, &RawValue> =
            serde_json::from_slice(&record.value).expect("a JSON object");
        assert!(
            object.len() == options.value.len() && options.value.iter().all(|name| object.contains_key(name))
        );
    }
}

/// CSV.
pub fn csv(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (choice, content) = (input.byte(), input.rest());
    let options = options(choice);
    let quote = (choice & 0x20 == 0).then_some(b'"');
    let header = (choice & 0x80 != 0).then_some(choice & 0x10 == 0);
    let csv = CsvDialect { header, quote, backslash: choice & 0x60 == 0x40, ..CsvDialect::default() };
    let as_chosen = IngestOptions { csv, ..options.clone() };
    let Some(records) = read_bytes("csv", content, &as_chosen, 4 * FIXED + 64 * content.len()) else {
        return;
    };
    check_objects(&records, &options);
    if let ([key], [value]) = (options.key.as_slice(), options.value.as_slice()) {
        // The same records, written anew.
        let quoted =
            |field: &[u8]| [b"\"", &*field.iter().flat_map(twice).collect::<Vec<_>>(), b"\""].concat();
        let mut again = format!("{key},{value}\n").into_bytes();
        for Record { key, value } in &records {
            let key = key.as_ref().expect("a key column");
            again.extend([&*quoted(key), b",", &*quoted(value), b"\n"].concat());
        }
        let reread = read_bytes("csv", &again, &options, 4 * FIXED + 64 * again.len());
        assert!(reread == Some(records), "records that are written anew are others");
    }
}

/// Returns the dialect in which a quote is written twice.
fn twice(byte: &u8) -> Vec<u8> {
    if *byte == b'"' { vec![b'"'; 2] } else { vec![*byte] }
}

/// JSONL.
pub fn jsonl(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (options, content) = (options(input.byte()), input.rest());
    let Some(records) = read_bytes("jsonl", content, &options, 4 * FIXED + 256 * content.len()) else {
        return;
    };
    check_objects(&records, &options);
    if options.key.is_empty() && options.value.len() > 1 {
        // Values are objects of the same columns: read again, they are what they were.
        let lines: Vec<_> = records.iter().map(|record| record.value.as_slice()).collect();
        let again = lines.join(&b'\n');
        let reread = read_bytes("jsonl", &again, &options, 4 * FIXED + 256 * again.len());
        assert!(reread.as_ref() == Some(&records), "values that are read again are others");
    }
}

/// Parquet.
pub fn parquet(bytes: &[u8]) {
    with_panics_inside("parquet", bytes, parquet_bytes);
}

/// An Arrow stream or file.
pub fn arrow(bytes: &[u8]) {
    with_panics_inside("arrow", bytes, arrow_bytes);
}

/// Formats whose reader may panic where the ingest catches it.
fn with_panics_inside(extension: &str, bytes: &[u8], limit: fn(&[u8]) -> usize) {
    // libFuzzer's own hook ends the process at every panic. One that nobody catches still does.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if IN_READER.get() { LAST_PANIC.set(Some(info.to_string())) } else { hook(info) }
        }));
    });
    let mut input = Input::new(bytes);
    let (options, content) = (options(input.byte()), input.rest());
    IN_READER.set(true);
    let outcome = panic::catch_unwind(|| {
        if let Some(records) = read_bytes(extension, content, &options, limit(content)) {
            check_objects(&records, &options);
        }
    });
    IN_READER.set(false);
    assert!(outcome.is_ok(), "{}", LAST_PANIC.take().unwrap_or_default());
}

/// Most bytes that reading a Parquet file may take: a page, and what decompresses it, are as long as a file of its length can
/// become.
fn parquet_bytes(content: &[u8]) -> usize {
    2 * ((64 << 20) + (content.len() << 15)) + 16 * FIXED
}

/// Returns the bytes that reading Arrow may take: a batch that is decompressed, and a copy of it that is aligned.
fn arrow_bytes(content: &[u8]) -> usize {
    (content.len() << 17) + 16 * FIXED
}

thread_local! {
    static IN_READER: Cell<bool> = const { Cell::new(false) };
    static LAST_PANIC: Cell<Option<String>> = const { Cell::new(None) };
}

/// SQLite.
pub fn sqlite(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (options, content) = (options(input.byte()), input.rest());
    if let Some(records) = read_bytes("sqlite", content, &options, 64 * FIXED) {
        check_objects(&records, &options);
    }
}

/// A folder: names, links and files.
pub fn folder(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let choice = input.byte();
    let options = IngestOptions {
        max_value_size: if choice & 0x10 == 0 { 1 << 16 } else { SHORT_VALUE },
        folder: Some(FolderAs::Files),
        hidden: true,
        ..IngestOptions::default()
    };
    let root = place::folder();
    let mut files = BTreeSet::new();
    while !input.is_empty() {
        let kind = input.byte();
        let path = root.path().join(relative(input.piece()));
        if path == root.path() {
            continue;
        }
        // What is there already, or has a file on its way, stays as it is.
        let parent = path.parent().unwrap_or(root.path());
        if fs::create_dir_all(parent).is_err() || path.symlink_metadata().is_ok() {
            continue;
        }
        let made = match kind % 4 {
            0 => symlink(OsStr::from_bytes(input.piece()), &path).is_ok(),
            1 => fs::create_dir(&path).is_ok(),
            _ => fs::write(&path, input.piece()).is_ok(),
        };
        // A file behind a link is a record under its own name alone.
        let is_behind_link =
            parent.ancestors().take_while(|above| *above != root.path()).any(Path::is_symlink);
        if made && kind % 4 > 1 && !is_behind_link {
            files.insert(path.strip_prefix(root.path()).expect("below it").to_owned());
        }
    }
    match bounded(4 * FIXED + 64 * bytes.len(), || read(root.path(), &options)) {
        Ok(records) => {
            let name =
                |record: &Record| PathBuf::from(OsStr::from_bytes(record.key.as_ref().expect("a name")));
            let names: BTreeSet<_> = records.iter().map(name).collect();
            assert_eq!(names.len(), records.len(), "every file once");
            assert!(files.is_subset(&names), "every file");
        }
        Err(error) => check_message(&error),
    }
}

/// Returns a path that stays below its folder.
fn relative(name: &[u8]) -> PathBuf {
    let parts = name.split(|&byte| byte == b'/' || byte == 0);
    let parts = parts.filter(|part| !part.is_empty() && *part != b"." && *part != b"..");
    parts.map(OsStr::from_bytes).collect()
}
