//! The wire format of queries, answers and evaluation keys, and the checks that client and server run on it.
//!
//! The messages (`generated.rs`) are generated from `proto/hush/v1/query.proto`. A test fails if the two differ.
//! Their `bytes` fields are [`Bytes`]: decoding borrows from the received buffer, and `Vec<u8>` converts with `.into()`.
//!
//! Bytes from the network must be decoded by [`RequestShape::decode`], [`ResponseShape::decode`] or [`decode_keys`], never
//! by [`Message::decode`] alone. An empty entry of a repeated field takes two bytes on the wire and a whole struct in
//! memory, so entries are counted before any is built.

#[rustfmt::skip]
mod generated;
mod keys;

use prost::{
    DecodeError, Message,
    bytes::{Buf, Bytes},
    encoding::{DecodeContext, decode_key, skip_field},
};
use thiserror::Error;

pub use generated::{Answer, EvaluationKeys, Query, QueryRequest, QueryResponse};
pub use keys::{MAX_PRESET_BYTES, decode_keys, encoded_keys_bytes};

/// The version of the format that this crate reads and writes.
pub const VERSION: u32 = 1;
/// The content type of requests and responses.
pub const CONTENT_TYPE: &str = "application/x-protobuf";
/// The length of an epoch, in bytes.
pub const EPOCH_BYTES: usize = 32;
/// The length of [`Query::key_id`] in protocols with evaluation keys, in bytes.
pub const KEY_ID_BYTES: usize = 32;
/// The most queries in a request, unless a server sets a lower limit.
pub const MAX_QUERIES: usize = 256;

/// The field number of `QueryRequest.queries`.
const QUERIES_FIELD: u32 = 4;
/// The field number of `QueryResponse.answers`.
const ANSWERS_FIELD: u32 = 3;
/// The most bytes of a tag and a length before a field.
const FIELD_OVERHEAD: usize = 1 + 10;
/// The bytes allowed for the fields of a request beside its queries, and for unknown fields.
const REQUEST_SLACK: usize = 4096;

/// The reason why a message was refused. It contains counts and lengths only.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum WireError {
    #[error("malformed protobuf: {0}")]
    Malformed(#[from] DecodeError),
    #[error("format version is {actual}, expected {expected}")]
    Version {
        /// [`VERSION`].
        expected: u32,
        actual: u32,
    },
    #[error("epoch has {actual} bytes, expected {expected}")]
    EpochLength {
        /// [`EPOCH_BYTES`].
        expected: usize,
        actual: usize,
    },
    #[error("the epoch is not the table's current one")]
    EpochGone,
    #[error("the table's protocol is {expected:?}, the queries are for another")]
    Protocol { expected: String },
    /// A request without a query.
    #[error("the request has no queries")]
    NoQueries,
    #[error("the request has {actual} queries, at most {max} are allowed")]
    TooManyQueries { max: usize, actual: usize },
    #[error("query {index}: `{field}` has {actual} bytes, expected {expected}")]
    QueryLength { index: usize, field: &'static str, expected: usize, actual: usize },
    /// The name of the parameter set in evaluation keys is missing or too long.
    #[error("the name of the parameter set has {actual} bytes, expected 1 to {max}")]
    PresetLength {
        /// [`MAX_PRESET_BYTES`].
        max: usize,
        actual: usize,
    },
    #[error("the response has {actual} answers, expected {expected}")]
    AnswerCount { expected: usize, actual: usize },
    #[error("answer {index} has {actual} bytes, expected {expected}")]
    AnswerLength { index: usize, expected: usize, actual: usize },
}

/// The exact lengths of the parts of a query, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuerySizes {
    /// The length of [`Query::first`].
    pub first: usize,
    /// The length of [`Query::second`]. 0 in protocols with one encrypted dimension.
    pub second: usize,
    /// The length of [`Query::packed`]. 0 in protocols over LWE.
    pub packed: usize,
    /// The length of [`Query::key_id`]: [`KEY_ID_BYTES`], or 0 in protocols without evaluation keys.
    pub key_id: usize,
}

