//! The formats of an input, and the names by which they are known.

use std::{ffi::OsStr, path::Path, str::FromStr};

use thiserror::Error;

use super::{IngestError, IngestOptions, compression::Compression};

/// The formats of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// A JSON object a line.
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
            "jsonl" | "ndjson" => Ok(Self::Jsonl),
            "arrow" => Ok(Self::Arrow),
            "sqlite" => Ok(Self::Sqlite),
            _ => Err(UnknownFormat),
        }
    }
}

impl Format {
    /// The format of what is at `path`, and how its name says that it is compressed.
    pub(super) fn of(
        path: &Path,
        options: &IngestOptions,
    ) -> Result<(Self, Option<Compression>), IngestError> {
        let metadata =
            path.metadata().map_err(|source| IngestError::Unreadable { path: path.into(), source })?;
        if metadata.is_dir() {
            return Ok((Self::Folder, None));
        }
        Self::of_name(path, options)
    }

    /// The format of a file that is called `name`, and how that says that it is compressed.
    pub(super) fn of_name(
        name: &Path,
        options: &IngestOptions,
    ) -> Result<(Self, Option<Compression>), IngestError> {
        let (compression, stem) = Compression::of_name(name);
        let extension = stem.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
        let format = options.format.or(match extension.as_str() {
            "db" => Some(Self::Sqlite),
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

    /// Whether it is read from its beginning to its end, and so may be compressed as a whole and come on standard input.
    pub(super) fn is_stream(self) -> bool {
        matches!(self, Self::Csv | Self::Jsonl | Self::Arrow)
    }
}
