//! The rows of a CSV text, field by field. Text that the dialect forbids is an error and never part of a field.
//!
//! The scanner is a state machine of one byte. Runs of ordinary bytes are found with `memchr` and copied as a whole.

use std::io::{self, BufRead};

use memchr::{memchr_iter, memchr2, memchr3};

use crate::{CsvDialect, LongField, MAX_ROW_SIZE, input::text::Text};

/// The number of bytes of a field that an error shows.
const SHOWN_BYTES: usize = 24;
/// The number of bytes of a field that are searched one by one.
const NEAR_BYTES: usize = 8;
const ESCAPE: u8 = b'\\';

/// A reader of rows, which counts lines.
pub(crate) struct CsvRows {
    pub(crate) text: Text,
    separator: u8,
    quote: Option<u8>,
    backslash: bool,
    /// The line of the next byte, from 1.
    line: u64,
    row: CsvRow,
    longest: Option<LongField>,
    /// Whether the text is in the middle of a line that has a fault.
    is_in_fault: bool,
}

/// A row that was read.
#[derive(Default)]
struct CsvRow {
    /// The line of its first byte.
    line: u64,
    /// All fields, one after another, without their quotes and escapes.
    bytes: Vec<u8>,
    /// The end of each field in `bytes`.
    ends: Vec<usize>,
    /// The line of the first byte of the current field.
    field_line: u64,
}

/// The reason why there is no row.
#[derive(Debug)]
pub(crate) enum CsvFault {
    /// The text cannot be read.
    Io(io::Error),
    /// The row is longer than [`MAX_ROW_SIZE`].
    TooLong,
    /// The text ends within a quoted field, whose quote is on `line`.
    Unclosed { line: u64 },
    /// A quoted field from `line` to `last_line` has text behind its closing quote.
    BehindQuote { line: u64, last_line: u64, shown: String, is_escape: bool },
}

impl From<io::Error> for CsvFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScanState {
    /// Before the first byte of a field.
    FieldStart,
    Unquoted,
    Quoted,
    /// Behind a backslash in a quoted field.
    Escape,
    /// Behind a quote in a quoted field.
    Quote,
}

impl CsvRow {
    /// Begins a row on `line`.
    fn start_at(&mut self, line: u64) {
        self.bytes.clear();
        self.ends.clear();
        self.line = line;
        self.field_line = line;
    }

    fn start(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn field(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }
}

impl CsvRows {
    /// Reads from `text`. `separator` ends a field.
    pub(crate) fn new(text: Text, separator: u8, dialect: CsvDialect) -> Self {
        let CsvDialect { quote, backslash, .. } = dialect;
        Self {
            text,
            separator,
            quote,
            backslash,
            line: 1,
            row: CsvRow::default(),
            longest: None,
            is_in_fault: false,
        }
    }

    /// Returns the line of the first byte of the last row, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.row.line
    }

    /// Returns the number of fields of the last row.
    pub(crate) fn len(&self) -> usize {
        self.row.ends.len()
    }

    /// Returns a field of the last row.
    pub(crate) fn field(&self, index: usize) -> &[u8] {
        self.row.field(index)
    }

    /// Returns the longest field so far that spans several lines.
    pub(crate) fn longest(&self) -> Option<LongField> {
        self.longest.clone()
    }

    /// Skips the rest of a line.
    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.text.fill_buf()?;
            let end = memchr2(b'\n', b'\r', buffer);
            let (count, is_lf) = end.map_or((buffer.len(), false), |at| (at + 1, buffer[at] == b'\n'));
            self.line += u64::from(is_lf);
            self.text.consume(count);
            if end.is_some() || count == 0 {
                return Ok(());
            }
        }
    }

    /// Skips line ends, and with them empty lines. Returns `false` at the end of the text.
    fn skip_line_ends(&mut self) -> io::Result<bool> {
        loop {
            let buffer = self.text.fill_buf()?;
            let ends = buffer.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
            let count = buffer.len();
            let is_end = buffer.is_empty();
            self.line += buffer[..ends].iter().filter(|byte| **byte == b'\n').count() as u64;
            self.text.consume(ends);
            if is_end || ends < count {
                return Ok(!is_end);
            }
        }
    }

    /// Reads the next row; returns `false` at the end of the text.
    ///
    /// # Errors
    /// [`CsvFault`]. After [`CsvFault::BehindQuote`] the next row begins on the next line; after any other there are no more rows.
    pub(crate) fn read(&mut self) -> Result<bool, CsvFault> {
        if std::mem::take(&mut self.is_in_fault) {
            self.skip_line()?;
        }
        if !self.skip_line_ends()? {
            return Ok(false);
        }
        let Self { text, separator, quote, backslash, line, row, longest, is_in_fault } = self;
        let separator = *separator;
        let quote = *quote;
        row.start_at(*line);
        let mut state = ScanState::FieldStart;
        loop {
            let buffer = text.fill_buf()?;
            if buffer.is_empty() {
                return end_text(state, row, *line, longest);
            }
            let mut at = 0;
            while let Some(&byte) = buffer.get(at) {
                match state {
                    ScanState::FieldStart if quote == Some(byte) => {
                        at += 1;
                        state = ScanState::Quoted;
                    }
                    ScanState::FieldStart => state = ScanState::Unquoted,
                    ScanState::Quoted => {
                        let run = quoted_run(&buffer[at..], quote, *backslash);
                        row.bytes.extend_from_slice(run);
                        *line += memchr_iter(b'\n', run).count() as u64;
                        at += run.len();
                        if let Some(&byte) = buffer.get(at) {
                            at += 1;
                            state = if quote == Some(byte) { ScanState::Quote } else { ScanState::Escape };
                        }
                    }
                    ScanState::Escape => {
                        at += escaped(row, byte, quote);
                        state = ScanState::Quoted;
                    }
                    ScanState::Quote if quote == Some(byte) => {
                        row.bytes.push(byte);
                        at += 1;
                        state = ScanState::Quoted;
                    }
                    ScanState::Unquoted | ScanState::Quote => {
                        if state == ScanState::Unquoted {
                            at += take_plain(row, &buffer[at..], separator);
                        }
                        match buffer.get(at) {
                            None => {}
                            Some(&byte) if byte == separator => {
                                end_field(row, *line, longest);
                                at += 1;
                                state = ScanState::FieldStart;
                            }
                            // The LF of a CRLF is skipped with empty lines.
                            Some(&end @ (b'\n' | b'\r')) => {
                                end_field(row, *line, longest);
                                *line += u64::from(end == b'\n');
                                text.consume(at + 1);
                                return Ok(true);
                            }
                            Some(_) => {
                                let fault = behind_quote(row, *line, &buffer[at..]);
                                text.consume(at);
                                *is_in_fault = true;
                                return Err(fault);
                            }
                        }
                    }
                }
            }
            text.consume(at);
            if (row.bytes.len() + row.ends.len()) as u64 >= MAX_ROW_SIZE {
                return Err(CsvFault::TooLong);
            }
        }
    }
}

