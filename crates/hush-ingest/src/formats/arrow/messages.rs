//! The messages of Arrow IPC: those of a stream one after another, those of a file where its footer says.

use std::{
    fs::File,
    io::{self, BufRead, Read, Seek, SeekFrom},
    sync::Arc,
    vec::IntoIter,
};

use arrow_ipc::{Block, Message, convert::try_fb_to_schema, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, SchemaRef};

use crate::{
    Progress, ProgressUnit,
    input::{
        format::{ARROW_CONTINUATION, ARROW_FILE_MARK},
        text::Text,
    },
};

/// The most bytes of the metadata of a batch or a file. Below it, the most bytes of a batch, compressed or not.
const MAX_METADATA: u64 = 64 << 20;
pub(crate) const MAX_BATCH: u64 = 2 << 30;
const FILE_MARK_WORDS: usize = 2;
const MAX_FILE_HEAD_WORDS: usize = 16;

/// A message: its metadata, and its body.
type MessageParts = (Vec<u8>, Vec<u8>);

/// The messages of an input: first the schema, then dictionaries and batches.
pub(crate) enum Messages {
    Stream(MessageStream),
    File(FileBlocks),
}

impl Messages {
    pub(crate) fn of_stream(text: Text) -> Self {
        Self::Stream(MessageStream { text, is_file: false, ahead: None })
    }

    /// Reads the messages of a file of `bytes` bytes.
    pub(crate) fn of_file(file: File, bytes: u64) -> Self {
        Self::File(FileBlocks { file, bytes, read: 0, blocks: Vec::new().into_iter() })
    }

    /// Reads the schema, which comes first.
    pub(crate) fn schema(&mut self) -> Result<SchemaRef, ArrowError> {
        match self {
            Self::Stream(stream) => stream.schema(),
            Self::File(blocks) => blocks.schema(),
        }
    }

    /// Returns the next message; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<MessageParts>, ArrowError> {
        match self {
            Self::Stream(stream) => stream.next(),
            Self::File(blocks) => blocks.next(),
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        match self {
            Self::Stream(stream) => stream.text.progress(),
            Self::File(FileBlocks { bytes, read, .. }) => {
                Progress { read: *read, total: Some(*bytes), unit: ProgressUnit::Bytes }
            }
        }
    }
}

/// The messages of a stream. Most writers put a stream between the mark and the footer of a file, so a file can be read as one.
pub(crate) struct MessageStream {
    text: Text,
    is_file: bool,
    /// A word that was read ahead.
    ahead: Option<[u8; 4]>,
}

impl MessageStream {
    fn schema(&mut self) -> Result<SchemaRef, ArrowError> {
        self.begin()?;
        let is_file = self.is_file;
        let refused = |why: &str| match is_file {
            true => damaged("it is a file that is no stream; give it as a file, or write a stream"),
            false => damaged(why),
        };
        let metadata = match self.message() {
            Ok(Some((metadata, _))) => metadata,
            Ok(None) => return Err(refused("it is empty")),
            Err(ArrowError::IpcError(why)) => return Err(refused(&why)),
            Err(error) => return Err(error),
        };
        let schema = message(&metadata)?.header_as_schema();
        Ok(try_fb_to_schema(schema.ok_or_else(|| refused("it does not begin with a schema"))?)?.into())
    }

    /// Skips what a file has in front of its stream: the mark, and the zeros with which its writer aligns what follows.
    fn begin(&mut self) -> Result<(), ArrowError> {
        self.is_file = self.text.head()?.starts_with(ARROW_FILE_MARK);
        if self.is_file {
            let mut words = 0;
            self.ahead = loop {
                words += 1;
                match self.word()? {
                    _ if words <= FILE_MARK_WORDS => {}
                    [0, 0, 0, 0] if words <= MAX_FILE_HEAD_WORDS => {}
                    word => break Some(word),
                }
            };
        }
        Ok(())
    }

    fn word(&mut self) -> Result<[u8; 4], ArrowError> {
        if let Some(word) = self.ahead.take() {
            return Ok(word);
        }
        let mut word = [0; 4];
        self.text.read_exact(&mut word)?;
        Ok(word)
    }

    /// Reads the next message; `None` at the mark that ends the stream. A stream without that mark is an error, since its writer
    /// may have stopped early.
    fn message(&mut self) -> Result<Option<MessageParts>, ArrowError> {
        // Writers before 2019 leave the mark out.
        let length = match self.word()? {
            ARROW_CONTINUATION => self.word()?,
            length => length,
        };
        let length = u64::try_from(i32::from_le_bytes(length)).ok();
        let length = length.filter(|&length| length <= MAX_METADATA);
        let length = length.ok_or_else(|| damaged("it is no stream of Arrow IPC"))?;
        if length == 0 {
            return Ok(None);
        }
        let metadata = bytes(&mut self.text, length)?;
        let length =
            u64::try_from(message(&metadata)?.bodyLength()).ok().filter(|&length| length <= MAX_BATCH);
        let body = bytes(&mut self.text, length.ok_or_else(too_long)?)?;
        Ok(Some((metadata, body)))
    }

