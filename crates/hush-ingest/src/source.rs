//! The records of an input: the trait of all readers, and the choice of the reader for an input.

use std::{
    fs::File,
    io::Seek,
    path::{Path, PathBuf},
    slice,
};

use hush_protocol::schema::Schema;
use serde_json::Value;

#[cfg(feature = "arrow")]
use crate::formats::arrow;
use crate::{
    IngestError, IngestOptions, Input, Record, RowMap, Skipped,
    formats::{self, csv::CsvReader, folder::FolderReader, json::JsonlReader},
    input::{
        bad_rows::{BadRows, check_apart},
        compression::{Compression, peek},
        format::{Format, is_arrow_file},
        several::{Files, SeveralReader},
        stdin::StdinReader,
        text::{HEAD_BYTES, Text},
    },
    record::projection::Projection,
    remote::{RemoteUrl, Scheme},
};

/// The unit of [`Progress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressUnit {
    /// Bytes of the input.
    Bytes,
    /// Records.
    Rows,
}

/// The part of an input that has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The amount read, in `unit`s.
    pub read: u64,
    /// The amount in total, if known. The total is an estimate: a file may grow, and a SQLite table may have gaps.
    pub total: Option<u64>,
    /// The unit of both counts.
    pub unit: ProgressUnit,
}

/// A field that spans several lines of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongField {
    /// The path of the text.
    pub path: PathBuf,
    /// The length of the field in bytes.
    pub bytes: u64,
    /// The line of the field's first byte, from 1.
    pub first_line: u64,
    /// The line of the field's last byte.
    pub last_line: u64,
}

/// The facts that a reader knows at the end of its input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of rows that became records.
    pub rows: u64,
    /// The number of bad rows that were left out, and the file that has them.
    pub bad_rows: Option<(u64, PathBuf)>,
    /// The row of each record.
    pub row_map: RowMap,
    /// The columns in use.
    pub columns: Option<Schema>,
    /// The longest field of a CSV text that spans several lines: a stray quote makes one.
    pub longest_field: Option<LongField>,
    /// The position of the database behind which changes may be missing.
    pub position: Option<u64>,
}

/// A reader of one format.
pub(crate) trait Reader: Iterator<Item = Result<Record, IngestError>> + Send {
    /// Returns how much has been read.
    fn progress(&self) -> Progress;
    /// Counts what is in the input but not among its records.
    fn skipped(&self) -> Skipped {
        Skipped::default()
    }
    /// Returns the columns in use, known once a record has been read; `None` for an input without columns.
    fn projection(&self) -> Option<&Projection>;
    /// Returns the columns in use. They are known once a record has been read, and their types at the end.
    fn columns(&self) -> Option<Schema> {
        self.projection().map(Projection::schema)
    }
    /// Returns the current file of several, with its unique number.
    fn file(&self) -> Option<(usize, &Path)> {
        None
    }
    /// Returns the last row for the file of bad rows: the fields of a row of CSV, or the text of an object.
    fn content(&self) -> Option<Value> {
        None
    }
    /// Returns the position of a database behind which changes may be missing in what is read.
    fn log_position(&self) -> Option<u64> {
        None
    }
    /// Returns the longest field so far that spans several lines.
    fn longest_field(&self) -> Option<LongField> {
        None
    }
}

/// The records of an input, in order. After an error there are no more.
pub struct Source {
    reader: Box<dyn Reader>,
    path: PathBuf,
    keyed: bool,
    /// The number of records so far.
    rows: u64,
    row_map: RowMap,
    bad_rows: Option<BadRows>,
    expect_rows: Option<u64>,
    ended: bool,
}

impl Source {
    /// Returns whether the records have keys; if not, they are looked up by row.
    pub fn has_keys(&self) -> bool {
        self.keyed
    }

    /// Returns how much has been read, for a progress bar.
    pub fn progress(&self) -> Progress {
        self.reader.progress()
    }

    /// Returns the columns in use. They are known once a record has been read, and their types at the end.
    pub fn columns(&self) -> Option<Schema> {
        self.reader.columns()
    }

    /// Returns a summary of what has been read so far.
    pub fn summary(&self) -> Summary {
        Summary {
            rows: self.rows,
            bad_rows: self.bad_rows.as_ref().map(|bad| (bad.count(), bad.path().into())),
            row_map: self.row_map.clone(),
            columns: self.reader.columns(),
            longest_field: self.reader.longest_field(),
            position: self.reader.log_position(),
        }
    }

    /// Counts what is in a folder of files but not among its records.
    pub fn skipped(&self) -> Skipped {
        self.reader.skipped()
    }
}

impl Source {
    /// Returns the number of bad rows so far.
    fn bad_rows(&self) -> u64 {
        self.bad_rows.as_ref().map_or(0, BadRows::count)
    }

    /// Leaves out a bad row, if the options allow it.
    ///
    /// # Errors
    /// The error of the row, if the row cannot be left out; the error of the file of bad rows.
    fn leave_out(&mut self, error: IngestError) -> Result<(), IngestError> {
        let (Some(bad_rows), Some(place)) = (&mut self.bad_rows, error.bad_row()) else { return Err(error) };
        bad_rows.write(place, &error, self.reader.content().as_ref())?;
        self.row_map.note(false, self.reader.file());
        Ok(())
    }

