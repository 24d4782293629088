//! CSV: RFC 4180 with a header, in UTF-8, with or without a byte order mark.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use csv::{ByteRecord, ErrorKind, ReaderBuilder};
use hush_protocol::fields::Fields;

use super::{
    IngestError, IngestOptions, MAX_ROW_SIZE, Place, Progress, ProgressUnit, Reader, Record, cell::Cell,
    open_file, record::Projection,
};

/// Reads the rows of a CSV file.
pub(super) struct CsvReader {
    path: PathBuf,
    reader: csv::Reader<RowLimit<File>>,
    /// The byte at which a row becomes too long.
    limit: Arc<AtomicU64>,
    projection: Projection,
    fields: ByteRecord,
    row: u64,
    /// The byte at which the current row starts.
    start: u64,
    bytes: u64,
}

impl CsvReader {
    pub(super) fn open(path: &Path, options: &IngestOptions) -> Result<Self, IngestError> {
        let (file, bytes) = open_file(path)?;
        let limit = Arc::new(AtomicU64::new(MAX_ROW_SIZE));
        let file = RowLimit { inner: file, read: 0, limit: limit.clone() };
        let mut reader = ReaderBuilder::new().buffer_capacity(1 << 16).from_reader(file);
        let header = match reader.byte_headers() {
            Ok(header) => header.clone(),
            Err(error) => return Err(refused(path, 0, 0, error)),
        };
        if header.is_empty() {
            return Err(IngestError::EmptyInput { path: path.into() });
        }
        let names = header.iter().map(|name| String::from_utf8(name.into())).collect::<Result<Vec<_>, _>>();
        let names = names.map_err(|_| IngestError::BadUtf8 { place: place(path, 0, 0), column: None })?;
        let projection = Projection::new(path, &names, options)?;
        Ok(Self {
            path: path.into(),
            reader,
            limit,
            projection,
            fields: ByteRecord::new(),
            row: 0,
            start: 0,
            bytes,
        })
    }

    /// At the end of the file: the parser takes a quote that was never closed for closed there, so the last row is
    /// read again to see.
    fn check_last_row(&self) -> Result<(), IngestError> {
        let read = || {
            let mut row = Vec::new();
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(self.start))?;
            file.take(MAX_ROW_SIZE).read_to_end(&mut row)?;
            Ok(row)
        };
        let row = read().map_err(|source| IngestError::Unreadable { path: self.path.clone(), source })?;
        if ends_in_quotes(&row) {
            return Err(IngestError::UnclosedQuote { place: place(&self.path, self.row, self.start) });
        }
        Ok(())
    }
}

impl Iterator for CsvReader {
    type Item = Result<Record, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.reader.position().byte();
        self.limit.store(start + MAX_ROW_SIZE, Relaxed);
        match self.reader.read_byte_record(&mut self.fields) {
            Ok(false) => return self.check_last_row().err().map(Err),
            Ok(true) => {}
            Err(error) => return Some(Err(refused(&self.path, self.row + 1, start, error))),
        }
        (self.row, self.start) = (self.row + 1, start);
        let place = || place(&self.path, self.row, start);
        Some(self.projection.record(place, |column| {
            let field = std::str::from_utf8(&self.fields[column.index]);
            let field = field
                .map_err(|_| IngestError::BadUtf8 { place: place(), column: Some(column.name.clone()) })?;
            Ok(Cell::Text(field.into()))
        }))
    }
}

impl Reader for CsvReader {
    fn progress(&self) -> Progress {
        let read = self.reader.position().byte();
        Progress { read, total: Some(self.bytes), unit: ProgressUnit::Bytes }
    }

    fn fields(&self) -> Option<Fields> {
        self.projection.fields()
    }
}

/// What the parser refused about the row that starts at byte `start`.
fn refused(path: &Path, row: u64, start: u64, error: csv::Error) -> IngestError {
    match error.into_kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            IngestError::RaggedRow { place: place(path, row, start), expected: expected_len, actual: len }
        }
        ErrorKind::Io(source) if source.get_ref().is_some_and(|inner| inner.is::<RowLimitReached>()) => {
            IngestError::RowTooLong { place: place(path, row, start), limit: MAX_ROW_SIZE }
        }
        ErrorKind::Io(source) => IngestError::Unreadable { path: path.into(), source },
        other => IngestError::Unreadable {
            path: path.into(),
            source: io::Error::new(io::ErrorKind::InvalidData, format!("{other:?}")),
        },
    }
}

/// The place of the row that starts at byte `start`. The parser does not count the lines within quotes, so the file
/// is read again, up to that byte; without a line if that fails.
fn place(path: &Path, row: u64, start: u64) -> Place {
    Place { path: path.into(), row, line: line_at(path, start).ok() }
}

/// Whether a quoted field is still open at the end of `row`.
fn ends_in_quotes(row: &[u8]) -> bool {
    #[derive(PartialEq)]
    enum State {
        FieldStart,
        Unquoted,
        Quoted,
        /// After a quote in a quoted field, which ends it unless another quote follows.
        Quote,
    }
    let end = row.iter().fold(State::FieldStart, |state, byte| match (state, byte) {
        (State::Quoted, b'"') => State::Quote,
        (State::Quoted, _) | (State::FieldStart | State::Quote, b'"') => State::Quoted,
        (_, b',' | b'\r' | b'\n') => State::FieldStart,
        _ => State::Unquoted,
    });
    end == State::Quoted
}

/// The line, from 1, of the first byte at or after `start` that does not end a line.
fn line_at(path: &Path, start: u64) -> io::Result<u64> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let (mut line, mut left) = (1, start);
    while left > 0 {
        let buffer = file.fill_buf()?;
        let taken = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if taken == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line += buffer[..taken].iter().filter(|&&byte| byte == b'\n').count() as u64;
        file.consume(taken);
        left -= taken as u64;
    }
    for byte in file.bytes() {
        match byte? {
            b'\n' => line += 1,
            b'\r' => {}
            _ => break,
        }
    }
    Ok(line)
}

/// Fails instead of reading on when the row being read is too long: a quote that never closes would otherwise
/// read the rest of the file into memory.
struct RowLimit<R> {
    inner: R,
    read: u64,
    limit: Arc<AtomicU64>,
}

#[derive(Debug, thiserror::Error)]
#[error("row too long")]
struct RowLimitReached;

impl<R: Read> Read for RowLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read >= self.limit.load(Relaxed) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, RowLimitReached));
        }
        let count = self.inner.read(buffer)?;
        self.read += count as u64;
        Ok(count)
    }
}