/// Ends the last row, at the end of the text.
fn end_text(
    state: ScanState,
    row: &mut CsvRow,
    line: u64,
    longest: &mut Option<LongField>,
) -> Result<bool, CsvFault> {
    match state {
        ScanState::Quoted | ScanState::Escape => Err(CsvFault::Unclosed { line: row.field_line }),
        ScanState::FieldStart | ScanState::Unquoted | ScanState::Quote => {
            end_field(row, line, longest);
            Ok(true)
        }
    }
}

/// Appends the bytes before a separator or line end to the row, and returns their number.
fn take_plain(row: &mut CsvRow, rest: &[u8], separator: u8) -> usize {
    let run = plain_run(rest, separator);
    row.bytes.extend_from_slice(&rest[..run]);
    run
}

/// Appends the byte behind a backslash if it is escaped. Returns how many bytes it took. Other backslashes stand for themselves.
fn escaped(row: &mut CsvRow, byte: u8, quote: Option<u8>) -> usize {
    let is_escaped = byte == ESCAPE || quote == Some(byte);
    row.bytes.push(if is_escaped { byte } else { ESCAPE });
    usize::from(is_escaped)
}

/// Returns the bytes of `rest` before a quote or, in this dialect, an escaping backslash.
fn quoted_run(rest: &[u8], quote: Option<u8>, backslash: bool) -> &[u8] {
    let end = match (quote, backslash) {
        (Some(quote), true) => memchr2(quote, ESCAPE, rest),
        (Some(quote), false) => memchr::memchr(quote, rest),
        (None, _) => None,
    };
    &rest[..end.unwrap_or(rest.len())]
}

/// Returns the number of bytes of `rest` before a separator or line end. Most fields are too short for a vector search to pay.
fn plain_run(rest: &[u8], separator: u8) -> usize {
    let near = &rest[..rest.len().min(NEAR_BYTES)];
    let found = near.iter().position(|byte: &u8| matches!(*byte, b'\n' | b'\r') || *byte == separator);
    if let Some(at) = found {
        return at;
    }
    let far = memchr3(separator, b'\n', b'\r', &rest[near.len()..]);
    far.map_or(rest.len(), |at| near.len() + at)
}

/// Ends the current field, whose last byte is on `line`.
fn end_field(row: &mut CsvRow, line: u64, longest: &mut Option<LongField>) {
    if row.field_line < line {
        let bytes = (row.bytes.len() - row.start()) as u64;
        if longest.as_ref().is_none_or(|longest| longest.bytes < bytes) {
            let first_line = row.field_line;
            let last_line = line;
            *longest = Some(LongField { bytes, first_line, last_line, ..LongField::default() });
        }
    }
    row.ends.push(row.bytes.len());
    row.field_line = line;
}

/// Returns the fault of text behind a closing quote on `last_line`, where `rest` is that text. Ends the row with two more fields.
fn behind_quote(row: &mut CsvRow, last_line: u64, rest: &[u8]) -> CsvFault {
    let field = &row.bytes[row.start()..];
    let own = &field[field.len().saturating_sub(SHOWN_BYTES)..];
    let line_end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(rest.len());
    let line = &rest[..line_end];
    let rest = &rest[..line_end.min(SHOWN_BYTES)];
    let own = own.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = [own, b"\"", rest].concat();
    let shown = String::from_utf8_lossy(&text).replace(char::is_control, "\u{fffd}");
    let fault =
        CsvFault::BehindQuote { line: row.field_line, last_line, shown, is_escape: field.ends_with(b"\\") };
    // The bytes that the quote swallowed become a field of the bad row, and the text behind it another.
    row.ends.push(row.bytes.len());
    row.bytes.extend_from_slice(line);
    row.ends.push(row.bytes.len());
    fault
}
