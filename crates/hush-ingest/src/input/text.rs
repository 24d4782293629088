//! The bytes of a text from a file or standard input, decompressed if they are compressed.

use std::{
    io::{self, BufRead, Read},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use crate::input::key_list::without_mark;
use crate::{
    IngestError, Progress, ProgressUnit,
    input::compression::{Compression, MAGIC_BYTES, buffered, peek},
};

/// A text that is read once, from beginning to end.
pub(crate) struct Text {
    bytes: Box<dyn BufRead + Send>,
    /// The number of bytes of the input that have been read, counted before decompression.
    read: Arc<AtomicU64>,
    total: Option<u64>,
}

/// The number of first bytes that tell the format of a text.
pub(crate) const HEAD_BYTES: usize = 8;

impl Text {
    /// Opens the text of an input of `total` bytes, if that is known. `compression` is what its name states; without it the first
    /// bytes decide.
    pub(crate) fn new(
        input: impl Read + Send + 'static,
        total: Option<u64>,
        compression: Option<Compression>,
    ) -> io::Result<Self> {
        let read = Arc::new(AtomicU64::new(0));
        let (head, input) = peek(Counted { input, read: read.clone() }, MAGIC_BYTES)?;
        let bytes: Box<dyn BufRead + Send> = match compression.or(Compression::of_head(&head)) {
            Some(compression) => Box::new(buffered(compression.decompress(buffered(input))?)),
            None => Box::new(buffered(input)),
        };
        Ok(Self { bytes, read, total })
    }

    /// Returns the first [`HEAD_BYTES`] bytes, fewer only where the text is shorter. Nothing may have been read before.
    pub(crate) fn head(&mut self) -> io::Result<Vec<u8>> {
        let bytes = std::mem::replace(&mut self.bytes, Box::new(io::empty()));
        let (head, bytes) = peek(bytes, HEAD_BYTES)?;
        self.bytes = Box::new(bytes);
        Ok(head)
    }

    /// Skips a byte order mark at the beginning. Messages name `path`.
    ///
    /// # Errors
    /// [`IngestError::Utf16`] if the text is in UTF-16.
    pub(crate) fn skip_mark(&mut self, path: &Path) -> Result<(), IngestError> {
        let head = self.head().map_err(|source| IngestError::Unreadable { path: path.into(), source })?;
        let rest = without_mark(&head).map_err(|_| IngestError::Utf16 { path: path.into() })?;
        if is_utf16(rest) {
            return Err(IngestError::Utf16 { path: path.into() });
        }
        // The head was read ahead as one piece of the buffer, so the mark is in it as a whole.
        self.consume(head.len() - rest.len());
        Ok(())
    }

    /// Returns how much of the input has been read.
    pub(crate) fn progress(&self) -> Progress {
        Progress { read: self.read.load(Relaxed), total: self.total, unit: ProgressUnit::Bytes }
    }
}

/// Returns whether a text without a mark is in UTF-16: its first characters are mostly ASCII, so every second byte is zero.
fn is_utf16(head: &[u8]) -> bool {
    let is_of =
        |zero: usize| head[zero] == 0 && head[zero + 2] == 0 && head[1 - zero] != 0 && head[3 - zero] != 0;
    head.len() >= 4 && (is_of(0) || is_of(1))
}

impl Read for Text {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(buffer)
    }
}

impl BufRead for Text {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.bytes.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.bytes.consume(count);
    }
}

/// A reader that counts the bytes that are read.
struct Counted<R> {
    input: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.read.fetch_add(count as u64, Relaxed);
        Ok(count)
    }
}
