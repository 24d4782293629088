//! The decompression of values (`docs/reference/file-formats.md`, Compression). Both dictionary and values come from the
//! network, so neither is trusted.

use hush_protocol::descriptor::{Codec, Compression, MAX_DICTIONARY_BYTES};
use ruzstd::{
    decoding::{BlockDecodingStrategy, Dictionary, FrameDecoder},
    encoding::{CompressionLevel, compress_to_vec},
};
use zeroize::Zeroizing;

use crate::ClientError;

/// The magic number of a frame, which stored values leave out.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The bits of a frame's first byte that must have the value [`SINGLE_SEGMENT`]: no checksum, reserved bits or dictionary number.
const HEAD_MASK: u8 = 0b0011_1111;
const SINGLE_SEGMENT: u8 = 0b0010_0000;

/// The most bytes of the filler's text.
const FILLER_BYTES: usize = 16 << 10;
/// The window that is allowed for every frame, however short its text is.
const SMALL_WINDOW: u64 = 1 << 20;

/// A decompressor of a table's values.
#[derive(Clone)]
pub struct Decompressor {
    dictionary: Vec<u8>,
    /// The length of the longest value, in bytes.
    longest: usize,
    /// A frame of text that resembles values. It is decoded to fill the time up to that of the longest value.
    filler: Vec<u8>,
    /// The length of the filler's text, in bytes.
    filler_bytes: usize,
}

impl Decompressor {
    /// Creates a decompressor for values compressed with this dictionary, which may be a frame itself.
    ///
    /// # Errors
    /// [`ClientError::Compression`] if the dictionary is invalid.
    pub fn new(compression: &Compression, dictionary: &[u8]) -> Result<Self, ClientError> {
        let Codec::Zstd = compression.codec;
        let dictionary = dictionary_of(dictionary).ok_or(ClientError::Compression)?;
        let parsed = Dictionary::decode_dict(&dictionary).map_err(|_| ClientError::Compression)?;
        let longest = compression.max_value_bytes as usize;
        let content = &parsed.dict_content;
        let filler_bytes = longest.clamp(1, FILLER_BYTES);
        // The end of a dictionary has the most frequent text of values.
        let end = &content[content.len().saturating_sub(filler_bytes)..];
        let mut text: Vec<u8> = end.iter().copied().cycle().take(filler_bytes).collect();
        text.resize(filler_bytes, b' ');
        let filler = compress_to_vec(&text[..], CompressionLevel::Fastest);
        Ok(Self { dictionary, longest, filler, filler_bytes })
    }

    /// Decompresses a value. Never produces more bytes than the frame declares, and refuses a declared length above the longest.
    ///
    /// # Errors
    /// [`ClientError::Compression`] if the value is malformed or too long.
    pub fn value(&self, compressed: &[u8]) -> Result<Zeroizing<Vec<u8>>, ClientError> {
        self.value_in(&mut self.decoder()?, compressed)
    }

