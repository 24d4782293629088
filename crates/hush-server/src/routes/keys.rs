//! `PUT /v1/keys/{hash}`, `HEAD /v1/keys/{hash}`: the evaluation keys that queries name.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{ConnectInfo, Path, Request, State, rejection::PathRejection},
    http::StatusCode,
};

use hush_protocol::wire;

use super::{admit, check_content_type};
use crate::{
    access::client::ClientAddress,
    keys::{self, KeyId},
    problem::{Code, Problem},
    queue::limits::read_body,
    state::Server,
};

/// Takes a client's evaluation keys.
///
/// Everything that can be refused without reading the body is; a body that is not all there leaves nothing behind.
#[cfg_attr(feature = "openapi", utoipa::path(put, path = "/v1/keys/{hash}", operation_id = "putKeys",
    request_body(content = Vec<u8>, description = "An EvaluationKeys.", content_type = "application/x-protobuf"),
    responses((status = 201, description = "They are new."), (status = 204, description = "They were here."))))]
pub(super) async fn upload(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    hash: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<StatusCode, Problem> {
    let id = key_id(hash)?;
    let client = ClientAddress::from(peer.ip());
    admit(&server, client)?;
    let (parts, body) = request.into_parts();
    check_content_type(&parts.headers, wire::CONTENT_TYPE)?;
    let longest = server.tables.with_keys().iter().map(|(spec, _)| spec.bytes).max();
    let limit = longest.ok_or_else(|| no_taker(&server))?;
    let read = read_body(&server, client, &parts.headers, body, limit).await;
    let (body, memory) = read.map_err(|problem| too_long(&server, problem))?;
    match keys::upload(&server, client, id, body, memory).await {
        Ok(true) => Ok(StatusCode::CREATED),
        Ok(false) => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(Problem::uploaded_keys(error, !server.tables.any_loading())),
    }
}

/// Tells whether evaluation keys are here.
#[cfg_attr(feature = "openapi", utoipa::path(head, path = "/v1/keys/{hash}", operation_id = "hasKeys",
    responses((status = 204, description = "They are."))))]
pub(super) async fn contains(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    hash: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let id = key_id(hash)?;
    admit(&server, peer.ip().into())?;
    match keys::contains(&server, id).await {
        Ok(true) => Ok(StatusCode::NO_CONTENT),
        Ok(false) => Err(Problem::new(Code::NotFound, "there are no keys of this hash")),
        Err(error) => Err(Problem::stored_keys(error)),
    }
}

/// Returns the hash that a path names. Fails with `invalid_request` if it is malformed.
fn key_id(hash: Result<Path<String>, PathRejection>) -> Result<KeyId, Problem> {
    let wrong = || Problem::new(Code::InvalidRequest, "keys are named by a hash of 64 hex digits");
    let Path(text) = hash.map_err(|_| wrong())?;
    let mut id = KeyId::default();
    hex::decode_to_slice(&text, &mut id).map_err(|_| wrong())?;
    Ok(id)
}

/// Returns the problem of keys that no table needs.
fn no_taker(server: &Server) -> Problem {
    if server.tables.any_loading() {
        still_loading()
    } else {
        Problem::new(Code::NotFound, "no table here needs keys")
    }
}

/// Returns the problem of keys that are too long for the tables that are here. A table that is still loading may take them, so
/// the client is then told to ask again.
fn too_long(server: &Server, problem: Problem) -> Problem {
    if problem.is(Code::TooLarge) && server.tables.any_loading() { still_loading() } else { problem }
}

fn still_loading() -> Problem {
    Problem::warming("the keys may be for a table that is still loading")
}
