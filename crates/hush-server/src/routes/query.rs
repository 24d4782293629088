//! `POST /v1/tables/{table}/query`: the only endpoint that costs a scan.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    convert::Infallible,
    net::SocketAddr,
    sync::Arc,
};

use axum::{
    body::{Body, Bytes},
    extract::{ConnectInfo, Request, State},
    http::{
        HeaderValue,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use futures_util::stream;
use hush_protocol::wire::{self, Answer, Query, QueryResponse, WireError};
use prost::Message;
use tokio::time::Instant;

use super::{TableName, admit, check_content_type, resident};
use crate::{
    access::{caller::Caller, client::ClientAddress},
    keys::{self, KeyId, OpenedKeys},
    problem::Problem,
    queue::{
        batch::{self, AnswerError, AnsweredBatch, QueryReply},
        limits::{Reservation, read_body},
    },
    state::{ResidentTable, Server},
};

/// Answers encrypted queries, in order.
///
/// Everything that can be refused without reading the body is; the scan is shared with the queries of others.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/tables/{table}/query", operation_id = "query",
    request_body(content = Vec<u8>, description = "A QueryRequest.", content_type = "application/x-protobuf"),
    responses((status = 200, description = "A QueryResponse.", body = Vec<u8>, content_type = "application/x-protobuf"))))]
pub(super) async fn answer(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    caller: Caller,
    name: TableName,
    request: Request,
) -> Result<Response, Problem> {
    let (table, replaced) = resident(&server, &caller, name)?;
    let client = ClientAddress::from(peer.ip());
    admit(&server, client)?;
    let (parts, body) = request.into_parts();
    check_content_type(&parts.headers, wire::CONTENT_TYPE)?;
    let max_bytes = |table: &Arc<ResidentTable>| table.request_shape(&server.config).max_bytes();
    let limit = replaced.iter().map(max_bytes).fold(max_bytes(&table), usize::max);
    let (body, memory) = read_body(&server, client, &parts.headers, body, limit).await?;
    let body_bytes = body.len();
    let (table, queries) = decode(&server, table, replaced, body)?;
    if let Some(grant) = caller.grant() {
        grant.charge(queries.len() - 1);
    }
    if let Some(buckets) = &server.buckets {
        buckets.charge(client, queries.len() - 1, Instant::now());
    }
    let answer_bytes = queries.len().saturating_mul(table.served().answer_bytes);
    let limit = server.config.share_of(server.config.max_body_memory);
    if answer_bytes > limit - body_bytes {
        return Err(Problem::answers_too_large(limit));
    }
    let mut answers = memory.another();
    answers.grow(answer_bytes)?;
    batch::check_room(&server, &table, client, queries.len())?;
    let queries = with_keys(&server, &table, queries).await?;
    let replies = batch::submit(&server, &table, client, queries, memory, answers)?;
    Ok(respond(collect(replies, &table.served().epoch).await?))
}

/// Returns the queries of a body, and the table that answers them: the current epoch, or the replaced epoch that they
/// name.
fn decode(
    server: &Server,
    current: Arc<ResidentTable>,
    replaced: Vec<Arc<ResidentTable>>,
    body: Bytes,
) -> Result<(Arc<ResidentTable>, Vec<Query>), Problem> {
    for table in [current.clone()].into_iter().chain(replaced) {
        match table.request_shape(&server.config).decode(body.clone()) {
            Ok(queries) => return Ok((table, queries)),
            Err(WireError::EpochGone) => {}
            Err(error) => return Err(Problem::wire(error, &table)),
        }
    }
    Err(Problem::wire(WireError::EpochGone, &current))
}

/// Returns the queries, each with the keys that it names if the table needs any. All keys are in memory before anything is
/// scanned.
async fn with_keys(
    server: &Arc<Server>,
    table: &ResidentTable,
    queries: Vec<Query>,
) -> Result<Vec<(Query, Option<Arc<OpenedKeys>>)>, Problem> {
    let Some(spec) = &table.served().keys else {
        return Ok(queries.into_iter().map(|query| (query, None)).collect());
    };
    let distinct = queries.iter().map(|query| &query.key_id).collect::<HashSet<_>>().len();
    let limit = server.config.open_keys;
    if distinct > limit {
        return Err(Problem::too_many_keys(limit));
    }
    let mut found = HashMap::new();
    let mut paired = Vec::with_capacity(queries.len());
    for (index, query) in queries.into_iter().enumerate() {
        // The length was checked already: only an engine that contradicts itself fails here.
        let id = KeyId::try_from(&*query.key_id).map_err(|_| Problem::internal())?;
        let opened = match found.entry(id) {
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(slot) => {
                let opened = keys::find(server, table, spec, &id).await;
                slot.insert(opened.map_err(|error| Problem::query_keys(error, index))?).clone()
            }
        };
        paired.push((query, Some(opened)));
    }
    Ok(paired)
}

/// Waits for the answers. Returns the pieces of an encoded [`QueryResponse`]: its header, then one for each answer. In protobuf,
/// the concatenation of messages is the encoding of all their fields. Since each answer is a piece, it is in memory twice only
/// while it is encoded.
async fn collect(replies: Vec<QueryReply>, epoch: &[u8]) -> Result<Vec<WrittenPiece>, Problem> {
    let epoch = Bytes::copy_from_slice(epoch);
    let header = QueryResponse { version: wire::VERSION, epoch, answers: Vec::new() };
    let mut pieces = vec![WrittenPiece { bytes: header.encode_to_vec(), _memory: None }];
    for (index, reply) in replies.into_iter().enumerate() {
        // A reply is dropped unsent only if the runtime goes down.
        let answered = reply.await.unwrap_or(Err(AnswerError::Internal));
        let AnsweredBatch { words, memory } = answered.map_err(|error| Problem::answer(error, index))?;
        let answers = vec![Answer { words: words.into() }];
        let bytes = QueryResponse { answers, ..QueryResponse::default() }.encode_to_vec();
        pieces.push(WrittenPiece { bytes, _memory: Some(memory) });
    }
    Ok(pieces)
}

/// Returns a response of these pieces. Each counts in the budget until it is written or the connection ends.
fn respond(pieces: Vec<WrittenPiece>) -> Response {
    let content_length = HeaderValue::from(pieces.iter().map(|piece| piece.bytes.len()).sum::<usize>());
    let content_type = [(CONTENT_TYPE, wire::CONTENT_TYPE)];
    let content_length = [(CONTENT_LENGTH, content_length)];
    let pieces: Vec<_> =
        pieces.into_iter().map(|piece| Ok::<_, Infallible>(Bytes::from_owner(piece))).collect();
    (content_type, content_length, Body::from_stream(stream::iter(pieces))).into_response()
}

/// The bytes of a response with their share of the budget. The connection takes the bytes out of the body long before it writes
/// them, so the body itself cannot hold the reservation.
struct WrittenPiece {
    bytes: Vec<u8>,
    _memory: Option<Reservation>,
}

impl AsRef<[u8]> for WrittenPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