    /// Decompresses a value, if one was found, then filler text up to the length of the longest value. So the time reveals
    /// little about the value. Fails with [`ClientError::Compression`] if the value or the dictionary is malformed, or the value is
    /// too long.
    pub fn value_in_even_time(
        &self,
        compressed: Option<&[u8]>,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, ClientError> {
        let mut decoder = self.decoder()?;
        let value = compressed.map(|compressed| self.value_in(&mut decoder, compressed)).transpose();
        let mut made = value.as_ref().ok().and_then(|value| Some(value.as_ref()?.len())).unwrap_or(0);
        let (decoder, number) = (&mut decoder.0, decoder.1);
        if compressed.is_none() {
            // The filler needs no dictionary, but decoding a value includes setting the dictionary.
            let _ = decoder.reset(&self.filler[..]).and_then(|()| decoder.force_dict(number));
        }
        while made + self.filler_bytes / 2 < self.longest {
            let text = decode(decoder, None, &self.filler, self.filler_bytes, SMALL_WINDOW);
            debug_assert!(text.is_some_and(|text| text.len() == self.filler_bytes));
            made += self.filler_bytes;
        }
        value
    }

    /// Returns a decoder that has the dictionary, and the dictionary's number.
    fn decoder(&self) -> Result<(FrameDecoder, u32), ClientError> {
        let dictionary = Dictionary::decode_dict(&self.dictionary).map_err(|_| ClientError::Compression)?;
        let number = dictionary.id;
        let mut decoder = FrameDecoder::new();
        decoder.add_dict(dictionary).map_err(|_| ClientError::Compression)?;
        Ok((decoder, number))
    }

    fn value_in(
        &self,
        (decoder, number): &mut (FrameDecoder, u32),
        compressed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ClientError> {
        let length = stated_length(compressed).filter(|&length| length <= self.longest);
        let length = length.ok_or(ClientError::Compression)?;
        let frame = Zeroizing::new([&MAGIC, compressed].concat());
        let value = decode(decoder, Some(*number), &frame, length, length as u64);
        value.filter(|value| value.len() == length).ok_or(ClientError::Compression)
    }
}

/// Returns a dictionary that is a frame or as it is. Returns `None` if the frame is malformed or too long.
fn dictionary_of(stored: &[u8]) -> Option<Vec<u8>> {
    let Some(head) = stored.strip_prefix(&MAGIC) else { return Some(stored.to_vec()) };
    let length = stated_length(head).filter(|&length| length as u64 <= MAX_DICTIONARY_BYTES)?;
    decode(&mut FrameDecoder::new(), None, stored, length, SMALL_WINDOW.max(length as u64))
        .filter(|dictionary| dictionary.len() == length)
        .map(|mut dictionary| std::mem::take(&mut *dictionary))
}

/// Decompresses a hint of `length` bytes that was downloaded as a frame. Allocates about three times as many bytes.
///
/// # Errors
/// [`ClientError::Compression`] if the frame is malformed, or its text has another length.
pub(crate) fn hint_of_frame(frame: &[u8], length: usize) -> Result<Vec<u8>, ClientError> {
    let window = SMALL_WINDOW.max(length as u64);
    let hint = decode(&mut FrameDecoder::new(), None, frame, length, window);
    let mut hint = hint.filter(|hint| hint.len() == length).ok_or(ClientError::Compression)?;
    Ok(std::mem::take(&mut *hint))
}

/// Decodes a frame, with the dictionary of number `dictionary` if there is one. Returns `None` if the frame is malformed or
/// needs a window above `window`, or if its text is longer than `length`.
fn decode(
    decoder: &mut FrameDecoder,
    dictionary: Option<u32>,
    frame: &[u8],
    length: usize,
    window: u64,
) -> Option<Zeroizing<Vec<u8>>> {
    let mut source = frame;
    decoder.set_max_window_size(window);
    decoder.reset(&mut source).ok()?;
    if let Some(number) = dictionary {
        decoder.force_dict(number).ok()?;
    }
    // Stop after at most one block beyond `length`.
    while !decoder.is_finished() && decoder.can_collect() <= length {
        decoder.decode_blocks(&mut source, BlockDecodingStrategy::UptoBlocks(1)).ok()?;
    }
    if !decoder.is_finished() || !source.is_empty() { None } else { decoder.collect().map(Zeroizing::new) }
}

/// Returns the length of the text that the head of a frame declares.
fn stated_length(compressed: &[u8]) -> Option<usize> {
    let (&head, rest) = compressed.split_first()?;
    if head & HEAD_MASK != SINGLE_SEGMENT {
        return None;
    }
    let length = match head >> 6 {
        0 => usize::from(*rest.first()?),
        1 => 256 + usize::from(u16::from_le_bytes(*rest.first_chunk()?)),
        2 => u32::from_le_bytes(*rest.first_chunk()?) as usize,
        _ => usize::try_from(u64::from_le_bytes(*rest.first_chunk()?)).ok()?,
    };
    Some(length)
}
