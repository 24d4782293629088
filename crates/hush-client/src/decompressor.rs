//! Values as they were before they were compressed (`docs/formats.md`, Compression). Dictionary and values come from the network.

use hush_protocol::descriptor::{Codec, Compression};
use ruzstd::decoding::{BlockDecodingStrategy, Dictionary, FrameDecoder};
use zeroize::Zeroizing;

use crate::ClientError;

/// What a frame begins with, and values are stored without.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The head of a frame: a single segment, without a checksum, reserved bits or the number of a dictionary.
const HEAD_MASK: u8 = 0b0011_1111;
const SINGLE_SEGMENT: u8 = 0b0010_0000;

/// Reads compressed values.
pub struct Decompressor {
    dictionary: Vec<u8>,
    /// Length of the longest value.
    longest: usize,
}

impl Decompressor {
    /// Of values that were compressed so, with this dictionary.
    ///
    /// # Errors
    /// [`ClientError::Compression`] if it is none.
    pub fn new(compression: &Compression, dictionary: &[u8]) -> Result<Self, ClientError> {
        let Codec::Zstd = compression.codec;
        Dictionary::decode_dict(dictionary).map_err(|_| ClientError::Compression)?;
        Ok(Self { dictionary: dictionary.to_vec(), longest: compression.max_value_bytes as usize })
    }

    /// The value, of which no more is made than the length that it states, and that is at most the longest.
    ///
    /// # Errors
    /// [`ClientError::Compression`] if it is none.
    pub fn value(&self, compressed: &[u8]) -> Result<Zeroizing<Vec<u8>>, ClientError> {
        let length = stated_length(compressed).filter(|&length| length <= self.longest);
        let length = length.ok_or(ClientError::Compression)?;
        self.decoded(compressed, length).filter(|value| value.len() == length).ok_or(ClientError::Compression)
    }

    fn decoded(&self, compressed: &[u8], length: usize) -> Option<Zeroizing<Vec<u8>>> {
        let frame = Zeroizing::new([&MAGIC, compressed].concat());
        let (mut source, mut decoder) = (&frame[..], FrameDecoder::new());
        let dictionary = Dictionary::decode_dict(&self.dictionary).ok()?;
        let number = dictionary.id;
        decoder.set_max_window_size(length as u64);
        decoder.add_dict(dictionary).ok()?;
        decoder.reset(&mut source).ok()?;
        decoder.force_dict(number).ok()?;
        // A block more than was stated at most.
        while !decoder.is_finished() && decoder.can_collect() <= length {
            decoder.decode_blocks(&mut source, BlockDecodingStrategy::UptoBlocks(1)).ok()?;
        }
        if !decoder.is_finished() || !source.is_empty() {
            None
        } else {
            decoder.collect().map(Zeroizing::new)
        }
    }
}

/// The length that the head of a frame states.
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