impl QuerySizes {
    /// Returns the lengths of a protocol over LWE, which has no evaluation keys.
    pub const fn lwe(first: usize, second: usize) -> Self {
        Self { first, second, packed: 0, key_id: 0 }
    }

    /// Returns the lengths of a protocol over RLWE with evaluation keys.
    pub const fn rlwe(packed: usize) -> Self {
        Self { first: 0, second: 0, packed, key_id: KEY_ID_BYTES }
    }

    /// Returns the total length of all parts.
    pub const fn total(self) -> usize {
        self.first.saturating_add(self.second).saturating_add(self.packed).saturating_add(self.key_id)
    }

    /// Returns an upper bound of the bytes of one query inside a request.
    fn encoded_bound(self) -> usize {
        self.total().saturating_add(5 * FIELD_OVERHEAD)
    }
}

/// The shape of a request for one table.
#[derive(Clone, Copy, Debug)]
pub struct RequestShape<'a> {
    /// The hash that queries of the table must name: its epoch or its geometry.
    pub asked: &'a [u8; EPOCH_BYTES],
    /// The table's protocol.
    pub protocol: &'a str,
    /// The exact lengths of a query's parts.
    pub query: QuerySizes,
    /// The most queries in a request.
    pub max_queries: usize,
}

impl RequestShape<'_> {
    /// Returns an upper bound of a valid request's length in bytes. A server reads no more of a body.
    pub fn max_bytes(&self) -> usize {
        self.query.encoded_bound().saturating_mul(self.max_queries).saturating_add(REQUEST_SLACK)
    }

    /// Decodes a request, and checks everything that the wire format determines.
    ///
    /// The memory is bounded by `body` plus `max_queries` structs. The epoch is checked before the protocol and the
    /// lengths, because these may differ in another epoch without being wrong. Fails with [`WireError`] if the request is
    /// malformed, has no queries or too many, is of another version, epoch or protocol, or if a field of a query has a wrong
    /// length.
    pub fn decode(&self, body: Bytes) -> Result<Vec<Query>, WireError> {
        let actual = count_field(body.clone(), QUERIES_FIELD)?;
        if actual > self.max_queries {
            return Err(WireError::TooManyQueries { max: self.max_queries, actual });
        }
        let request = QueryRequest::decode(body)?;
        check_header(request.version, &request.epoch, Some(self.asked))?;
        if request.protocol != self.protocol {
            return Err(WireError::Protocol { expected: self.protocol.to_owned() });
        }
        if request.queries.is_empty() {
            return Err(WireError::NoQueries);
        }
        for (index, query) in request.queries.iter().enumerate() {
            check_length(index, "first", self.query.first, query.first.len())?;
            check_length(index, "second", self.query.second, query.second.len())?;
            check_length(index, "packed", self.query.packed, query.packed.len())?;
            check_length(index, "key_id", self.query.key_id, query.key_id.len())?;
        }
        Ok(request.queries)
    }
}

/// The shape of the response to a request.
#[derive(Clone, Copy, Debug)]
pub struct ResponseShape<'a> {
    /// The epoch that must answer. `None` accepts any epoch, for queries that name a geometry.
    pub epoch: Option<&'a [u8; EPOCH_BYTES]>,
    /// The number of queries that were sent.
    pub answers: usize,
    /// The exact length of an answer, in bytes.
    pub answer_bytes: usize,
}