    fn next(&mut self) -> Result<Option<MessageParts>, ArrowError> {
        let next = self.message()?;
        if next.is_none() {
            self.end()?;
        }
        Ok(next)
    }

    /// Reads to the end of the input. Only a file may have bytes there: its footer.
    fn end(&mut self) -> Result<(), ArrowError> {
        if !self.is_file && !self.text.fill_buf()?.is_empty() {
            return Err(damaged("there is more behind the end of the stream; give one stream"));
        }
        io::copy(&mut self.text, &mut io::sink())?;
        Ok(())
    }
}

/// The messages of a file, by the blocks of its footer.
pub(crate) struct FileBlocks {
    file: File,
    bytes: u64,
    read: u64,
    blocks: IntoIter<Block>,
}

impl FileBlocks {
    fn schema(&mut self) -> Result<SchemaRef, ArrowError> {
        const TAIL: u64 = 4 + ARROW_FILE_MARK.len() as u64;
        let start = self.bytes.checked_sub(TAIL).ok_or_else(|| damaged(NO_FOOTER))?;
        let tail = self.at(start, TAIL)?;
        let length = tail.first_chunk().map(|&length| u64::from(u32::from_le_bytes(length)));
        let length =
            length.filter(|&length| tail.ends_with(ARROW_FILE_MARK) && length <= start.min(MAX_METADATA));
        let length = length.ok_or_else(|| damaged(NO_FOOTER))?;
        let footer = self.at(start - length, length)?;
        let footer = root_as_footer(&footer).map_err(|error| damaged(&error.to_string()))?;
        let blocks: Vec<Block> =
            footer.dictionaries().into_iter().chain(footer.recordBatches()).flatten().copied().collect();
        // Each block is read once, so the blocks together cannot be longer than the file.
        let lengths =
            blocks.iter().map(|block| Some(metadata_length(block)?.saturating_add(body_length(block)?)));
        let all: Option<u64> = lengths.sum();
        all.filter(|&all| all <= self.bytes).ok_or_else(|| damaged(NO_FOOTER))?;
        self.blocks = blocks.into_iter();
        let schema = footer.schema().ok_or_else(|| damaged(NO_FOOTER))?;
        Ok(Arc::new(try_fb_to_schema(schema)?))
    }

    fn next(&mut self) -> Result<Option<MessageParts>, ArrowError> {
        let Some(block) = self.blocks.next() else {
            self.read = self.bytes;
            return Ok(None);
        };
        let place = u64::try_from(block.offset()).ok().zip(metadata_length(&block)).zip(body_length(&block));
        let ((offset, length), body) = place.ok_or_else(|| damaged(NO_FOOTER))?;
        if body > MAX_BATCH {
            return Err(too_long());
        }
        let mut metadata = self.at(offset, length)?;
        let prefix = if metadata.starts_with(&ARROW_CONTINUATION) { 8 } else { 4 };
        metadata.drain(..prefix.min(metadata.len()));
        let body = self.at(offset.saturating_add(length), body)?;
        self.read += length + body.len() as u64;
        Ok(Some((metadata, body)))
    }

    fn at(&mut self, offset: u64, length: u64) -> Result<Vec<u8>, ArrowError> {
        self.file.seek(SeekFrom::Start(offset))?;
        bytes(&mut self.file, length)
    }
}

fn metadata_length(block: &Block) -> Option<u64> {
    u64::try_from(block.metaDataLength()).ok()
}

fn body_length(block: &Block) -> Option<u64> {
    u64::try_from(block.bodyLength()).ok()
}

/// Reads `length` bytes. Memory is allocated as the bytes arrive.
fn bytes(input: &mut impl Read, length: u64) -> Result<Vec<u8>, ArrowError> {
    let mut bytes = Vec::new();
    input.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != length {
        return Err(damaged(CUT_OFF));
    }
    Ok(bytes)
}

const NO_FOOTER: &str = "its footer is damaged or not there; fetch the rest of the file";
pub(crate) const CUT_OFF: &str = "the stream ends too soon; see whether its writer has failed";

pub(crate) fn message(metadata: &[u8]) -> Result<Message<'_>, ArrowError> {
    root_as_message(metadata).map_err(|error| damaged(&error.to_string()))
}

pub(crate) fn damaged(message: &str) -> ArrowError {
    ArrowError::IpcError(message.into())
}

pub(crate) fn too_long() -> ArrowError {
    damaged("a batch is longer than 2 GiB; write smaller ones")
}
