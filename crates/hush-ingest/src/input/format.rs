//! The formats of inputs, and their names.

use std::{ffi::OsStr, fs::File, path::Path, str::FromStr};

use thiserror::Error;

use crate::input::key_list::without_mark;
use crate::{
    IngestError, IngestOptions,
    input::{
        compression::{Compression, peek},
        text::HEAD_BYTES,
    },
};

/// The bytes in front of the length of an Arrow message.
pub(crate) const ARROW_CONTINUATION: [u8; 4] = [0xff; 4];
/// The mark at both ends of an Arrow file. The first one is padded to eight bytes or more.
pub(crate) const ARROW_FILE_MARK: &[u8; 6] = b"ARROW1";

/// The formats of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// A JSON object a line, or an array of objects.
    Jsonl,
    /// Apache Arrow IPC: a stream, or a file (Feather).
    Arrow,
    /// A SQLite database.
    Sqlite,
    /// A folder of files.
    Folder,
    /// A PostgreSQL server.
    Postgres,
}

/// The text names no format of a file.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected one of: csv, jsonl, parquet, arrow, sqlite")]
pub struct UnknownFormat;

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        match name {
            "csv" => Ok(Self::Csv),
            "parquet" => Ok(Self::Parquet),
            "jsonl" | "ndjson" | "json" => Ok(Self::Jsonl),
            "arrow" => Ok(Self::Arrow),
            "sqlite" => Ok(Self::Sqlite),
            _ => Err(UnknownFormat),
        }
    }
}

impl Format {
    /// Returns the format of the input at `path`, and the compression that its name states.
    pub(crate) fn of(
        path: &Path,
        options: &IngestOptions,
    ) -> Result<(Self, Option<Compression>), IngestError> {
        let metadata =
            path.metadata().map_err(|source| IngestError::Unreadable { path: path.into(), source })?;
        if metadata.is_dir() {
            return Ok((Self::Folder, None));
        }
        let by_name = Self::of_name(path, options);
        let is_unknown = matches!(by_name, Err(IngestError::UnknownFormat { .. }));
        // Only a file can be read twice, so only its first bytes are read ahead.
        if !is_unknown || !metadata.is_file() {
            return by_name;
        }
        let unreadable = |source| IngestError::Unreadable { path: path.into(), source };
        let (head, _) = peek(File::open(path).map_err(unreadable)?, HEAD_BYTES).map_err(unreadable)?;
        let (compression, stem) = Compression::of_name(path);
        match Self::of_head(&head) {
            Some(format) => Ok((format, None)),
            None if is_any_text(stem) => Ok((Self::Csv, compression)),
            None => by_name,
        }
    }

    /// Returns the format of the input at a URL. A text is CSV, unless [its first bytes](Self::of_fetched) say otherwise.
    pub(crate) fn of_url(
        shown: &Path,
        options: &IngestOptions,
    ) -> Result<(Self, Option<Compression>), IngestError> {
        let (compression, stem) = Compression::of_name(shown);
        match Self::of_name(shown, options) {
            Err(IngestError::UnknownFormat { .. }) if is_any_text(stem) => Ok((Self::Csv, compression)),
            named => named,
        }
    }

    /// Returns the format of a file that was fetched from a URL as `named`. For a text its first bytes decide.
    pub(crate) fn of_fetched(file: &Path, shown: &Path, named: Self) -> std::io::Result<Self> {
        let is_text = is_any_text(Compression::of_name(shown).1);
        let head = if is_text { peek(File::open(file)?, HEAD_BYTES)?.0 } else { Vec::new() };
        Ok(Self::of_head(&head).unwrap_or(named))
    }

    /// Returns the format of a file that starts with `head`, if no other format can start that way.
    fn of_head(head: &[u8]) -> Option<Self> {
        match without_mark(head).unwrap_or(head) {
            head if is_arrow(head) => Some(Self::Arrow),
            [b'P', b'A', b'R', b'1', ..] => Some(Self::Parquet),
            [b'S', b'Q', b'L', b'i', b't', b'e', b' ', b'f', ..] => Some(Self::Sqlite),
            [b'{', ..] => Some(Self::Jsonl),
            _ => None,
        }
    }

    /// Returns the format of a file that is called `name`, and the compression that the name states.
    pub(crate) fn of_name(
        name: &Path,
        options: &IngestOptions,
    ) -> Result<(Self, Option<Compression>), IngestError> {
        let (compression, stem) = Compression::of_name(name);
        let extension = stem.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
        let format = options.format.or(match extension.as_str() {
            "db" | "db3" | "sqlite3" | "s3db" => Some(Self::Sqlite),
            "tsv" => Some(Self::Csv),
            "arrows" | "feather" => Some(Self::Arrow),
            extension => extension.parse().ok(),
        });
        let format = format
            .or(options.stated_format())
            .ok_or_else(|| IngestError::UnknownFormat { path: name.into() })?;
        if compression.is_some() && !format.is_stream() {
            return Err(IngestError::CompressedFormat { path: name.into() });
        }
        Ok((format, compression))
    }

    /// Returns whether a file has rows, judged by its name.
    pub(crate) fn is_of_rows(name: &Path) -> bool {
        let (_, stem) = Compression::of_name(name);
        // Most folders of JSON files hold one document per file.
        let is_json = stem.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        !is_json && Self::of_name(name, &IngestOptions::default()).is_ok()
    }

    /// Returns whether the format is read from beginning to end. Such an input may be compressed as a whole, and be standard input.
    pub(crate) fn is_stream(self) -> bool {
        matches!(self, Self::Csv | Self::Jsonl | Self::Arrow)
    }
}

/// Returns whether an input with these first bytes is Arrow IPC.
pub(crate) fn is_arrow(head: &[u8]) -> bool {
    head.starts_with(&ARROW_CONTINUATION) || is_arrow_file(head)
}

/// Returns whether an input with these first bytes is an Arrow file, which may have to be read from its end.
pub(crate) fn is_arrow_file(head: &[u8]) -> bool {
    head.starts_with(ARROW_FILE_MARK)
}

/// Returns whether a name says only that the file is a text.
fn is_any_text(name: &Path) -> bool {
    name.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("txt"))
}
