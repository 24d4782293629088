//! Messages of clients and servers.

use hush_protocol::wire::{
    self, Answer, EPOCH_BYTES, EvaluationKeys, MAX_PRESET_BYTES, QueryRequest, QueryResponse, QuerySizes,
    RequestShape, ResponseShape, VERSION,
};
use prost::{Message, bytes::Bytes};

use crate::allocation::{FIXED, bounded};

const EPOCH: [u8; EPOCH_BYTES] = [7; EPOCH_BYTES];

/// A request of queries, by a server whose queries are short.
pub fn query_request(bytes: &[u8]) {
    let query = QuerySizes { first: 4, second: 2, packed: 3, key_id: 1 };
    let shape = RequestShape { asked: &EPOCH, protocol: "simple", query, max_queries: 3 };
    let body = Bytes::copy_from_slice(bytes);
    let Ok(queries) = bounded(FIXED + bytes.len(), || shape.decode(body)) else { return };
    assert!((1..=shape.max_queries).contains(&queries.len()));
    for one in &queries {
        let sizes = QuerySizes {
            first: one.first.len(),
            second: one.second.len(),
            packed: one.packed.len(),
            key_id: one.key_id.len(),
        };
        assert!(sizes == query);
    }
    let request = QueryRequest {
        version: VERSION,
        epoch: EPOCH.to_vec().into(),
        protocol: shape.protocol.into(),
        queries: queries.clone(),
    };
    let encoded = request.encode_to_vec();
    assert!(encoded.len() <= shape.max_bytes());
    assert_eq!(shape.decode(encoded.into()), Ok(queries));
}

/// A response with answers, by a client that has sent three queries.
pub fn query_response(bytes: &[u8]) {
    let shape = ResponseShape { epoch: Some(&EPOCH), answers: 3, answer_bytes: 5 };
    let body = Bytes::copy_from_slice(bytes);
    let Ok((_, answers)) = bounded(FIXED + bytes.len(), || shape.decode(body)) else { return };
    assert!(answers.len() == shape.answers && answers.iter().all(|words| words.len() == shape.answer_bytes));
    let response = QueryResponse {
        version: VERSION,
        epoch: EPOCH.to_vec().into(),
        answers: answers.iter().map(|words| Answer { words: words.clone() }).collect(),
    };
    let encoded = response.encode_to_vec();
    assert!(encoded.len() <= shape.max_bytes());
    assert_eq!(shape.decode(encoded.into()), Ok((EPOCH, answers)));
}

/// Evaluation keys, of whatever parameter set.
pub fn evaluation_keys(bytes: &[u8]) {
    let body = Bytes::copy_from_slice(bytes);
    let Ok(keys) = bounded(FIXED + bytes.len(), || wire::decode_keys(body)) else { return };
    let EvaluationKeys { version, preset, seed, words } = &keys;
    assert!(*version == VERSION && (1..=MAX_PRESET_BYTES).contains(&preset.len()));
    let encoded = keys.encode_to_vec();
    if !seed.is_empty() && !words.is_empty() {
        assert_eq!(encoded.len(), wire::encoded_keys_bytes(preset, seed.len(), words.len()));
    }
    assert_eq!(wire::decode_keys(encoded.into()), Ok(keys));
}
