//! `/.well-known/ohttp-gateway`: requests that come through a relay. The relay sees who asks and not what, the gateway what and
//! not who.

use std::{net::SocketAddr, sync::Arc, time::SystemTime};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{ConnectInfo, Request, State},
    http::{
        HeaderMap, Method, Uri,
        header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, DATE},
    },
    response::{IntoResponse, Response},
};
use bhttp::{Message, Mode, StatusCode};
use hush_protocol::{
    ohttp::{KEYS_TYPE, REQUEST_TYPE, RESPONSE_TYPE, check_message, padded},
    wire::ResponseShape,
};
use hyper::body::Body as _;
use tokio::task::spawn_blocking;
use tower::Service;

use super::check_content_type;
use crate::{
    access::{
        client::ClientAddress,
        gateway::{Gateway, OpenedRequest, Sealed},
        replays::Unanswered,
    },
    problem::{Code, Problem},
    queue::limits::{Reservation, read_body},
    state::{ResidentTable, Server},
    tables::TableSlot,
};

/// The time for which clients and relays may cache the key.
const KEY_CACHING: &str = "max-age=3600";
/// The bytes of a message beside its body.
const MESSAGE_SLACK: usize = 64 << 10;
/// The bytes of the fields of the response to a look-up, encoded.
const RESPONSE_FIELDS: usize = 512;
/// The number of copies of a body in memory while it is opened or sealed.
const COPIES: usize = 3;

/// The state of the gateway, with the endpoints that it passes requests on to.
#[derive(Clone)]
pub(super) struct Inside {
    pub(super) server: Arc<Server>,
    pub(super) gateway: Arc<Gateway>,
    pub(super) endpoints: Router,
}

/// Returns the key for which requests through a relay are sealed (RFC 9540).
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/.well-known/ohttp-gateway", operation_id = "getGatewayKey",
    responses((status = 200, description = "A list of one key configuration.", body = Vec<u8>,
        content_type = "application/ohttp-keys"))))]
pub(super) async fn key(State(inside): State<Inside>) -> impl IntoResponse {
    ([(CONTENT_TYPE, KEYS_TYPE), (CACHE_CONTROL, KEY_CACHING)], inside.gateway.public())
}

/// Opens a sealed request, answers it once, as if it had come by itself, and seals the answer. The request inside has a Date.
///
/// The relay sees no status but 200.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/.well-known/ohttp-gateway", operation_id = "postSealed",
    request_body(content = Vec<u8>, content_type = "message/ohttp-req"),
    responses((status = 200, description = "The sealed response, whatever it says.", body = Vec<u8>,
        content_type = "message/ohttp-res"))))]
