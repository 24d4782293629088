//! CSV: RFC 4180 with a header, in UTF-8, with or without a byte order mark.

use std::{
    io,
    path::{Path, PathBuf},
};

use csv::{ByteRecord, ErrorKind, ReaderBuilder};
use hush_protocol::fields::Fields;

use super::{
    IngestError, IngestOptions, MAX_ROW_SIZE, Place, Progress, Reader, Record,
    cell::Cell,
    csv_window::{RowTooLong, Window},
    record::Projection,
    text::Text,
};

/// Reads the rows of a CSV text.
pub(super) struct CsvReader {
    path: PathBuf,
    reader: csv::Reader<Window>,
    projection: Projection,
    fields: ByteRecord,
    row: u64,
}

impl CsvReader {
    /// Reads from `text`; `path` is for messages.
    pub(super) fn new(path: &Path, text: Text, options: &IngestOptions) -> Result<Self, IngestError> {
        let mut reader = ReaderBuilder::new().buffer_capacity(1 << 16).from_reader(Window::new(text));
        let header = match reader.byte_headers() {
            Ok(header) => header.clone(),
            Err(error) => return Err(refused(place(path, 0, &reader), error)),
        };
        if header.is_empty() {
            return Err(IngestError::EmptyInput { path: path.into() });
        }
        let names = header.iter().map(|name| String::from_utf8(name.into())).collect::<Result<Vec<_>, _>>();
        let names =
            names.map_err(|_| IngestError::BadUtf8 { place: place(path, 0, &reader), column: None })?;
        let projection = Projection::new(path, &names, options)?;
        Ok(Self { path: path.into(), reader, projection, fields: ByteRecord::new(), row: 0 })
    }

    fn end_row(&mut self) {
        self.row += 1;
        self.reader.get_mut().end_row();
    }

    /// The place of the last row.
    fn place(&self) -> Place {
        place(&self.path, self.row, &self.reader)
    }
}

impl Iterator for CsvReader {
    type Item = Result<Record, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.reader.position().byte();
        self.reader.get_mut().start_row(start);
        match self.reader.read_byte_record(&mut self.fields) {
            Ok(true) => self.end_row(),
            Ok(false) => {
                let is_open = self.reader.get_ref().ends_in_quotes();
                return is_open.then(|| Err(IngestError::UnclosedQuote { place: self.place() }));
            }
            Err(error) => {
                self.end_row();
                return Some(Err(refused(self.place(), error)));
            }
        }
        Some(self.projection.record(
            || self.place(),
            |column| {
                let field = std::str::from_utf8(&self.fields[column.index]);
                let field = field.map_err(|_| IngestError::BadUtf8 {
                    place: self.place(),
                    column: Some(column.name.clone()),
                })?;
                Ok(Cell::Text(field.into()))
            },
        ))
    }
}

impl Reader for CsvReader {
    fn progress(&self) -> Progress {
        self.reader.get_ref().text.progress()
    }

    fn fields(&self) -> Option<Fields> {
        self.projection.fields()
    }
}

/// What the parser refused about the row at `place`.
fn refused(place: Place, error: csv::Error) -> IngestError {
    match error.into_kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            IngestError::RaggedRow { place, expected: expected_len, actual: len }
        }
        ErrorKind::Io(source) if source.get_ref().is_some_and(|inner| inner.is::<RowTooLong>()) => {
            IngestError::RowTooLong { place, limit: MAX_ROW_SIZE }
        }
        ErrorKind::Io(source) => IngestError::Unreadable { path: place.path, source },
        other => IngestError::Unreadable {
            path: place.path,
            source: io::Error::new(io::ErrorKind::InvalidData, format!("{other:?}")),
        },
    }
}

/// The place of the last row, number `row`. The parser does not count the lines within quotes.
fn place(path: &Path, row: u64, reader: &csv::Reader<Window>) -> Place {
    Place { path: path.into(), row, line: Some(reader.get_ref().line()) }
}
