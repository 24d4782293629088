//! Why an input was refused: each message names the file, the row, the column and what to do about it.

use std::{io, path::PathBuf};

use hush_protocol::{slot::MAX_VALUE_BYTES, wording::Wording};
use hush_store::cancel::Cancelled;
use thiserror::Error;

use crate::{Place, input::key_list::Utf16};

/// Why an input could not be read, or its records not be kept.
#[derive(Debug, Error)]
pub enum IngestError {
    /// Values cannot be compressed.
    #[error("the values cannot be compressed: {}: {}", .0, Wording("leave {compress} out"))]
    Compress(io::Error),
    /// It was given up.
    #[error(transparent)]
    Cancelled(Cancelled),
    /// The extension of a file names no supported format.
    #[error(
        "{}: cannot tell the format from the file name; supported are .csv, .tsv, .txt, .parquet, .jsonl, .ndjson, .json, \
         .sqlite, .sqlite3, .db, .db3, .arrow, .arrows, .feather, a folder of files, and - for standard input; of other names, {}", path.display(), Wording("{format} says it")
    )]
    UnknownFormat {
        /// The input.
        path: PathBuf,
    },
    /// The program has no reader of the format.
    #[error(
        "{}: this program was built without the reader of its format: build hushdb with the feature {feature}", path.display()
    )]
    NoReader {
        /// The input.
        path: PathBuf,
        /// The feature that the reader comes with.
        feature: &'static str,
    },
    /// A file is compressed as a whole whose format has to be read here and there.
    #[error("{}: of compressed files only CSV, JSONL and Arrow are read; decompress it first", path.display())]
    CompressedFormat {
        /// The input.
        path: PathBuf,
    },
    /// A file or folder cannot be opened or read.
    #[error("{}: cannot read: {source}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A folder holds something that is neither a file nor a folder.
    #[error("{}: neither a file nor a folder; remove it", path.display())]
    NotAFile {
        /// The entry.
        path: PathBuf,
    },
    /// A link leads to a folder that it is in.
    #[error("{}: this link leads back to a folder that it is in; {}", path.display(), Wording("remove it, or leave {follow-links} out"))]
    LinkLoop {
        /// The link.
        path: PathBuf,
    },
    /// An option does not fit the input, or contradicts another one.
    #[error("{}: {reason}", path.display())]
    Option {
        /// The input.
        path: PathBuf,
        /// Which option, and what is wrong with it.
        reason: Wording,
    },
    /// `--key` or `--value` names a column twice.
    #[error("{option} names the column {column:?} twice; name it once")]
    RepeatedOption {
        /// The option.
        option: Wording,
        /// The column.
        column: String,
    },
    /// The input has no record.
    #[error("{}: no records; a table needs at least one", path.display())]
    EmptyInput {
        /// The input.
        path: PathBuf,
    },
    /// All rows of the input are bad, and left out.
    #[error("{}: no records: all {count} rows are bad, and are in {}", path.display(), file.display())]
    AllBad {
        /// The input.
        path: PathBuf,
        /// The number of its rows.
        count: u64,
        /// The file of bad rows.
        file: PathBuf,
    },
    /// A named column is not there.
    #[error("{}: no column {column:?}; the columns are {}", path.display(), quoted(available))]
    MissingColumn {
        /// The input.
        path: PathBuf,
        /// The column asked for.
        column: String,
        /// The columns of the input; for JSONL, the fields of its first object.
        available: Vec<String>,
    },
    /// An object of a JSONL file lacks a key field.
    #[error(
        "{place}: the object has no field {column:?}, {}",
        Wording("which {key} names; add it or remove the line")
    )]
    MissingKeyField {
        /// The object.
        place: Place,
        /// The field.
        column: String,
    },
    /// An object of a JSONL file has a field that the first object did not have.
    #[error(
        "{place}: the field {column:?} is not in the first object, which set the columns; {}",
        Wording("name the columns to keep with {value}")
    )]
    UnexpectedField {
        /// The object.
        place: Place,
        /// The field.
        column: String,
    },
    /// A later input has a column that the first one has not.
    #[error(
        "{}: the first input has no column \"{column}\", and sets the columns of all; {}",
        path.display(),
        Wording("name the columns to keep with {value}")
    )]
    UnexpectedColumn {
        /// The input.
        path: PathBuf,
        /// The column.
        column: String,
    },
    /// A column has another type than in the first input.
    #[error(
        "{}: the column \"{column}\" is of type {own} here, and of type {first} in the first input; convert one of them",
        path.display()
    )]
    OtherType {
        /// The input.
        path: PathBuf,
        /// The column.
        column: String,
        /// The type of the column in this input.
        own: Box<str>,
        /// The type of the column in the first input.
        first: Box<str>,
    },
    /// Something that is no file is among several inputs.
    #[error("{}: can only be read alone; {}", path.display(), Wording("of several inputs each is a file, or with {as=rows} a folder of files"))]
    NotAmongSeveral {
        /// The input.
        path: PathBuf,
    },
    /// A folder has a file whose format has rows, and nothing says what its files are.
    #[error(
        "{}: a folder that has {}: {}",
        path.display(),
        file.strip_prefix(path).unwrap_or(file).display(),
        Wording("{as=rows} takes the rows of its files as records, {as=files} takes each file as a value, under its name")
    )]
    FolderOfRows {
        /// The folder.
        path: PathBuf,
        /// The file.
        file: PathBuf,
    },
    /// An input has another number of rows than it is to have.
    #[error("{}: {actual} rows, where {expected} are expected; {}", path.display(), Wording("fetch the input again, or correct {expect-rows}"))]
    RowCount {
        /// The input.
        path: PathBuf,
        /// The number of rows that the input is to have.
        expected: u64,
        /// The number of rows that the input has.
        actual: u64,
    },
    /// The file of bad rows cannot be written.
    #[error("{}: cannot write the bad rows: {source}", path.display())]
    BadRowsFile {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Two columns have one name.
    #[error("{}: two columns are called {column:?}; rename one of them", path.display())]
    DuplicateColumn {
        /// The input.
        path: PathBuf,
        /// The name.
        column: String,
    },
    /// Two fields of an object have one name.
    #[error("{place}: the object has two fields {column:?}; remove one of them")]
    DuplicateField {
        /// The object.
        place: Place,
        /// The name.
        column: String,
    },
    /// A text is not UTF-8.
    #[error("{place}{}: not valid UTF-8; {}", in_column(column), utf8_advice(place))]
    BadUtf8 {
        /// The record; row 0 is the header of a CSV file.
        place: Place,
        /// The column, where it is known.
        column: Option<String>,
    },
    /// A CSV row has more or fewer fields than the first row.
    #[error(
        "{place}: {actual} fields, but the first row has {expected}; quote fields that contain {separator:?}, which ends a field"
    )]
    RaggedRow {
        /// The row.
        place: Place,
        /// Fields of the first row.
        expected: u64,
        /// Fields of the row.
        actual: u64,
        /// The character between fields.
        separator: char,
    },
    /// The first row of a CSV file, which is to name the columns, has a field that no column is called.
    #[error(
        "{}: the first row looks like a record, not like names of columns: {field:?} is {kind}; {}",
        path.display(),
        Wording("if it is a record, set {no-header=true}; if it names the columns, set {header=true}")
    )]
    HeaderLikeRecord {
        /// The input.
        path: PathBuf,
        /// The field.
        field: String,
        /// What it looks like.
        kind: &'static str,
    },
    /// The first row of a CSV file has one field, in which there is the separator of other files.
    #[error(
        "{}: the first row has no comma, but {found:?}; {}",
        path.display(),
        Wording("if that separates fields, set {separator} to it; if the file has one column, set {separator} to a comma")
    )]
    OtherSeparator {
        /// The input.
        path: PathBuf,
        /// The separator of other files.
        found: char,
    },
    /// A CSV row or a JSONL line is too long to be one record.
    #[error(
        "{place}: longer than {limit} bytes; look for a missing line end or closing quote; JSON is an object a line, or one array of objects"
    )]
    RowTooLong {
        /// The row.
        place: Place,
        /// The most bytes that a row may have.
        limit: u64,
    },
    /// The last field of a CSV file opens a quote that nothing closes.
    #[error(
        "{place}: the file ends within the quoted field that begins on line {line}; close the quote, or fetch the rest of the \
         file; {}",
        Wording("if quotes are data in this file, set {quote=none}")
    )]
    UnclosedQuote {
        /// The last row.
        place: Place,
        /// The line of the quote.
        line: u64,
    },
    /// A quoted field of a CSV file has text behind its closing quote.
    #[error(
        "{place}: the quoted field that begins on line {line} has text behind its closing quote on line {last_line}: \
         {shown}; {}",
        quote_advice(*is_escape)
    )]
    BehindQuote {
        /// The row.
        place: Place,
        /// The line of the opening quote.
        line: u64,
        /// The line of the closing quote.
        last_line: u64,
        /// The closing quote and what is around it.
        shown: String,
        /// Whether a backslash is before the quote.
        is_escape: bool,
    },
    /// A text is in UTF-16.
    #[error("{}: {}", path.display(), Utf16)]
    Utf16 {
        /// The input.
        path: PathBuf,
    },
    /// A line of a JSONL file, or an element of a JSON array, is not an object.
    #[error(
        "{place}: expected a JSON object, found {found}; write one object per line, or an array of objects"
    )]
    NotAnObject {
        /// The line.
        place: Place,
        /// What it is.
        found: &'static str,
    },
    /// A line of a JSONL file, or an element of a JSON array, is not JSON.
    #[error("{place}: not valid JSON: {message} at byte {byte} of the line")]
    InvalidJson {
        /// The line.
        place: Place,
        /// What the parser expected.
        message: String,
        /// Where in the line, counted from 1.
        byte: usize,
    },
    /// A JSON array is damaged.
    #[error("{place}: the JSON array {problem}")]
    JsonArray {
        /// The element, or what is behind the last one.
        place: Place,
        /// What is wrong with it, and what to do.
        problem: &'static str,
    },
    /// A key column has no value.
    #[error(
        "{place}, column {column:?}: a key cannot be null; {}",
        Wording("remove the row or choose another {key}")
    )]
    NullKey {
        /// The record.
        place: Place,
        /// The key column.
        column: String,
    },
    /// A key that is to be normalized has other things than text.
    #[error(
        "{}: the key column \"{column}\" is not all text, and nothing else is normalized; {}",
        path.display(),
        Wording("leave {normalize} out, or make it text")
    )]
    KeyNotText {
        /// The input.
        path: PathBuf,
        /// The key column.
        column: String,
    },
    /// A part of a key over several columns contains the separator.
    #[error(
        "{place}, column {column:?}: contains the byte 0x1f, which separates the columns of a key; \
         remove it, or make one key column"
    )]
    SeparatorInKey {
        /// The record.
        place: Place,
        /// The key column.
        column: String,
    },
    /// A key is too long.
    #[error(
        "{place}: the key has {actual} bytes, at most {limit} are possible; {}",
        Wording("choose a shorter {key}")
    )]
    KeyTooLong {
        /// The record.
        place: Place,
        /// Bytes of the key.
        actual: u64,
        /// The most bytes that a key may have.
        limit: u64,
    },
    /// A value is longer than `--max-value-size`.
    #[error(
        "{place}: the value has {actual} bytes, the limit is {limit}; {}, up to {MAX_VALUE_BYTES} (every record then costs as much \
         as the longest)",
        Wording("keep fewer columns with {value}, or raise {max-value-size}")
    )]
    ValueTooLong {
        /// The record.
        place: Place,
        /// Bytes of the value.
        actual: u64,
        /// `--max-value-size`.
        limit: u64,
    },
    /// A column has a type that has no form as a value.
    #[error(
        "{}: the column {column:?} is {kind}, which cannot be looked up; {}",
        path.display(),
        Wording("name the columns to keep with {key} and {value}")
    )]
    UnsupportedColumn {
        /// The input.
        path: PathBuf,
        /// The column.
        column: String,
        /// Its type.
        kind: &'static str,
    },
    /// A Parquet file is damaged or uses something unsupported.
    #[error("{}: cannot read as Parquet: {message}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        message: String,
    },
    /// An Arrow stream is damaged or uses something unsupported.
    #[error("{}: cannot read as Arrow: {message}", path.display())]
    Arrow {
        /// The input.
        path: PathBuf,
        /// What the reader said.
        message: String,
    },
    /// A SQLite database has a write-ahead log beside it, and its folder may not be written.
    #[error(
        "{}: SQLite: the database has a write-ahead log (WAL), and its folder may not be written, which reading it needs; copy the \
         database to another folder, with its -wal, or have its owner run PRAGMA wal_checkpoint(TRUNCATE) and close it", path.display()
    )]
    WriteAheadLog {
        /// The file.
        path: PathBuf,
    },
    /// SQLite refused the file or the query.
    #[error("{}: SQLite: {message}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        message: String,
    },
    /// A PostgreSQL server refused something, or cannot be reached.
    #[error("{}: PostgreSQL: {message}; {advice}", path.display())]
    Postgres {
        /// The URL, without what is secret in it.
        path: PathBuf,
        /// What the server or the way to it said.
        message: String,
        /// What to do.
        advice: Wording,
    },
    /// An input was to be read that is elsewhere.
    #[error("{}: not fetched yet; fetch it, or give a file", path.display())]
    NotFetched {
        /// The URL, without what is secret in it.
        path: PathBuf,
    },
    /// A server does not give what a URL names.
    #[error("{}: cannot fetch: {message}; {advice}", path.display())]
    Unfetched {
        /// The URL, without what is secret in it.
        path: PathBuf,
        /// What the server or the way to it said.
        message: String,
        /// What to do.
        advice: &'static str,
    },
    /// The scheme of a URL leads nowhere.
    #[error("{}: no input has this scheme; the nearest is {nearest}://", path.display())]
    UnknownScheme {
        /// The URL, without what is secret in it.
        path: PathBuf,
        /// A scheme that there is.
        nearest: &'static str,
    },
    /// No table was chosen, or the chosen one does not exist.
    #[error("{}: {}", path.display(), no_table(tables))]
    NoTable {
        /// The file.
        path: PathBuf,
        /// Its tables and views.
        tables: Vec<String>,
    },
    /// Two records have one key.
    #[error(
        "rows {first_row} and {second_row} both have the key \"{key}\"; \
         {}",
        Wording("keep one with {on-duplicate=first} or {on-duplicate=last}")
    )]
    DuplicateKey {
        /// The key, shortened, with what is not UTF-8 replaced.
        key: String,
        /// The first record with the key, counted from 1.
        first_row: u64,
        /// The next record with it.
        second_row: u64,
    },
    /// Some records have a key and others not.
    #[error("row {row} differs from the rows before it in having a key")]
    MixedKeys {
        /// The record.
        row: u64,
    },
    /// More records than a table can hold.
    #[error("more than {limit} records; split the input into several tables")]
    TooManyRecords {
        /// The most records possible.
        limit: u64,
    },
    /// The disk of the spool is full.
    #[error("{}: the disk is full; free space there, or choose another folder", dir.display())]
    DiskFull {
        /// The folder of the spool.
        dir: PathBuf,
    },
    /// The spool cannot be written or read.
    #[error("{}: cannot write a temporary file: {source}", dir.display())]
    Spool {
        /// The folder of the spool.
        dir: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

impl IngestError {
    /// Returns the row that is wrong, if the rows behind it can be read all the same.
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

/// Says which tables there are to choose from.
fn no_table(tables: &[String]) -> String {
    if tables.is_empty() {
        return "the database has no table; one in WAL mode may have all of them in the file NAME-wal: copy that with it".into();
    }
    let (table, sql) = (Wording("{table}"), Wording("{sql}"));
    format!("choose a table with {table} (there is {}) or a query with {sql}", quoted(tables))
}

/// `names` as a list for people, the first 50 of them.
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

/// What to do about a text that is not UTF-8: only files of lines are in an encoding as a whole.
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