pub(super) async fn answer(
    State(inside): State<Inside>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Result<Response, Problem> {
    let Inside { server, gateway, mut endpoints } = inside;
    let client = ClientAddress::from(peer.ip());
    let (parts, body) = request.into_parts();
    check_content_type(&parts.headers, REQUEST_TYPE)?;
    let (sealed, mut memory) = read_body(&server, client, &parts.headers, body, longest(&server)).await?;
    memory.grow((COPIES - 1) * sealed.len())?;
    let opens = gateway.clone();
    let opened = spawn_blocking(move || opens.open_request(&sealed)).await;
    let OpenedRequest { message, seals, name } = opened.map_err(|_| Problem::internal())?.map_err(refused)?;
    let mut request = decode(&message)?;
    drop(message);
    let least = least_bytes(&server, &request);
    request.extensions_mut().insert(ConnectInfo(peer));
    let response = match gateway.admit(name, date(request.headers())) {
        // A router is always ready, and never fails.
        Ok(()) => endpoints.call(request).await.unwrap_or_else(|never| match never {}),
        Err(Unanswered::Date) => {
            server.metrics.sealed_dates.inc();
            other_date()
        }
        Err(Unanswered::Replay) => {
            server.metrics.sealed_replays.inc();
            let detail = "the request was answered before: seal another one";
            return Err(Problem::new(Code::OhttpReplay, detail));
        }
    };
    let memory = memory.another();
    let (message, memory) = encode(&server, memory, response, least).await?;
    let sealed = spawn_blocking(move || seals.encapsulate(&message)).await;
    let sealed = sealed.map_err(|_| Problem::internal())?.map_err(|_| Problem::internal())?;
    let content_length = [(CONTENT_LENGTH, sealed.len())];
    let sealed = Bytes::from_owner(Held { bytes: sealed, _memory: memory });
    Ok(([(CONTENT_TYPE, RESPONSE_TYPE), (CACHE_CONTROL, "no-store")], content_length, sealed).into_response())
}

/// Bytes with their share of the budget until they are written.
struct Held {
    bytes: Vec<u8>,
    _memory: Reservation,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns the bytes of the longest sealed request that an endpoint accepts.
fn longest(server: &Server) -> usize {
    let resident = server.tables.all().into_iter().filter_map(|(_, slot)| match slot {
        TableSlot::Resident(table) => Some(table.request_shape(&server.config).max_bytes()),
        TableSlot::Loading | TableSlot::Failed(_) => None,
    });
    let keys = server.tables.with_keys();
    let keys = keys.iter().map(|(spec, _)| spec.bytes);
    resident.chain(keys).max().unwrap_or(0).saturating_add(MESSAGE_SLACK)
}

fn refused(sealed: Sealed) -> Problem {
    match sealed {
        Sealed::UnknownKey => Problem::new(
            Code::OhttpKey,
            "the request is sealed for a key that is not in use any more: fetch the key again",
        ),
        Sealed::Broken => {
            Problem::new(Code::InvalidRequest, "the request does not open with the key that it names")
        }
    }
}

/// Returns the date in the headers of a request.
fn date(headers: &HeaderMap) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()
}

/// Returns the response to a request whose date is refused, with a date that is accepted (RFC 9458 section 6.5.2).
fn other_date() -> Response {
    let detail =
        "the request has no date that is taken now: take the date of this response, and seal another one";
    let date = [(DATE, httpdate::fmt_http_date(SystemTime::now()))];
    (date, Problem::new(Code::OhttpDate, detail)).into_response()
}

/// Returns the request of a message, always for this server, whatever server the message names. Fails with `invalid_request` if
/// the message is malformed or a response.
fn decode(message: &[u8]) -> Result<Request, Problem> {
    let refused = |why: &str| Problem::new(Code::InvalidRequest, format!("the sealed request: {why}"));
    check_message(message).map_err(refused)?;
    let message = Message::read_bhttp(&mut std::io::Cursor::new(message))
        .map_err(|error| refused(&error.to_string()))?;
    let control = message.control();
    let (Some(method), Some(path)) = (control.method(), control.path()) else {
        return Err(refused("it is a response"));
    };
    let method = Method::from_bytes(method).map_err(|_| refused("its method is none"))?;
    let path = Uri::try_from(path).ok().filter(|path| path.authority().is_none());
    let mut request =
        axum::http::Request::builder().method(method).uri(path.ok_or_else(|| refused("its path is none"))?);
    for field in message.header().fields() {
        request = request.header(field.name(), field.value());
    }
    let body = Body::from(message.content().to_vec());
    request.body(body).map_err(|_| refused("its fields are none"))
}

/// Returns the least bytes of the response to a request. For look-ups, these are the bytes of the answers, so that a refused
/// request looks no different to the relay.
fn least_bytes(server: &Server, request: &Request) -> usize {
    let table = request.uri().path().strip_prefix("/v1/tables/").and_then(|rest| rest.strip_suffix("/query"));
    let slot = table.and_then(|name| server.tables.slot(name));
    let Some((TableSlot::Resident(table), _)) = slot else { return 0 };
    let queries = queries(&table, request.body().size_hint().lower()).min(server.config.max_queries);
    let answer_bytes = table.served().answer_bytes;
    ResponseShape { epoch: None, answers: queries, answer_bytes }.max_bytes() + RESPONSE_FIELDS
}

/// Returns the most queries that a body of this length has.
fn queries(table: &ResidentTable, body_bytes: u64) -> usize {
    body_bytes as usize / table.served().query.total().max(1)
}

/// Encodes a response as a message of at least `least` bytes. Returns it with the memory that it takes. A response that is too
/// long, or of unknown length, becomes the problem `too_large`. Fails with `throttled` or `overloaded` if there is no memory.
async fn encode(
    server: &Server,
    mut memory: Reservation,
    response: Response,
    least: usize,
) -> Result<(Vec<u8>, Reservation), Problem> {
    let (head, body) = response.into_parts();
    let limit = server.config.share_of(server.config.max_body_memory) / COPIES;
    let least = least.min(limit);
    // A streamed body states its length in the header alone.
    let declared = head.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let bytes = body.size_hint().exact().or(declared);
    let bytes = bytes.filter(|&bytes| bytes <= limit as u64).ok_or_else(|| {
        Problem::new(Code::TooLarge, format!("sealed responses have at most {limit} bytes: ask for ranges"))
    });
    let (head, body) = match bytes {
        Ok(bytes) => {
            memory.grow(COPIES * (bytes as usize).max(least))?;
            (head, to_bytes(body, limit).await.map_err(|_| Problem::internal())?)
        }
        Err(problem) => {
            let (head, body) = problem.into_response().into_parts();
            (head, to_bytes(body, limit).await.map_err(|_| Problem::internal())?)
        }
    };
    let status = StatusCode::try_from(u64::from(head.status.as_u16())).map_err(|_| Problem::internal())?;
    let mut message = Message::response(status);
    for (name, value) in &head.headers {
        message.put_header(name.as_str(), value.as_bytes());
    }
    message.write_content(&body);
    let mut bytes = Vec::with_capacity(padded((body.len() + MESSAGE_SLACK).max(least)));
    message.write_bhttp(Mode::KnownLength, &mut bytes).map_err(|_| Problem::internal())?;
    bytes.resize(padded(bytes.len().max(least)), 0);
    Ok((bytes, memory))
}
