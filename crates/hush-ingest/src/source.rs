//! The records of an input: what every reader of a format does, and which reader an input gets.

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

/// The unit that [`Progress`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressUnit {
    /// Bytes of the input.
    Bytes,
    /// Records.
    Rows,
}

/// How much of an input has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The amount that has been read, in `unit`s.
    pub read: u64,
    /// The amount to read, if it is known. An estimate: a file may grow, and a SQLite table may have gaps.
    pub total: Option<u64>,
    /// The unit of the amounts.
    pub unit: ProgressUnit,
}

/// A field that spans several lines of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongField {
    /// The text.
    pub path: PathBuf,
    /// Bytes of the field.
    pub bytes: u64,
    /// The line of its first byte, from 1.
    pub first_line: u64,
    /// The line of its last byte.
    pub last_line: u64,
}

/// The facts that a reader knows at the end of its input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rows that became records.
    pub rows: u64,
    /// The number of bad rows that were left out, and the file that has them.
    pub bad_rows: Option<(u64, PathBuf)>,
    /// Which rows the records are.
    pub row_map: RowMap,
    /// The columns in use.
    pub columns: Option<Schema>,
    /// The longest field of a CSV text that spans several lines: a stray quote shows there.
    pub longest_field: Option<LongField>,
}

/// A reader of one format.
pub(crate) trait Reader: Iterator<Item = Result<Record, IngestError>> + Send {
    /// Returns how much has been read.
    fn progress(&self) -> Progress;
    /// Returns the parts of the input that are not among its records.
    fn skipped(&self) -> Skipped {
        Skipped::default()
    }
    /// Returns the columns in use, known once a record has been read. `None` of an input without columns.
    fn projection(&self) -> Option<&Projection>;
    /// Returns the columns in use; known once a record has been read, and their types at the end.
    fn columns(&self) -> Option<Schema> {
        self.projection().map(Projection::schema)
    }
    /// Returns the file at hand, of several, and a number that no other of these has.
    fn file(&self) -> Option<(usize, &Path)> {
        None
    }
    /// Returns the row that was read last, for the file of bad rows: the fields of a row of CSV, the text of an object.
    fn content(&self) -> Option<Value> {
        None
    }
    /// Returns the longest field so far that spans several lines.
    fn longest_field(&self) -> Option<LongField> {
        None
    }
}

/// The records of an input, in its order. After an error there are no more.
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

    /// Returns the columns in use; known once a record has been read, and their types at the end.
    pub fn columns(&self) -> Option<Schema> {
        self.reader.columns()
    }

    /// Returns the facts of the input as far as it has been read.
    pub fn summary(&self) -> Summary {
        Summary {
            rows: self.rows,
            bad_rows: self.bad_rows.as_ref().map(|bad| (bad.count(), bad.path().into())),
            row_map: self.row_map.clone(),
            columns: self.reader.columns(),
            longest_field: self.reader.longest_field(),
        }
    }

    /// Returns the files of a folder that are not among its records.
    pub fn skipped(&self) -> Skipped {
        self.reader.skipped()
    }
}

impl Source {
    /// Returns the number of bad rows so far.
    fn bad_rows(&self) -> u64 {
        self.bad_rows.as_ref().map_or(0, BadRows::count)
    }

    /// Leaves a bad row out, if bad rows are left out.
    ///
    /// # Errors
    /// The error of the row, if it is none that can be left out; or that of the file of bad rows.
    fn leave_out(&mut self, error: IngestError) -> Result<(), IngestError> {
        let (Some(bad_rows), Some(place)) = (&mut self.bad_rows, error.bad_row()) else { return Err(error) };
        bad_rows.write(place, &error, self.reader.content().as_ref())?;
        self.row_map.note(false, self.reader.file());
        Ok(())
    }

    /// Checks what is known at the end of the input.
    fn finish(&mut self) -> Result<(), IngestError> {
        self.bad_rows.as_mut().map_or(Ok(()), BadRows::flush)?;
        let (path, actual) = (&self.path, self.rows + self.bad_rows());
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
/// If the input cannot be opened, its format is unknown, or the options do not fit it. What is wrong with a row
/// is an item of the [`Source`], [`IngestError::EmptyInput`] included.
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

/// Opens an input that is not several.
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

/// Returns where the URL of an input leads.
pub(crate) fn scheme(url: &RemoteUrl) -> Result<Scheme, IngestError> {
    url.scheme().map_err(|nearest| IngestError::UnknownScheme { path: url.shown().into(), nearest })
}

/// Returns a reader of the file at `at`; `path` is for messages.
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
        // It opens the file itself, and would say less about why it cannot.
        Format::Sqlite => formats::open_sqlite(path, at, options)?,
        Format::Folder | Format::Postgres => return Err(IngestError::UnknownFormat { path: path.into() }),
    })
}
