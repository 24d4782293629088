//! `/` of a relay: the gateway's keys for `GET`, sealed requests for `POST`.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    body::Bytes,
    extract::{ConnectInfo, Request, State},
    http::{
        StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use hush_protocol::ohttp::REQUEST_TYPE;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, task::spawn_blocking, time::Instant};

use super::{admit, check_content_type};
use crate::{
    access::client::ClientAddress,
    problem::{Code, Problem},
    queue::limits::read_body,
    relay::{RELAYED_AT_ONCE, Relayed, Uplink},
    state::Server,
};

/// The time for which the relay caches the gateway's keys. All clients that ask meanwhile get the same.
const KEY_LIFETIME: Duration = Duration::from_secs(60);
/// The longest sealed request, in bytes. Evaluation keys of a client are some megabytes.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// The state of the relay.
#[derive(Clone)]
pub(super) struct Relay {
    server: Arc<Server>,
    uplink: Arc<dyn Uplink>,
    keys: Arc<Mutex<Option<(Instant, Relayed)>>>,
    places: Arc<Semaphore>,
}

impl Relay {
    pub(super) fn new(server: Arc<Server>, uplink: Arc<dyn Uplink>) -> Relay {
        Relay { server, uplink, keys: Arc::default(), places: Arc::new(Semaphore::new(RELAYED_AT_ONCE)) }
    }

    /// Asks the gateway on a blocking thread. Fails with `overloaded` beyond [`RELAYED_AT_ONCE`] requests, and with `bad_gateway`
    /// if the gateway does not answer.
    async fn ask(
        &self,
        what: impl FnOnce(&dyn Uplink) -> Result<Relayed, String> + Send + 'static,
    ) -> Result<Relayed, Problem> {
        let Ok(_place) = self.places.try_acquire() else {
            return Err(Problem::overloaded("the gateway has too much to answer"));
        };
        let uplink = self.uplink.clone();
        let asked = spawn_blocking(move || what(&*uplink)).await.map_err(|_| Problem::internal())?;
        asked.map_err(|error| {
            tracing::warn!(error, "cannot pass a request on: the gateway does not answer");
            Problem::new(Code::BadGateway, "the server behind this relay does not answer")
        })
    }
}

/// Returns the gateway's keys. The relay asks the gateway for them once a minute at most.
pub(super) async fn keys(
    State(relay): State<Relay>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
) -> Result<Response, Problem> {
    admit(&relay.server, ClientAddress::from(peer.ip()))?;
    let kept = || relay.keys.lock();
    let known =
        kept().as_ref().filter(|(since, _)| since.elapsed() < KEY_LIFETIME).map(|(_, keys)| keys.clone());
    let keys = match known {
        Some(keys) => keys,
        None => {
            let keys = relay.ask(|uplink| uplink.keys()).await?;
            if keys.status == StatusCode::OK.as_u16() {
                *kept() = Some((Instant::now(), keys.clone()));
            }
            keys
        }
    };
    Ok(respond(keys, "max-age=60"))
}

/// Passes one sealed request on, and the answer back.
pub(super) async fn pass_on(
    State(relay): State<Relay>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Result<Response, Problem> {
    let client = ClientAddress::from(peer.ip());
    admit(&relay.server, client)?;
    let (parts, body) = request.into_parts();
    check_content_type(&parts.headers, REQUEST_TYPE)?;
    let (sealed, mut memory) =
        read_body(&relay.server, client, &parts.headers, body, MAX_REQUEST_BYTES).await?;
    let relayed = relay.ask(move |uplink| uplink.pass_on(&sealed)).await?;
    memory.grow(relayed.body.len())?;
    if relayed.status == StatusCode::BAD_REQUEST.as_u16() {
        // The request may be sealed for a key that is gone: the next client must get the new one.
        *relay.keys.lock() = None;
    }
    Ok(respond(relayed, "no-store"))
}

fn respond(relayed: Relayed, caching: &'static str) -> Response {
    let Relayed { status, content_type, body } = relayed;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let content_type = content_type.unwrap_or_else(|| "application/octet-stream".into());
    (status, [(CONTENT_TYPE, content_type), (CACHE_CONTROL, caching.into())], Bytes::from(body))
        .into_response()
}
