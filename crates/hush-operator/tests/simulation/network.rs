//! The way of requests to the server: late, lost, cut, sent twice.

use std::{net::SocketAddr, rc::Rc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    extract::ConnectInfo,
    response::Response,
};
use hush_client::session::{Head, Method, Request, TransportFailure};
use hush_protocol::wire::QueryRequest;
use prost::Message;
use tokio::{task::spawn_local, time::Instant};
use tower::ServiceExt;

use super::world::{Planted, World};

/// The time after which a client gives a request up that has no response.
const SILENCE: Duration = Duration::from_secs(30);

/// A response as it arrives.
pub(crate) struct Arrived {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    /// Whether the connection breaks after the body, which is not whole.
    pub(crate) is_cut: bool,
}

/// The fate of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Arrives,
    /// The connection is refused.
    Refused,
    /// The request is lost.
    Lost,
    /// The response is lost.
    Unanswered,
    /// The response breaks off.
    Cut,
    /// A proxy sends the request twice, and passes the first response on.
    Twice,
}

/// Sends a request of a client.
pub(crate) async fn call(
    world: &Rc<World>,
    client: u64,
    request: &Request,
) -> Result<Arrived, TransportFailure> {
    let (fate, there, back, later) = {
        let mut dice = world.dice.borrow_mut();
        let faults = if world.calm.get() { 0 } else { world.plan.faults };
        let fates = [Fate::Refused, Fate::Lost, Fate::Unanswered, Fate::Cut, Fate::Twice];
        let fate = fates.into_iter().find(|_| dice.chance(faults)).unwrap_or(Fate::Arrives);
        let mut time = || dice.time(world.plan.slowest);
        (fate, time(), time(), time())
    };
    note_sent(world, request);
    world.pass(there).await;
    let outcome = match fate {
        Fate::Refused => Err(unreachable("connection refused")),
        Fate::Lost => {
            if world.plan.planted == Some(Planted::LosesRequests) {
                std::future::pending::<()>().await;
            }
            world.pass(silence(request)).await;
            Err(silent())
        }
        _ => {
            if fate == Fate::Twice {
                let (world, request) = (world.clone(), request.clone());
                spawn_local(async move {
                    world.pass(later).await;
                    drop(deliver(&world, client, &request).await);
                });
            }
            match tokio::time::timeout(silence(request), deliver(world, client, request)).await {
                Ok(outcome) => outcome,
                Err(_) => Err(silent()),
            }
        }
    };
    let outcome = match outcome {
        Ok(arrived) if fate == Fate::Cut && !arrived.body.is_empty() => {
            let kept = world.dice.borrow_mut().below(arrived.body.len() as u64) as usize;
            Ok(Arrived { is_cut: true, body: arrived.body[..kept].to_vec(), ..arrived })
        }
        Ok(_) if fate == Fate::Unanswered => Err(unreachable("connection reset")),
        outcome => outcome,
    };
    world.pass(back).await;
    let path = if request.path.starts_with("/v1/keys/") { "/v1/keys/.." } else { &request.path };
    let came = match &outcome {
        Ok(arrived) => format!("{} and {} bytes", arrived.head.status, arrived.body.len()),
        Err(failure) => failure.to_string(),
    };
    world.tell(&format!(
        "client {client}: {} {path}, {} bytes: {came}",
        request.method.name(),
        request.body.len()
    ));
    outcome
}

/// Checks what is to be seen of a request, whether or not it arrives: its length follows from the epoch of the table and the number
/// of look-ups, and no keys serve more look-ups than they may.
fn note_sent(world: &World, request: &Request) {
    let Method::Post = request.method else { return };
    let QueryRequest { epoch, queries, .. } =
        QueryRequest::decode(request.body.as_slice()).expect("a request of look-ups");
    let asked = format!("{} look-ups of {} by {}", queries.len(), hex::encode(epoch), request.path);
    let bytes = *world.sizes.borrow_mut().entry(asked.clone()).or_insert(request.body.len());
    assert_eq!(bytes, request.body.len(), "{asked}");
    let mut under = world.under_keys.borrow_mut();
    for query in queries.iter().filter(|query| !query.key_id.is_empty()) {
        let (count, last) = under.entry(query.key_id.to_vec()).or_insert((0, Instant::now()));
        (*count, *last) = (*count + 1, Instant::now());
        assert!(*count <= super::client::LOOKUPS_PER_KEY, "{count} look-ups under the same keys");
    }
}

/// Returns the time that a client waits for a response.
fn silence(request: &Request) -> Duration {
    request.time_left.map_or(SILENCE, |left| left.min(SILENCE))
}

/// Hands a request to the server. It is lost if the server ends meanwhile.
async fn deliver(world: &World, client: u64, request: &Request) -> Result<Arrived, TransportFailure> {
    let Some((router, mut ends)) = world.server() else { return Err(unreachable("connection refused")) };
    let peer = SocketAddr::from(([10, 0, 0, client as u8], 40_000));
    let mut sent = axum::http::Request::builder().method(request.method.name()).uri(&request.path);
    for (name, value) in &request.headers {
        sent = sent.header(*name, value);
    }
    let sent = sent.extension(ConnectInfo(peer)).body(Body::from(request.body.clone())).unwrap();
    let answered = async {
        let response: Response = router.oneshot(sent).await.unwrap_or_else(|never| match never {});
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.map_err(|error| unreachable(&error.to_string()))?;
        let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
            (name.to_string(), value.to_str().unwrap_or("").to_owned())
        };
        let head = Head {
            status: parts.status.as_u16(),
            headers: parts.headers.iter().map(header).collect(),
            body_bytes: Some(body.len() as u64),
        };
        Ok(Arrived { head, body: body.to_vec(), is_cut: false })
    };
    tokio::select! {
        biased;
        _ = ends.changed() => Err(unreachable("connection reset")),
        answered = answered => answered,
    }
}

/// Returns what an endpoint says to somebody on the server's machine. It must answer.
pub(crate) async fn text(world: &World, path: &str) -> String {
    let request = Request {
        method: Method::Get,
        path: path.into(),
        headers: Vec::new(),
        body: Vec::new(),
        max_response_bytes: u64::MAX,
        is_last: true,
        time_left: None,
    };
    let arrived = deliver(world, 0, &request).await.unwrap_or_else(|failure| panic!("{path}: {failure}"));
    let text = String::from_utf8(arrived.body).unwrap();
    assert_eq!(arrived.head.status, 200, "{path}: {text}");
    text
}

pub(crate) fn unreachable(reason: &str) -> TransportFailure {
    TransportFailure::Unreachable { reason: reason.into(), transient: true }
}

fn silent() -> TransportFailure {
    TransportFailure::Timeout { phase: "no response".into() }
}
