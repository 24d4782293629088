//! `POST /v1/tables/{table}/query`: the only endpoint that costs a scan.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use axum::{
    body::Bytes,
    extract::{ConnectInfo, Path, Request, State, rejection::PathRejection},
    http::{HeaderMap, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use hush_protocol::wire::{self, Answer, QueryResponse};
use prost::Message;

use super::resident;
use crate::{
    batch::{self, AnswerError, Reply},
    limits::read_body,
    problem::{Code, Problem},
    state::Server,
};

/// Answers the queries of one request, in order. Everything that can be refused without reading the
/// body is; the scan is shared with the queries of others.
pub(super) async fn answer(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let table = resident(&server, name)?;
    if let Some(buckets) = &server.buckets {
        buckets.admit(peer.ip(), Instant::now()).map_err(Problem::throttled)?;
    }
    let (parts, body) = request.into_parts();
    check_content_type(&parts.headers)?;
    let shape = table.request_shape(&server.config);
    let (body, reservation) = read_body(&server, &parts.headers, body, shape.max_bytes()).await?;
    let queries = shape.decode(body).map_err(|error| Problem::wire(error, &table))?;
    if let Some(buckets) = &server.buckets {
        buckets.charge(peer.ip(), queries.len() - 1, Instant::now());
    }
    let replies = batch::submit(&server, &table, queries, reservation)
        .map_err(|_| Problem::overloaded("too many queries are waiting for this table"))?;
    let response = QueryResponse {
        version: wire::VERSION,
        epoch: Bytes::copy_from_slice(&table.epoch),
        answers: collect(replies).await?,
    };
    let content_type = [(CONTENT_TYPE, wire::CONTENT_TYPE)];
    Ok((content_type, response.encode_to_vec()).into_response())
}

async fn collect(replies: Vec<Reply>) -> Result<Vec<Answer>, Problem> {
    let mut answers = Vec::with_capacity(replies.len());
    for (index, reply) in replies.into_iter().enumerate() {
        // A reply is dropped unsent only if the runtime goes down.
        let words = reply.await.unwrap_or(Err(AnswerError::Internal));
        let words = words.map_err(|error| Problem::answer(error, index))?;
        answers.push(Answer { words: words.into() });
    }
    Ok(answers)
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = value.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case(wire::CONTENT_TYPE) {
        return Ok(());
    }
    let detail = format!("the content type must be {}", wire::CONTENT_TYPE);
    Err(Problem::new(Code::UnsupportedMediaType, detail))
}