impl ResponseShape<'_> {
    /// Returns an upper bound of a valid response's length in bytes. A client reads no more.
    pub fn max_bytes(&self) -> usize {
        self.answer_bytes
            .saturating_add(2 * FIELD_OVERHEAD)
            .saturating_mul(self.answers)
            .saturating_add(REQUEST_SLACK)
    }

    /// Decodes a response, and checks everything that the wire format determines. Returns the epoch that answered, and the
    /// answers. Fails with [`WireError`] if the response is malformed, is of another version or epoch, or if the number or a length
    /// of the answers is wrong.
    pub fn decode(&self, body: Bytes) -> Result<([u8; EPOCH_BYTES], Vec<Bytes>), WireError> {
        let actual = count_field(body.clone(), ANSWERS_FIELD)?;
        if actual != self.answers {
            return Err(WireError::AnswerCount { expected: self.answers, actual });
        }
        let response = QueryResponse::decode(body)?;
        let epoch = check_header(response.version, &response.epoch, self.epoch)?;
        for (index, answer) in response.answers.iter().enumerate() {
            let expected = self.answer_bytes;
            let actual = answer.words.len();
            if actual != expected {
                return Err(WireError::AnswerLength { index, expected, actual });
            }
        }
        Ok((epoch, response.answers.into_iter().map(|answer| answer.words).collect()))
    }
}

fn check_header(
    version: u32,
    epoch: &[u8],
    expected: Option<&[u8; EPOCH_BYTES]>,
) -> Result<[u8; EPOCH_BYTES], WireError> {
    if version != VERSION {
        return Err(WireError::Version { expected: VERSION, actual: version });
    }
    let length = WireError::EpochLength { expected: EPOCH_BYTES, actual: epoch.len() };
    let epoch = epoch.try_into().map_err(|_| length)?;
    if expected.is_some_and(|expected| *expected != epoch) {
        return Err(WireError::EpochGone);
    }
    Ok(epoch)
}

fn check_length(index: usize, field: &'static str, expected: usize, actual: usize) -> Result<(), WireError> {
    if expected == actual { Ok(()) } else { Err(WireError::QueryLength { index, field, expected, actual }) }
}

