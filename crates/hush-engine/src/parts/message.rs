//! The messages to a part and from it. They do not go to clients.

use hush_protocol::{page::Partial, wire::Query};
use prost::{Message, Oneof, bytes::Bytes};

/// The partial of a part for a segment's answers, in words of the host.
pub(super) type HostPartial = Partial<Vec<u32>>;

/// A batch of queries.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Batch {
    /// The epoch of the table.
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) epoch: Bytes,
    #[prost(message, repeated, tag = "2")]
    pub(super) queries: Vec<Query>,
    /// The evaluation keys that a part reported missing.
    #[prost(message, repeated, tag = "3")]
    pub(super) keys: Vec<Keys>,
}

/// Evaluation keys of a client.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Keys {
    /// The name by which queries refer to the keys.
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) id: Bytes,
    /// The keys as they were uploaded.
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) body: Bytes,
}

/// The reply of a part.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Reply {
    #[prost(oneof = "Said", tags = "1, 2, 3, 4")]
    pub(super) said: Option<Said>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Said {
    #[prost(message, tag = "1")]
    Scanned(Scanned),
    /// The part does not have all keys, which must come with the batch.
    #[prost(message, tag = "2")]
    Missing(Missing),
    #[prost(message, tag = "3")]
    Refused(Refused),
    /// The part has failed, for this reason.
    #[prost(string, tag = "4")]
    Failed(String),
}

/// The partials of a part.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Scanned {
    #[prost(message, repeated, tag = "1")]
    pub(super) partials: Vec<Contribution>,
}

/// The names of missing keys.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Missing {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(super) ids: Vec<Bytes>,
}

/// A query that is invalid for the table.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Refused {
    #[prost(uint64, tag = "1")]
    pub(super) index: u64,
    #[prost(string, tag = "2")]
    pub(super) reason: String,
}

/// The partial of a part for one segment.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Contribution {
    #[prost(uint64, tag = "1")]
    pub(super) segment: u64,
    #[prost(uint64, tag = "2")]
    pub(super) start: u64,
    #[prost(uint64, tag = "3")]
    pub(super) end: u64,
    /// The words, little-endian.
    #[prost(bytes = "bytes", repeated, tag = "4")]
    pub(super) words: Vec<Bytes>,
}

impl Contribution {
    pub(super) fn new(segment: usize, partial: &HostPartial) -> Self {
        let mut encoded = Vec::with_capacity(partial.words.len());
        for words in &partial.words {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            encoded.push(bytes.into());
        }
        Self {
            segment: segment as u64,
            start: partial.units.start as u64,
            end: partial.units.end as u64,
            words: encoded,
        }
    }

    /// Returns the number of the segment, and the partial.
    pub(super) fn partial(&self) -> (usize, HostPartial) {
        let words = |bytes: &Bytes| {
            let words =
                bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
            words.collect()
        };
        let units = self.start as usize..self.end as usize;
        (self.segment as usize, Partial { units, words: self.words.iter().map(words).collect() })
    }
}
