//! The errors of an input: each message names the file, the row, the column and what to do about it.

use std::{io, path::PathBuf};

use hush_protocol::{slot::MAX_VALUE_BYTES, wording::Wording};
use hush_store::cancel::Cancelled;
use thiserror::Error;

use crate::{Place, input::key_list::Utf16};

/// The reason why an input cannot be read or its records cannot be kept. Rows, lines and bytes are counted from 1; row 0 is the
/// header of a CSV file. A path that is a URL is shown without its secrets. A key is shortened, and its bytes that are not UTF-8
/// are replaced.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum IngestError {
    #[error("the values cannot be compressed: {}: {}", .0, Wording("leave {compress} out"))]
    Compress(io::Error),
    /// The caller cancelled the reading.
    #[error(transparent)]
    Cancelled(Cancelled),
    #[error(
        "{}: cannot tell the format from the file name; supported are .csv, .tsv, .txt, .parquet, .jsonl, .ndjson, .json, \
         .sqlite, .sqlite3, .db, .db3, .arrow, .arrows, .feather, a folder of files, and - for standard input; of other names, {}", path.display(), Wording("{format} says it")
    )]
    UnknownFormat { path: PathBuf },
    #[error(
        "{}: this program was built without the reader of its format: build hushdb with the feature {feature}", path.display()
    )]
    NoReader { path: PathBuf, feature: &'static str },
    #[error("{}: of compressed files only CSV, JSONL and Arrow are read; decompress it first", path.display())]
    CompressedFormat { path: PathBuf },
    #[error("{}: cannot read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{}: neither a file nor a folder; remove it", path.display())]
    NotAFile { path: PathBuf },
    #[error("{}: this link leads back to a folder that it is in; {}", path.display(), Wording("remove it, or leave {follow-links} out"))]
    LinkLoop { path: PathBuf },
    #[error("{}: {reason}", path.display())]
    Option { path: PathBuf, reason: Wording },
    #[error("{option} names the column {column:?} twice; name it once")]
    RepeatedOption { option: Wording, column: String },
    #[error("{}: no records; a table needs at least one", path.display())]
    EmptyInput { path: PathBuf },
    #[error("{}: no records: all {count} rows are bad, and are in {}", path.display(), file.display())]
    AllBad { path: PathBuf, count: u64, file: PathBuf },
    #[error("{}: no column {column:?}; the columns are {}", path.display(), quoted(available))]
    MissingColumn { path: PathBuf, column: String, available: Vec<String> },
    #[error(
        "{place}: the object has no field {column:?}, {}",
        Wording("which {key} names; add it or remove the line")
    )]
    MissingKeyField { place: Place, column: String },
    #[error(
        "{place}: the field {column:?} is not in the first object, which set the columns; {}",
        Wording("name the columns to keep with {value}")
    )]
    UnexpectedField { place: Place, column: String },
    #[error(
        "{}: the first input has no column \"{column}\", and sets the columns of all; {}",
        path.display(),
        Wording("name the columns to keep with {value}")
    )]
    UnexpectedColumn { path: PathBuf, column: String },
    #[error(
        "{}: the column \"{column}\" is of type {own} here, and of type {first} in the first input; convert one of them",
        path.display()
    )]
    OtherType { path: PathBuf, column: String, own: Box<str>, first: Box<str> },
    #[error("{}: can only be read alone; {}", path.display(), Wording("of several inputs each is a file, or with {as=rows} a folder of files"))]
    NotAmongSeveral { path: PathBuf },
    #[error(
        "{}: a folder that has {}: {}",
        path.display(),
        file.strip_prefix(path).unwrap_or(file).display(),
        Wording("{as=rows} takes the rows of its files as records, {as=files} takes each file as a value, under its name")
    )]
    FolderOfRows { path: PathBuf, file: PathBuf },
    #[error("{}: {actual} rows, where {expected} are expected; {}", path.display(), Wording("fetch the input again, or correct {expect-rows}"))]
    RowCount { path: PathBuf, expected: u64, actual: u64 },
    #[error("{}: cannot write the bad rows: {source}", path.display())]
    BadRowsFile { path: PathBuf, source: io::Error },
    #[error("{}: two columns are called {column:?}; rename one of them", path.display())]
    DuplicateColumn { path: PathBuf, column: String },
    #[error("{place}: the object has two fields {column:?}; remove one of them")]
    DuplicateField { place: Place, column: String },
    #[error("{place}{}: not valid UTF-8; {}", in_column(column), utf8_advice(place))]
    BadUtf8 { place: Place, column: Option<String> },
    #[error(
        "{place}: {actual} fields, but the first row has {expected}; quote fields that contain {separator:?}, which ends a field"
    )]
    RaggedRow { place: Place, expected: u64, actual: u64, separator: char },
    #[error(
        "{}: the first row looks like a record, not like names of columns: {field:?} is {kind}; {}",
        path.display(),
        Wording("if it is a record, set {no-header=true}; if it names the columns, set {header=true}")
    )]
    HeaderLikeRecord { path: PathBuf, field: String, kind: &'static str },
    #[error(
        "{}: the first row has no comma, but {found:?}; {}",
        path.display(),
        Wording("if that separates fields, set {separator} to it; if the file has one column, set {separator} to a comma")
    )]
    OtherSeparator { path: PathBuf, found: char },
    #[error(
        "{place}: longer than {limit} bytes; look for a missing line end or closing quote; JSON is an object a line, or one array of objects"
    )]
    RowTooLong { place: Place, limit: u64 },
    #[error(
        "{place}: the file ends within the quoted field that begins on line {line}; close the quote, or fetch the rest of the \
         file; {}",
        Wording("if quotes are data in this file, set {quote=none}")
    )]
    UnclosedQuote { place: Place, line: u64 },
    #[error(
        "{place}: the quoted field that begins on line {line} has text behind its closing quote on line {last_line}: \
         {shown}; {}",
        quote_advice(*is_escape)
    )]
    BehindQuote { place: Place, line: u64, last_line: u64, shown: String, is_escape: bool },
    #[error("{}: {}", path.display(), Utf16)]
    Utf16 { path: PathBuf },
    #[error(
        "{place}: expected a JSON object, found {found}; write one object per line, or an array of objects"
    )]
    NotAnObject { place: Place, found: &'static str },
    #[error("{place}: not valid JSON: {message} at byte {byte} of the line")]
    InvalidJson { place: Place, message: String, byte: usize },
    #[error("{place}: the JSON array {problem}")]
    JsonArray { place: Place, problem: &'static str },
    #[error(
        "{place}, column {column:?}: a key cannot be null; {}",
        Wording("remove the row or choose another {key}")
    )]
    NullKey { place: Place, column: String },
    #[error(
        "{}: the key column \"{column}\" is not all text, and nothing else is normalized; {}",
        path.display(),
        Wording("leave {normalize} out, or make it text")
    )]
    KeyNotText { path: PathBuf, column: String },
    #[error(
        "{place}, column {column:?}: contains the byte 0x1f, which separates the columns of a key; \
         remove it, or make one key column"
    )]
    SeparatorInKey { place: Place, column: String },
    #[error(
        "{place}: the key has {actual} bytes, at most {limit} are possible; {}",
        Wording("choose a shorter {key}")
    )]
    KeyTooLong { place: Place, actual: u64, limit: u64 },
    #[error(
        "{place}: the value has {actual} bytes, the limit is {limit}; {}",
        too_long(*limit)
    )]
    ValueTooLong { place: Place, actual: u64, limit: u64 },
    #[error(
        "{}: the column {column:?} is {kind}, which cannot be looked up; {}",
        path.display(),
        Wording("name the columns to keep with {key} and {value}")
    )]
    UnsupportedColumn { path: PathBuf, column: String, kind: &'static str },
    #[error("{}: cannot read as Parquet: {message}", path.display())]
    Parquet { path: PathBuf, message: String },
    #[error("{}: cannot read as Arrow: {message}", path.display())]
    Arrow { path: PathBuf, message: String },
    #[error(
        "{}: SQLite: the database has a write-ahead log (WAL), and its folder may not be written, which reading it needs; copy the \
         database to another folder, with its -wal, or have its owner run PRAGMA wal_checkpoint(TRUNCATE) and close it", path.display()
    )]
    WriteAheadLog { path: PathBuf },
    #[error("{}: SQLite: {message}", path.display())]
    Sqlite { path: PathBuf, message: String },
    #[error("{}: PostgreSQL: {message}; {advice}", path.display())]
    Postgres { path: PathBuf, message: String, advice: Wording },
    #[error("{}: not fetched yet; fetch it, or give a file", path.display())]
    NotFetched { path: PathBuf },
    #[error("{}: cannot fetch: {message}; {advice}", path.display())]
    Unfetched { path: PathBuf, message: String, advice: &'static str },
    #[error("{}: no input has this scheme; the nearest is {nearest}://", path.display())]
    UnknownScheme { path: PathBuf, nearest: &'static str },
    #[error("{}: {}", path.display(), no_table(tables))]
    NoTable { path: PathBuf, tables: Vec<String> },
    #[error(
        "rows {first_row} and {second_row} both have the key \"{key}\"; \
         {}",
        Wording(
            "keep one with {on-duplicate=first} or {on-duplicate=last}, or a list of them with {on-duplicate=all}"
        )
    )]
    DuplicateKey { key: String, first_row: u64, second_row: u64 },
    #[error(
        "the values of the key \"{key}\" have more than {limit} bytes together, of {rows} rows or more; {}",
        too_long(*limit)
    )]
    LongList { key: String, rows: u64, limit: u64 },
    #[error(
        "row {row}: the key \"{key}\" has no more than the {characters} characters by which rows are grouped"
    )]
    ShortKey { row: u64, key: String, characters: usize },
    #[error("row {row}: a key or a value has a line break, and would be two lines of its group")]
    LineBreak { row: u64 },
    #[error("rows cannot be grouped: {why}")]
    Ungroupable { why: Wording },
    #[error("row {row}: the field of column \"{column}\" is no {expected}")]
    Element { row: u64, column: String, expected: String },
    #[error("row {row} differs from the rows before it in having a key")]
    MixedKeys { row: u64 },
    #[error("more than {limit} records; split the input into several tables")]
    TooManyRecords { limit: u64 },
    #[error("{}: the disk is full; free space there, or choose another folder", dir.display())]
    DiskFull { dir: PathBuf },
    #[error("{}: cannot write a temporary file: {source}", dir.display())]
    Spool { dir: PathBuf, source: io::Error },
}