/// Counts the occurrences of a top-level field without building anything.
fn count_field(mut body: Bytes, field: u32) -> Result<usize, DecodeError> {
    let mut count = 0;
    while body.has_remaining() {
        let (tag, wire_type) = decode_key(&mut body)?;
        skip_field(wire_type, tag, &mut body, DecodeContext::default())?;
        count += usize::from(tag == field);
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: [u8; EPOCH_BYTES] = [7; EPOCH_BYTES];

    fn shape() -> RequestShape<'static> {
        let query = QuerySizes { first: 4, second: 2, packed: 3, key_id: 1 };
        RequestShape { asked: &EPOCH, protocol: "simple", query, max_queries: 3 }
    }

    fn request() -> QueryRequest {
        let query = Query {
            first: vec![1, 2, 3, 4].into(),
            second: vec![5, 6].into(),
            packed: vec![7, 8, 9].into(),
            key_id: vec![10].into(),
        };
        QueryRequest {
            version: VERSION,
            epoch: Bytes::copy_from_slice(&EPOCH),
            protocol: "simple".into(),
            queries: vec![query.clone(), query],
        }
    }

    fn decode(request: &QueryRequest) -> Result<Vec<Query>, WireError> {
        shape().decode(request.encode_to_vec().into())
    }

    /// Fails if any byte of the format changes.
    #[test]
    fn format_is_frozen() {
        let mut expected = vec![0x08, 1, 0x12, 32];
        expected.extend([7; 32]);
        expected.extend(b"\x1a\x06simple");
        for _ in 0..2 {
            expected.extend([0x22, 18, 0x0a, 4, 1, 2, 3, 4, 0x12, 2, 5, 6, 0x1a, 3, 7, 8, 9, 0x22, 1, 10]);
        }
        assert_eq!(request().encode_to_vec(), expected);

        let response = QueryResponse {
            version: VERSION,
            epoch: Bytes::copy_from_slice(&EPOCH),
            answers: vec![Answer { words: vec![9, 8].into() }],
        };
        let mut expected = vec![0x08, 1, 0x12, 32];
        expected.extend([7; 32]);
        expected.extend([0x1a, 4, 0x0a, 2, 9, 8]);
        assert_eq!(response.encode_to_vec(), expected);
    }

    #[test]
    fn a_valid_request_decodes_and_fits_its_bound() {
        let mut full = request();
        full.queries.push(full.queries[0].clone());
        assert!(full.encoded_len() <= shape().max_bytes());
        assert_eq!(decode(&full).unwrap(), full.queries);
    }

    #[test]
    fn every_check_names_what_is_wrong() {
        let broken = |change: &dyn Fn(&mut QueryRequest)| {
            let mut request = request();
            change(&mut request);
            decode(&request).unwrap_err()
        };
        assert_eq!(broken(&|r| r.version = 2), WireError::Version { expected: VERSION, actual: 2 });
        assert_eq!(
            broken(&|r| r.epoch = vec![7; 31].into()),
            WireError::EpochLength { expected: 32, actual: 31 }
        );
        assert_eq!(broken(&|r| r.epoch = vec![8; 32].into()), WireError::EpochGone);
        assert_eq!(
            broken(&|r| r.protocol = "other".into()),
            WireError::Protocol { expected: "simple".into() }
        );
        assert_eq!(broken(&|r| r.queries.clear()), WireError::NoQueries);
        assert_eq!(
            broken(&|r| r.queries.resize(4, Query::default())),
            WireError::TooManyQueries { max: 3, actual: 4 }
        );
        assert_eq!(
            broken(&|r| r.queries[1].first = vec![0; 5].into()),
            WireError::QueryLength { index: 1, field: "first", expected: 4, actual: 5 }
        );
        assert_eq!(
            broken(&|r| r.queries[0].second = Bytes::new()),
            WireError::QueryLength { index: 0, field: "second", expected: 2, actual: 0 }
        );
        assert_eq!(
            broken(&|r| r.queries[1].packed = vec![0; 2].into()),
            WireError::QueryLength { index: 1, field: "packed", expected: 3, actual: 2 }
        );
        assert_eq!(
            broken(&|r| r.queries[0].key_id = vec![0; 32].into()),
            WireError::QueryLength { index: 0, field: "key_id", expected: 1, actual: 32 }
        );
    }

    #[test]
    fn empty_entries_are_counted_before_they_are_built() {
        let bomb: Vec<u8> = [0x22, 0].repeat(1 << 20);
        assert_eq!(
            shape().decode(bomb.into()).unwrap_err(),
            WireError::TooManyQueries { max: 3, actual: 1 << 20 }
        );
    }

    #[test]
    fn truncated_requests_are_errors() {
        let bytes = request().encode_to_vec();
        for end in 0..bytes.len() {
            assert!(shape().decode(bytes[..end].to_vec().into()).is_err() || end == 64, "cut at {end}");
        }
    }

    #[test]
    fn responses_are_checked_against_the_request() {
        let response = QueryResponse {
            version: VERSION,
            epoch: Bytes::copy_from_slice(&EPOCH),
            answers: vec![Answer { words: vec![1, 2, 3].into() }; 2],
        };
        let body: Bytes = response.encode_to_vec().into();
        let shape = ResponseShape { epoch: Some(&EPOCH), answers: 2, answer_bytes: 3 };
        assert!(body.len() <= shape.max_bytes());
        let answers = vec![Bytes::from_static(&[1, 2, 3]); 2];
        assert_eq!(shape.decode(body.clone()).unwrap(), (EPOCH, answers.clone()));
        assert_eq!(ResponseShape { epoch: None, ..shape }.decode(body.clone()).unwrap(), (EPOCH, answers));
        assert_eq!(
            ResponseShape { answers: 1, ..shape }.decode(body.clone()).unwrap_err(),
            WireError::AnswerCount { expected: 1, actual: 2 }
        );
        assert_eq!(
            ResponseShape { answer_bytes: 4, ..shape }.decode(body.clone()).unwrap_err(),
            WireError::AnswerLength { index: 0, expected: 4, actual: 3 }
        );
        assert_eq!(
            ResponseShape { epoch: Some(&[1; EPOCH_BYTES]), ..shape }.decode(body).unwrap_err(),
            WireError::EpochGone
        );
    }
}
