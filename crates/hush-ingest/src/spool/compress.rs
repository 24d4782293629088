//! The compression of values one by one, with a dictionary that was trained on some of them (Zstandard, RFC 8878).

use std::io;

use hush_protocol::descriptor::MAX_DICTIONARY_BYTES;
use zstd::{
    bulk,
    dict::{EncoderDictionary, from_continuous},
    zstd_safe::CParameter,
};

use crate::SpooledRecords;

/// The length of a dictionary in bytes: the default of zstd.
const DICTIONARY_BYTES: usize = 110 << 10;
/// The approximate number of bytes of values for training. More bytes make no better dictionary.
const SAMPLE_BYTES: u64 = 12 << 20;
/// The compression level: the highest that is fast with a prepared dictionary.
const LEVEL: i32 = 12;
/// The compression level of the dictionary itself, which every client downloads: the highest that needs little memory.
const DICTIONARY_LEVEL: i32 = 19;
/// The base-two logarithm of the window, 2^24 bytes, so that the longest value is one segment.
const WINDOW_LOG: u32 = 24;
/// The four bytes with which every frame begins.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

const _: () = assert!(DICTIONARY_BYTES as u64 <= MAX_DICTIONARY_BYTES);

/// Compresses slots that clients download into one frame, which states their length.
///
/// # Errors
/// The error of the Zstandard library if it cannot allocate memory.
pub fn compress_slots(slots: &[u8]) -> io::Result<Vec<u8>> {
    bulk::compress(slots, LEVEL)
}

/// Returns the text of a frame that [`compress_slots`] made, of `length` bytes.
///
/// # Errors
/// The error of the Zstandard library if the frame is damaged or its text is longer.
pub fn text_of_frame(frame: &[u8], length: usize) -> io::Result<Vec<u8>> {
    bulk::decompress(frame, length)
}

/// A compressor of values with a dictionary.
pub struct Compressor {
    dictionary: Vec<u8>,
    prepared: EncoderDictionary<'static>,
}

impl Compressor {
    /// Trains a dictionary on values from all over the records, deterministically. Too few or too short values are an error.
    pub fn trained(records: &SpooledRecords) -> io::Result<Self> {
        let step = (records.value_bytes() / SAMPLE_BYTES).max(1) as usize;
        let mut sample = Vec::new();
        let mut sizes = Vec::new();
        for index in (0..records.len()).step_by(step) {
            let (_, value) = records.record(index);
            // The beginning of a long value is enough: the rest is like it, or like nothing.
            let value = &value[..value.len().min(DICTIONARY_BYTES)];
            sample.extend_from_slice(value);
            sizes.push(value.len());
        }
        let trained = from_continuous(&sample, &sizes, DICTIONARY_BYTES);
        let too_little = |_| io::Error::other("they are too few or too short to train a dictionary on");
        Ok(Self::with_dictionary(&trained.map_err(too_little)?))
    }

    /// Creates a compressor with an existing dictionary.
    pub fn with_dictionary(dictionary: &[u8]) -> Self {
        Self { dictionary: dictionary.to_vec(), prepared: EncoderDictionary::copy(dictionary, LEVEL) }
    }

    /// Creates a compressor with the dictionary of a table: a frame, or the dictionary as it is. Fails if the frame is damaged.
    pub fn with_stored(stored: &[u8]) -> io::Result<Self> {
        match stored.starts_with(&MAGIC) {
            true => Ok(Self::with_dictionary(&bulk::decompress(stored, MAX_DICTIONARY_BYTES as usize)?)),
            false => Ok(Self::with_dictionary(stored)),
        }
    }

    /// Returns the dictionary as a table has it: a frame, about a third as long. Fails with zstd's error.
    pub fn stored(&self) -> io::Result<Vec<u8>> {
        bulk::compress(&self.dictionary, DICTIONARY_LEVEL)
    }

    /// Returns the dictionary.
    pub fn dictionary(&self) -> &[u8] {
        &self.dictionary
    }

    /// Creates the compression context of a thread.
    ///
    /// # Panics
    /// If the memory for it cannot be allocated.
    pub fn context(&self) -> bulk::Compressor<'_> {
        let mut context = bulk::Compressor::with_prepared_dictionary(&self.prepared).expect("memory");
        let parameters = [
            CParameter::ContentSizeFlag(true),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
            CParameter::WindowLog(WINDOW_LOG),
        ];
        for parameter in parameters {
            context.set_parameter(parameter).expect("a parameter in range");
        }
        context
    }

    /// Compresses a value. Returns the frame without the four bytes with which every frame begins. Fails with zstd's error.
    pub fn compress(context: &mut bulk::Compressor<'_>, value: &[u8]) -> io::Result<Vec<u8>> {
        let mut frame = context.compress(value)?;
        if !frame.starts_with(&MAGIC) {
            return Err(io::Error::other("zstd made no frame"));
        }
        frame.drain(..MAGIC.len());
        Ok(frame)
    }
}
