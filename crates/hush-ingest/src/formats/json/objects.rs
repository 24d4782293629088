//! The objects of a JSON text, each as text: one a line, or the elements of an array. Only one object is held in memory.

use std::io::{self, BufRead, Read};

use crate::{MAX_ROW_SIZE, input::text::Text};

/// A splitter of a text into its objects. The parser decides whether a piece is an object.
pub(crate) struct JsonObjects {
    text: Text,
    form: TextForm,
    object: Vec<u8>,
    /// The line on which the object begins, from 1, and the bytes of that line before it.
    start: Position,
    next: Position,
}

/// A place in a text.
#[derive(Clone, Copy)]
struct Position {
    line: u64,
    column: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TextForm {
    /// Nothing has been read.
    Unknown,
    Lines,
    /// An array of which no element has been read.
    ArrayStart,
    /// An array, behind an element.
    Array,
    /// Behind an array.
    ArrayEnd,
}

/// The reason why there is no object.
#[derive(Debug)]
pub(crate) enum JsonFault {
    /// The text cannot be read.
    Io(io::Error),
    /// The object is longer than [`MAX_ROW_SIZE`].
    TooLong,
    /// The array is malformed: the problem, and what to do.
    Array(&'static str),
}

impl From<io::Error> for JsonFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl JsonObjects {
    pub(crate) fn new(text: Text) -> Self {
        let start = Position { line: 1, column: 0 };
        Self { text, form: TextForm::Unknown, object: Vec::new(), start, next: start }
    }

    /// Returns whether nothing has been read yet.
    pub(crate) fn is_new(&self) -> bool {
        self.form == TextForm::Unknown
    }

    /// Returns whether each line is an object.
    pub(crate) fn is_lines(&self) -> bool {
        self.form == TextForm::Lines
    }

    /// Returns the text.
    pub(crate) fn text(&mut self) -> &mut Text {
        &mut self.text
    }

    /// Returns how much of the text has been read.
    pub(crate) fn progress(&self) -> crate::Progress {
        self.text.progress()
    }

    /// Returns the object that was read last.
    pub(crate) fn object(&self) -> &[u8] {
        &self.object
    }

    /// Returns the line on which the object begins, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.start.line
    }

    /// Converts a line and a byte of the object, both from 1, to those of the text.
    pub(crate) fn place_of(&self, line: usize, byte: usize) -> (u64, usize) {
        let before = if line <= 1 { self.start.column } else { 0 };
        (self.start.line + line.saturating_sub(1) as u64, before + byte)
    }

    /// Reads the next object; returns `false` at the end of the text.
    ///
    /// # Errors
    /// [`JsonFault`]. There are no more objects after it.
    pub(crate) fn read(&mut self) -> Result<bool, JsonFault> {
        self.object.clear();
        if self.form == TextForm::Unknown {
            self.form = match self.skip_space()? {
                Some(b'[') => {
                    self.skip(1);
                    TextForm::ArrayStart
                }
                _ => TextForm::Lines,
            };
        }
        if self.form == TextForm::Lines { self.read_line() } else { self.read_element() }
    }

    /// Reads the next line that is not empty.
    fn read_line(&mut self) -> Result<bool, JsonFault> {
        loop {
            self.object.clear();
            self.start = self.next;
            let count = (&mut self.text).take(MAX_ROW_SIZE).read_until(b'\n', &mut self.object)?;
            if count == 0 {
                return Ok(false);
            }
            self.next = Position { line: self.next.line + 1, column: 0 };
            if count as u64 == MAX_ROW_SIZE && !self.object.ends_with(b"\n") {
                return Err(JsonFault::TooLong);
            }
            self.object.truncate(self.object.trim_ascii_end().len());
            if !self.object.trim_ascii_start().is_empty() {
                return Ok(true);
            }
        }
    }

    /// Reads the next element of the array.
    fn read_element(&mut self) -> Result<bool, JsonFault> {
        match (self.form, self.skip_space()?) {
            (TextForm::ArrayEnd, None) => return Ok(false),
            (TextForm::ArrayEnd, Some(_)) => {
                return Err(JsonFault::Array(
                    "is followed by something else; remove it, or write one object per line",
                ));
            }
            (_, Some(b']')) => {
                self.skip(1);
                self.form = TextForm::ArrayEnd;
                return self.read_element();
            }
            (TextForm::Array, Some(b',')) => {
                self.skip(1);
                self.skip_space()?;
            }
            (TextForm::Array, Some(_)) => {
                return Err(JsonFault::Array("has something behind an element that is no comma; correct it"));
            }
            _ => {}
        }
        self.form = TextForm::Array;
        self.start = self.next;
        let mut scan = ElementScan::default();
        loop {
            let buffer = self.text.fill_buf()?;
            if buffer.is_empty() {
                return Err(JsonFault::Array("ends too soon; fetch the rest of the file"));
            }
            let end = buffer.iter().position(|&byte| scan.is_end(byte));
            // A closing bracket is part of the element; the byte behind a scalar is not.
            let taken = end.map_or(buffer.len(), |at| at + usize::from(scan.is_closed));
            self.object.extend_from_slice(&buffer[..taken]);
            self.skip(taken);
            if self.object.len() as u64 >= MAX_ROW_SIZE {
                return Err(JsonFault::TooLong);
            }
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    /// Skips white space. Returns the byte behind it, which stays unread; `None` at the end of the text.
    fn skip_space(&mut self) -> io::Result<Option<u8>> {
        loop {
            let buffer = self.text.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let found = buffer.iter().position(|byte| !byte.is_ascii_whitespace());
            let count = found.unwrap_or(buffer.len());
            let byte = found.map(|at| buffer[at]);
            self.skip(count);
            if byte.is_some() {
                return Ok(byte);
            }
        }
    }

    /// Skips `count` bytes of the buffer, and counts their lines.
    fn skip(&mut self, count: usize) {
        let skipped = self.text.fill_buf().unwrap_or_default().get(..count).unwrap_or_default();
        let lines = memchr::memchr_iter(b'\n', skipped).count() as u64;
        match memchr::memrchr(b'\n', skipped) {
            Some(at) => self.next = Position { line: self.next.line + lines, column: count - at - 1 },
            None => self.next.column += count,
        }
        self.text.consume(count);
    }
}

/// A scan for the end of an element of an array.
#[derive(Default)]
struct ElementScan {
    depth: usize,
    is_string: bool,
    is_escaped: bool,
    /// Whether the element has ended with its own bracket.
    is_closed: bool,
}

impl ElementScan {
    /// Scans the next byte. Returns whether the element ends at it.
    fn is_end(&mut self, byte: u8) -> bool {
        if self.is_string {
            self.is_string = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            return false;
        }
        match byte {
            b'"' => self.is_string = true,
            b'{' | b'[' => self.depth += 1,
            b',' | b']' | b'}' if self.depth == 0 => return true,
            b']' | b'}' => {
                self.depth -= 1;
                self.is_closed = self.depth == 0;
            }
            _ => {}
        }
        self.is_closed
    }
}