    /// Checks what is known only at the end of the input.
    fn finish(&mut self) -> Result<(), IngestError> {
        self.bad_rows.as_mut().map_or(Ok(()), BadRows::flush)?;
        let path = &self.path;
        let actual = self.rows + self.bad_rows();
        if let Some(expected) = self.expect_rows.filter(|&expected| expected != actual) {
            return Err(IngestError::RowCount { path: path.clone(), expected, actual });
        }
        if let (0, Some(bad)) = (self.rows, self.bad_rows.as_ref().filter(|bad| bad.count() > 0)) {
            return Err(IngestError::AllBad {
                path: path.clone(),
                count: bad.count(),
                file: bad.path().into(),
            });
        }
        if self.rows == 0 {
            return Err(IngestError::EmptyInput { path: path.clone() });
        }
        self.reader.projection().map_or(Ok(()), |projection| projection.check_normalized(path))
    }
}

impl Iterator for Source {
    type Item = Result<Record, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let error = match self.reader.next() {
                Some(Ok(record)) => {
                    self.rows += 1;
                    self.row_map.note(true, self.reader.file());
                    return Some(Ok(record));
                }
                Some(Err(error)) => self.leave_out(error).err(),
                None => {
                    self.ended = true;
                    self.finish().err()
                }
            };
            if let Some(error) = error {
                self.ended = true;
                return Some(Err(error));
            }
        }
        None
    }
}

/// Opens an input.
///
/// # Errors
/// The input cannot be opened, its format is unknown, or the options do not fit it. The error of a row, or
/// [`IngestError::EmptyInput`], is an item of the [`Source`] instead.
pub fn open(input: &Input, options: &IngestOptions) -> Result<Source, IngestError> {
    let files = Files::of(input, options)?;
    if let Some(bad_rows) = &options.bad_rows {
        check_apart(bad_rows, files.as_ref().map_or(slice::from_ref(input), Files::inputs))?;
    }
    let reader = match files {
        Some(files) => Box::new(SeveralReader::open(input.path(), files, options)?),
        None => open_one(input, options)?,
    };
    // A folder of files has keys, whatever the options are.
    let keyed = !options.key.is_empty() || reader.columns().is_some_and(|columns| !columns.key.is_empty());
    Ok(Source {
        reader,
        path: input.path().into(),
        keyed,
        rows: 0,
        row_map: RowMap::default(),
        bad_rows: options.bad_rows.as_deref().map(BadRows::create).transpose()?,
        expect_rows: options.expect_rows,
        ended: false,
    })
}

/// Opens a single input.
pub(crate) fn open_one(input: &Input, options: &IngestOptions) -> Result<Box<dyn Reader>, IngestError> {
    Ok(match input {
        Input::Stdin => Box::new(StdinReader::new(options)?),
        Input::Url(url) => {
            if scheme(url)? != Scheme::Postgres {
                return Err(IngestError::NotFetched { path: url.shown().into() });
            }
            options.check(url.shown(), Format::Postgres)?;
            formats::open_postgres(url.shown(), url, options)?
        }
        Input::Fetched(fetched) => fetched.open(options)?,
        #[cfg(feature = "arrow")]
        Input::Batches(batches) => {
            let name = batches.name();
            options.check(name, Format::Arrow)?;
            Box::new(arrow::ArrowReader::of_batches(name, batches.take()?, options)?)
        }
        Input::Rows(rows) => Box::new(rows.reader()),
        Input::Path(path) => {
            let (format, compression) = Format::of(path, options)?;
            if format == Format::Folder {
                Box::new(FolderReader::open(path, options)?)
            } else {
                options.check(path, format)?;
                open_file(path, path, format, compression, options)?
            }
        }
        Input::Several(several) => {
            return Err(IngestError::NotAmongSeveral { path: several.name().into() });
        }
    })
}

/// Returns the kind of server that the URL of an input leads to.
pub(crate) fn scheme(url: &RemoteUrl) -> Result<Scheme, IngestError> {
    url.scheme().map_err(|nearest| IngestError::UnknownScheme { path: url.shown().into(), nearest })
}

/// Opens a reader of the file at `at`. Messages name `path`.
pub(crate) fn open_file(
    at: &Path,
    path: &Path,
    format: Format,
    compression: Option<Compression>,
    options: &IngestOptions,
) -> Result<Box<dyn Reader>, IngestError> {
    let unreadable = |source| IngestError::Unreadable { path: path.into(), source };
    let file = File::open(at).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    let text = |file| Text::new(file, Some(bytes), compression).map_err(unreadable);
    Ok(match format {
        Format::Csv => Box::new(CsvReader::new(path, text(file)?, options)?),
        Format::Parquet => formats::open_parquet(path, (file, bytes), options)?,
        Format::Arrow => {
            let (head, _) = peek(&file, HEAD_BYTES).map_err(unreadable)?;
            if compression.is_none() && is_arrow_file(&head) {
                return formats::open_arrow_file(path, (file, bytes), options);
            }
            (&file).rewind().map_err(unreadable)?;
            formats::open_arrow_stream(path, text(file)?, options)?
        }
        Format::Jsonl => Box::new(JsonlReader::new(path, text(file)?, options)),
        // SQLite opens the file itself; here that comes last, since its errors say less.
        Format::Sqlite => formats::open_sqlite(path, at, options)?,
        Format::Folder | Format::Postgres => return Err(IngestError::UnknownFormat { path: path.into() }),
    })
}
