//! Compressed text: gzip and Zstandard, as streams in bounded memory.

use std::{
    ffi::OsStr,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

use flate2::bufread::GzDecoder;
use thiserror::Error;

/// The base-two logarithm of the longest window of Zstandard that is accepted. The window is held in memory.
const MAX_WINDOW_LOG: u32 = 27;
/// The number of bytes that tell whether an input is compressed.
pub(crate) const MAGIC_BYTES: usize = 4;

/// A format of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// Returns the compression that the last extension of a name states, and the name without that extension.
    pub(crate) fn of_name(name: &Path) -> (Option<Self>, &Path) {
        let extension = name.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
        let compression = match extension.as_str() {
            "gz" => Self::Gzip,
            "zst" => Self::Zstd,
            _ => return (None, name),
        };
        (Some(compression), name.file_stem().map_or(name, Path::new))
    }

    /// Returns the compression that the first bytes of an input state.
    pub(crate) fn of_head(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // The first pattern is a frame; the second is a skippable frame, with which some writers start.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Decompresses `bytes`, with all members or frames.
    pub(crate) fn decompress(self, bytes: impl BufRead + Send + 'static) -> io::Result<Decompressed> {
        let text: Box<dyn Read + Send> = match self {
            Self::Gzip => Box::new(GzipMembers { member: Some(GzDecoder::new(bytes)) }),
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
                decoder.window_log_max(MAX_WINDOW_LOG)?;
                Box::new(decoder)
            }
        };
        Ok(Decompressed { compression: self, text })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "Zstandard",
        }
    }

    /// Converts an error of the decoder to one that says what is wrong with the data. Errors of the disk stay.
    fn refused(self, error: io::Error) -> io::Error {
        let name = self.name();
        let reason = match error.kind() {
            _ if error.raw_os_error().is_some() => return error,
            io::ErrorKind::Interrupted => return error,
            io::ErrorKind::UnexpectedEof => BadCompression::CutOff { name },
            _ if error.to_string().contains("too much memory") => BadCompression::Window,
            _ => BadCompression::Damaged { name, message: error.to_string() },
        };
        io::Error::new(io::ErrorKind::InvalidData, reason)
    }
}

/// A reader of all members of gzip data. Zeros behind a member are skipped: tapes, devices and some servers pad files with them.
struct GzipMembers<R> {
    /// The current member; `None` after the last one.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.member else { return Ok(0) };
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let rest = self.member.take().map(GzDecoder::into_inner);
            self.member = rest.map(after_zeros).transpose()?.flatten().map(GzDecoder::new);
        }
    }
}

/// Returns the input from its next byte that is not zero, if there is one.
fn after_zeros<R: BufRead>(mut input: R) -> io::Result<Option<R>> {
    loop {
        let bytes = input.fill_buf()?;
        let length = bytes.len();
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        input.consume(zeros);
        if zeros < length {
            return Ok(Some(input));
        }
        if length == 0 {
            return Ok(None);
        }
    }
}

/// The reason why compressed data is refused.
#[derive(Debug, Error)]
enum BadCompression {
    #[error("the {name} data ends too soon; fetch the rest of the file")]
    CutOff { name: &'static str },
    #[error("damaged, or not {name} data: {message}; fetch the file again")]
    Damaged { name: &'static str, message: String },
    #[error(
        "its Zstandard window is longer than {} MiB; compress it again with zstd --long={MAX_WINDOW_LOG} at most",
        1 << (MAX_WINDOW_LOG - 20)
    )]
    Window,
}

/// A reader of text that is decompressed as it is read.
pub(crate) struct Decompressed {
    compression: Compression,
    text: Box<dyn Read + Send>,
}

impl Read for Decompressed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.text.read(buffer).map_err(|error| self.compression.refused(error))
    }
}

/// An input whose first bytes have been read ahead.
pub(crate) type Peeked<R> = io::Chain<io::Cursor<Vec<u8>>, R>;

/// Returns the first bytes of an input, at most `most`, and an input that gives them again.
pub(crate) fn peek<R: Read>(mut input: R, most: usize) -> io::Result<(Vec<u8>, Peeked<R>)> {
    let mut head = Vec::with_capacity(most);
    input.by_ref().take(most as u64).read_to_end(&mut head)?;
    Ok((head.clone(), io::Cursor::new(head).chain(input)))
}

/// Buffers an input, with the size of buffer that files are read with.
pub(crate) fn buffered<R: Read>(input: R) -> BufReader<R> {
    BufReader::with_capacity(1 << 16, input)
}