/// Returns what to do about a value that is longer than `limit`.
fn too_long(limit: u64) -> String {
    match limit < MAX_VALUE_BYTES as u64 {
        true => format!(
            "{}, up to {MAX_VALUE_BYTES} (every record then costs as much as the longest)",
            Wording("keep fewer columns with {value}, or raise {max-value-size}")
        ),
        false => "no value of a table may be longer".into(),
    }
}

impl IngestError {
    /// Returns the place of a bad row if the rows behind it can still be read.
    pub(crate) fn bad_row(&self) -> Option<&Place> {
        let place = match self {
            Self::RaggedRow { place, .. }
            | Self::BadUtf8 { place, .. }
            | Self::BehindQuote { place, .. }
            | Self::NotAnObject { place, .. }
            | Self::InvalidJson { place, .. }
            | Self::MissingKeyField { place, .. }
            | Self::UnexpectedField { place, .. }
            | Self::DuplicateField { place, .. }
            | Self::NullKey { place, .. }
            | Self::SeparatorInKey { place, .. }
            | Self::KeyTooLong { place, .. }
            | Self::ValueTooLong { place, .. } => place,
            _ => return None,
        };
        // Without a header, the rows behind it cannot be read.
        (place.row > 0).then_some(place)
    }
}

/// Lists the tables that can be chosen.
fn no_table(tables: &[String]) -> String {
    if tables.is_empty() {
        return "the database has no table; one in WAL mode may have all of them in the file NAME-wal: copy that with it".into();
    }
    let table = Wording("{table}");
    let sql = Wording("{sql}");
    format!("choose a table with {table} (there is {}) or a query with {sql}", quoted(tables))
}

/// Formats `names` as a list for people, at most the first 50.
fn quoted(names: &[String]) -> String {
    const SHOWN: usize = 50;
    if names.is_empty() {
        return "none".into();
    }
    let mut list: Vec<String> = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    if names.len() > SHOWN {
        list.push(format!("and {} more", names.len() - SHOWN));
    }
    list.join(", ")
}

fn quote_advice(is_escape: bool) -> Wording {
    if is_escape {
        Wording("that looks like a quote escaped by a backslash: set {escape=backslash}")
    } else {
        Wording("write a quote within a quoted field twice, or, if quotes are data here, set {quote=none}")
    }
}

/// Advises what to do about text that is not UTF-8. Only a file with lines can be converted as a whole.
fn utf8_advice(place: &Place) -> Wording {
    if place.line.is_some() {
        Wording("convert the file to UTF-8")
    } else {
        Wording(
            "correct this text, or leave the column out with {value}; {sql} can read it as bytes: CAST(column AS BLOB)",
        )
    }
}

fn in_column(column: &Option<String>) -> String {
    column.as_ref().map(|column| format!(", column {column:?}")).unwrap_or_default()
}
