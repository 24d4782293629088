//! The bytes of the last row: what a message says about it needs them, and an input is read only once.

use std::io::{self, Read};

use super::{MAX_ROW_SIZE, text::Text};

/// Hands on what it reads, and keeps it from the last row on.
///
/// It fails instead of reading on when the row behind that is too long: a quote that never closes would otherwise read the rest of
/// the input into memory.
pub(super) struct Window {
    pub(super) text: Text,
    kept: Vec<u8>,
    /// The byte of the input with which `kept` starts.
    start: u64,
    /// Ends of lines before it.
    lines: u64,
    /// The byte of the input with which the last row starts.
    row: u64,
    /// The byte of the input with which the row starts that is being read.
    next: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("row too long")]
pub(super) struct RowTooLong;

impl Window {
    pub(super) fn new(text: Text) -> Self {
        Self { text, kept: Vec::new(), start: 0, lines: 0, row: 0, next: 0 }
    }

    /// The row that starts at byte `start` is to be read.
    pub(super) fn start_row(&mut self, start: u64) {
        self.next = start;
    }

    /// It has been read, or refused: it is the last row.
    pub(super) fn end_row(&mut self) {
        self.row = self.next;
    }

    /// The line, from 1, of the first byte of the last row that does not end a line.
    pub(super) fn line(&self) -> u64 {
        let (before, row) = self.kept.split_at(self.row_at());
        let ends = row.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        1 + self.lines + line_ends(before) + ends.filter(|&&byte| byte == b'\n').count() as u64
    }

    /// At the end of the input: whether a quoted field of the last row is still open. The parser takes it for closed there.
    pub(super) fn ends_in_quotes(&self) -> bool {
        #[derive(PartialEq)]
        enum State {
            FieldStart,
            Unquoted,
            Quoted,
            /// After a quote in a quoted field, which ends it unless another quote follows.
            Quote,
        }
        let row = &self.kept[self.row_at()..];
        let end = row.iter().fold(State::FieldStart, |state, byte| match (state, byte) {
            (State::Quoted, b'"') => State::Quote,
            (State::Quoted, _) | (State::FieldStart | State::Quote, b'"') => State::Quoted,
            (_, b',' | b'\r' | b'\n') => State::FieldStart,
            _ => State::Unquoted,
        });
        end == State::Quoted
    }

    /// Where the last row starts in what is kept.
    fn row_at(&self) -> usize {
        ((self.row - self.start) as usize).min(self.kept.len())
    }
}

impl Read for Window {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let done = self.row_at();
        self.lines += line_ends(&self.kept[..done]);
        self.kept.drain(..done);
        self.start += done as u64;
        if self.start + self.kept.len() as u64 >= self.next + MAX_ROW_SIZE {
            return Err(io::Error::new(io::ErrorKind::InvalidData, RowTooLong));
        }
        let count = self.text.read(buffer)?;
        self.kept.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

fn line_ends(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}
