//! CSV: RFC 4180, in UTF-8, with or without a byte order mark.

pub(crate) mod header;
pub(crate) mod rows;

use std::path::{Path, PathBuf};

use hush_protocol::column_type::PlainType;
use serde_json::Value;

use crate::{
    IngestError, IngestOptions, LongField, MAX_ROW_SIZE, Place, Progress, Reader, Record,
    formats::csv::rows::{CsvFault, CsvRows},
    input::{compression::Compression, text::Text},
    record::{cell::Cell, projection::Projection},
};

/// Reads the rows of a CSV text.
pub(crate) struct CsvReader {
    path: PathBuf,
    rows: CsvRows,
    separator: u8,
    projection: Projection,
    /// The number of fields of the first row.
    width: usize,
    row: u64,
    /// Whether the last row read is a record not yet returned: a first row that is no header.
    is_waiting: bool,
}

impl CsvReader {
    /// Reads from `text`. Messages name `path`.
    pub(crate) fn new(path: &Path, mut text: Text, options: &IngestOptions) -> Result<Self, IngestError> {
        text.skip_mark(path)?;
        let separator = options.csv.separator.unwrap_or_else(|| separator_of(path));
        let mut rows = CsvRows::new(text, separator, options.csv);
        match rows.read() {
            Ok(true) => {}
            Ok(false) => return Err(IngestError::EmptyInput { path: path.into() }),
            Err(fault) => return Err(refused(place(path, 0, &rows), fault)),
        }
        let is_waiting = options.csv.header == Some(false);
        let names = if is_waiting {
            (1..=rows.len()).map(|number| number.to_string()).collect()
        } else {
            header::names(path, &rows, options)?
        };
        let projection = Projection::new(path, &names, options)?.typed(|_| PlainType::TEXT.into());
        Ok(Self { path: path.into(), width: names.len(), rows, separator, projection, row: 0, is_waiting })
    }

    /// Returns the place of the last row.
    fn place(&self) -> Place {
        place(&self.path, self.row, &self.rows)
    }

    fn record(&self) -> Result<Record, IngestError> {
        let expected = self.width as u64;
        let actual = self.rows.len() as u64;
        if expected != actual {
            let separator = char::from(self.separator);
            return Err(IngestError::RaggedRow { place: self.place(), expected, actual, separator });
        }
        self.projection.record(
            || self.place(),
            |column| {
                let field = std::str::from_utf8(self.rows.field(column.index));
                let field = field.map_err(|_| IngestError::BadUtf8 {
                    place: self.place(),
                    column: Some(column.name.clone()),
                })?;
                Ok(Cell::Text(field.into()))
            },
        )
    }
}

impl Iterator for CsvReader {
    type Item = Result<Record, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        let is_row = if std::mem::take(&mut self.is_waiting) { Ok(true) } else { self.rows.read() };
        self.row += 1;
        match is_row {
            Ok(true) => Some(self.record()),
            Ok(false) => None,
            Err(fault) => Some(Err(refused(self.place(), fault))),
        }
    }
}

impl Reader for CsvReader {
    fn progress(&self) -> Progress {
        self.rows.text.progress()
    }

    fn projection(&self) -> Option<&Projection> {
        Some(&self.projection)
    }

    fn content(&self) -> Option<Value> {
        let fields = (0..self.rows.len()).map(|index| String::from_utf8_lossy(self.rows.field(index)));
        Some(fields.collect())
    }

    fn longest_field(&self) -> Option<LongField> {
        Some(LongField { path: self.path.clone(), ..self.rows.longest()? })
    }
}

/// Returns the separator of a file of this name.
fn separator_of(name: &Path) -> u8 {
    let (_, stem) = Compression::of_name(name);
    let is_tsv = stem.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tsv"));
    if is_tsv { b'\t' } else { b',' }
}

/// Returns the error for a fault in the row at `place`.
fn refused(place: Place, fault: CsvFault) -> IngestError {
    match fault {
        CsvFault::Io(source) => IngestError::Unreadable { path: place.path, source },
        CsvFault::TooLong => IngestError::RowTooLong { place, limit: MAX_ROW_SIZE },
        CsvFault::Unclosed { line } => IngestError::UnclosedQuote { place, line },
        CsvFault::BehindQuote { line, last_line, shown, is_escape } => {
            IngestError::BehindQuote { place, line, last_line, shown, is_escape }
        }
    }
}

/// Returns the place of the last row, number `row`.
pub(crate) fn place(path: &Path, row: u64, rows: &CsvRows) -> Place {
    Place { path: path.into(), row, line: Some(rows.line()) }
}
