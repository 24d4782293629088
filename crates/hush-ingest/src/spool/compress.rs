//! Values compressed one by one, with a dictionary that was trained on some of them (Zstandard, RFC 8878).

use std::io;

use hush_protocol::descriptor::MAX_DICTIONARY_BYTES;
use zstd::{
    bulk,
    dict::{EncoderDictionary, from_continuous},
    zstd_safe::CParameter,
};

use crate::SpooledRecords;

/// Bytes of a dictionary: what zstd itself takes for one.
const DICTIONARY_BYTES: usize = 110 << 10;
/// Bytes of values that it is trained on, about: as many more make it no better.
const SAMPLE_BYTES: u64 = 12 << 20;
/// The level, as high as is quick with a prepared dictionary.
const LEVEL: i32 = 12;
/// Longest values are one segment: 2^24 bytes.
const WINDOW_LOG: u32 = 24;
/// A frame begins with four bytes that are the same in all.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

const _: () = assert!(DICTIONARY_BYTES as u64 <= MAX_DICTIONARY_BYTES);

/// Compresses slots that clients download into one frame, which states their length.
///
/// # Errors
/// The error of the Zstandard library, which has no memory then.
pub fn compress_slots(slots: &[u8]) -> io::Result<Vec<u8>> {
    bulk::compress(slots, LEVEL)
}

/// Compresses values with a dictionary.
pub struct Compressor {
    dictionary: Vec<u8>,
    prepared: EncoderDictionary<'static>,
}

impl Compressor {
    /// Trains a dictionary on values from all over the records: the same one for the same records. Few or very short values
    /// make none.
    pub fn trained(records: &SpooledRecords) -> io::Result<Self> {
        let step = (records.value_bytes() / SAMPLE_BYTES).max(1) as usize;
        let (mut sample, mut sizes) = (Vec::new(), Vec::new());
        for index in (0..records.len()).step_by(step) {
            let (_, value) = records.record(index);
            // Of long values the beginning: the rest is like it, or like nothing.
            let value = &value[..value.len().min(DICTIONARY_BYTES)];
            sample.extend_from_slice(value);
            sizes.push(value.len());
        }
        Ok(Self::with_dictionary(&from_continuous(&sample, &sizes, DICTIONARY_BYTES)?))
    }

    /// Creates a compressor with a given dictionary.
    pub fn with_dictionary(dictionary: &[u8]) -> Self {
        Self { dictionary: dictionary.to_vec(), prepared: EncoderDictionary::copy(dictionary, LEVEL) }
    }

    /// Returns the dictionary.
    pub fn dictionary(&self) -> &[u8] {
        &self.dictionary
    }

    /// Returns the compressor of one thread.
    ///
    /// # Panics
    /// If there is no memory for it.
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

    /// Returns a value, compressed: a frame without the bytes with which all begin.
    pub fn compress(context: &mut bulk::Compressor<'_>, value: &[u8]) -> io::Result<Vec<u8>> {
        let mut frame = context.compress(value)?;
        if !frame.starts_with(&MAGIC) {
            return Err(io::Error::other("zstd made no frame"));
        }
        frame.drain(..MAGIC.len());
        Ok(frame)
    }
}
