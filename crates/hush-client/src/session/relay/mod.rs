//! Oblivious HTTP (RFC 9458). Sealed requests go to a relay, which passes them on. The relay learns who asks, and the
//! server learns what is asked.
//!
//! * [`seal`]: the seal of requests and responses. [`pieces`]: a file through a relay, in pieces.

pub(super) mod pieces;
mod seal;

use std::{
    io::Cursor,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, UNIX_EPOCH},
};

use bhttp::{Message, Mode};
use hush_protocol::{
    ohttp::{
        DATE_PROBLEM, KEY_PROBLEM, KEYS_TYPE, MAX_KEYS_BYTES, PADDING, REQUEST_TYPE, RESPONSE_TYPE,
        check_message, padded,
    },
    shown_url,
    wording::Wording,
};
use serde::Deserialize;
use zeroize::Zeroizing;

use self::{pieces::Pieces, seal::GatewayKey};
use super::{
    Head, Host, Method, Request, ServerUrl, SessionError, SessionOptions, TransportFailure,
    requests::{link::Link, problem::shown},
};

/// The bytes of a sealed response in addition to its body: fields, padding, and the text of an error.
const RESPONSE_SLACK: u64 = 1 << 20;

/// The unit of a request's `Date` in seconds, until the relay's clock is known. A finer date would reveal to the server the
/// error of the client's clock.
const DATE_SECONDS: u64 = 60;
/// The last date that HTTP can write, in seconds since 1970: the end of the year 9999.
const LAST_DATE: Duration = Duration::from_secs(253_402_300_799);

/// A server behind a relay.
pub(super) struct Relay {
    /// The scheme of the server's URL. Sealed requests name it.
    scheme: &'static str,
    authority: String,
    /// The relay's URL without secrets, for messages.
    shown: String,
    authorization: Option<Zeroizing<String>>,
    /// The server's keys: pinned by the options, or sent by the relay.
    keys: Mutex<Option<Vec<u8>>>,
    are_pinned: bool,
    clock: Mutex<Option<RelayTime>>,
}

/// The time by the relay's clock, which all clients of a relay share.
#[derive(Clone, Copy)]
struct RelayTime {
    /// The last date that the relay sent, since 1970.
    date: Duration,
    /// The time by the host's clock at which that date arrived.
    since: Duration,
}

/// A response of the relay.
struct RelayResponse {
    head: Head,
    body: Vec<u8>,
}

impl RelayResponse {
    fn is(&self, content_type: &str) -> bool {
        self.head.status == 200 && self.head.header("content-type") == Some(content_type)
    }

    /// Returns whether the same request may soon succeed.
    fn is_transient(&self) -> bool {
        matches!(self.head.status, 429 | 502..=504)
    }
}

impl Relay {
    /// Creates the route to the server at `url`, if the options name a relay.
    ///
    /// # Errors
    /// [`SessionError::TokenToRelay`] if there is a token but no pinned key. [`SessionError::Relay`] if the keys of the
    /// options are invalid.
    pub(super) fn new(url: &ServerUrl, options: &SessionOptions) -> Result<Option<Self>, SessionError> {
        let Some(relay) = &options.relay else { return Ok(None) };
        if options.authorization.is_some() && relay.keys.is_none() {
            return Err(SessionError::TokenToRelay);
        }
        if relay.keys.as_ref().is_some_and(|keys| GatewayKey::first_of(keys).is_none()) {
            let reason = "that is no key configuration of Oblivious HTTP: fetch it with curl -o FILE \
                          https://SERVER/.well-known/ohttp-gateway";
            return Err(SessionError::Relay { reason: reason.into() });
        }
        Ok(Some(Self {
            scheme: if url.is_https() { "https" } else { "http" },
            authority: url.authority().to_owned(),
            shown: shown_url(&relay.url),
            authorization: options.authorization.clone(),
            keys: Mutex::new(relay.keys.clone()),
            are_pinned: relay.keys.is_some(),
            clock: Mutex::default(),
        }))
    }

    /// Sends a request through the relay. If the server no longer has the key, fetches its keys again, once. If the server
    /// asks for another date, sends the request again with that date, once. Later requests do not use it, since a date that
    /// only one client was told would link them.
    async fn send(&self, link: &Link, request: &Request) -> Result<(Head, Vec<u8>), TransportFailure> {
        let mut is_second = false;
        let mut servers_date = None;
        loop {
            let keys = self.keys(link).await?;
            let date = servers_date.unwrap_or_else(|| self.date(link.host()));
            let message = self.encode(request, date)?;
            let sealed = GatewayKey::first_of(&keys).and_then(|key| key.seal(&message));
            let (body, opener) = sealed
                .ok_or_else(|| unusable("the keys of the server are none that this program can use"))?;
            let outer = Request {
                method: Method::Post,
                path: String::new(),
                headers: vec![("content-type", REQUEST_TYPE.into())],
                body,
                max_response_bytes: request.max_response_bytes.saturating_add(RESPONSE_SLACK),
                is_last: request.is_last,
                time_left: None,
            };
            let said = self.exchange(link, outer, RESPONSE_TYPE).await?;
            let is_key = said.head.status == 400 && String::from_utf8_lossy(&said.body).contains(KEY_PROBLEM);
            if is_key && self.are_pinned {
                let reason =
                    Wording("the server has other keys by now: fetch them from it again, for {ohttp-keys}");
                return Err(unusable(&reason.to_string()));
            }
            if is_key && !is_second {
                *lock(&self.keys) = None;
                is_second = true;
                continue;
            }
            if !said.is(RESPONSE_TYPE) {
                return Err(refused(&said));
            }
            let opened = opener
                .open(&said.body)
                .ok_or_else(|| unusable("the response does not open: it was not sealed for this request"))?;
            let (head, body) = decode(&opened)?;
            match date_in(&head, &body) {
                date @ Some(_) if servers_date.is_none() => servers_date = date,
                _ => return Ok((head, body)),
            }
        }
    }

    /// Returns the keys with which requests are sealed.
    async fn keys(&self, link: &Link) -> Result<Vec<u8>, TransportFailure> {
        if let Some(keys) = &*lock(&self.keys) {
            return Ok(keys.clone());
        }
        let request = Request {
            method: Method::Get,
            path: String::new(),
            headers: vec![("accept", KEYS_TYPE.into())],
            body: Vec::new(),
            max_response_bytes: MAX_KEYS_BYTES as u64,
            is_last: false,
            time_left: None,
        };
        let said = self.exchange(link, request, KEYS_TYPE).await?;
        if said.is_transient() {
            return Err(refused(&said));
        }
        if !said.is(KEYS_TYPE) {
            let reason = format!(
                "the relay has no keys of the server (status {}): {}",
                said.head.status,
                Wording("fetch them from the server, for {ohttp-keys}")
            );
            return Err(TransportFailure::Relay { reason });
        }
        *lock(&self.keys) = Some(said.body.clone());
        Ok(said.body)
    }

    /// Sends a request to the relay. Does not read a successful response of another type than `wanted`, such as a web page.
    async fn exchange(
        &self,
        link: &Link,
        request: Request,
        wanted: &str,
    ) -> Result<RelayResponse, TransportFailure> {
        let most = request.max_response_bytes;
        let head = link.send_as_is(request).await.map_err(|failure| self.of_relay(failure))?;
        let date = head.header("date").and_then(parse_date);
        if let Some(date) = date {
            *lock(&self.clock) = Some(RelayTime { date, since: link.host().now() });
        }
        let mut said = RelayResponse { head, body: Vec::new() };
        if said.head.status == 200 && !said.is(wanted) {
            return Ok(said);
        }
        while let Some(part) = link.body_as_is().await.map_err(|failure| self.of_relay(failure))? {
            if (said.body.len() + part.len()) as u64 > most {
                let reason = format!("the relay's response has more than {most} bytes");
                return Err(TransportFailure::Odd { reason });
            }
            said.body.extend_from_slice(&part);
        }
        Ok(said)
    }

    /// Adds the relay's name to a failure to reach it, because the session's messages name only the server.
    fn of_relay(&self, failure: TransportFailure) -> TransportFailure {
        let named = |reason| format!("the relay {}: {reason}", self.shown);
        match failure {
            TransportFailure::Unreachable { reason, transient } => {
                TransportFailure::Unreachable { reason: named(reason), transient }
            }
            TransportFailure::Timeout { phase } => TransportFailure::Timeout { phase: named(phase) },
            TransportFailure::Tls { reason } => TransportFailure::Tls { reason: named(reason) },
            other => other,
        }
    }

    /// Returns the time by the relay's clock. If that is unknown, returns the time by this machine's clock, rounded down.
    fn date(&self, host: &dyn Host) -> Duration {
        let relays = lock(&self.clock)
            .and_then(|RelayTime { date, since }| date.checked_add(host.now().saturating_sub(since)));
        relays
            .unwrap_or_else(|| Duration::from_secs(host.date().as_secs() / DATE_SECONDS * DATE_SECONDS))
            .min(LAST_DATE)
    }

    fn encode(&self, request: &Request, date: Duration) -> Result<Zeroizing<Vec<u8>>, TransportFailure> {
        let text = |text: &str| text.as_bytes().to_vec();
        let mut message = Message::request(
            text(request.method.name()),
            text(self.scheme),
            text(&self.authority),
            text(&request.path),
        );
        for (name, value) in &request.headers {
            message.put_header(*name, value.as_str());
        }
        message.put_header("date", httpdate::fmt_http_date(UNIX_EPOCH + date));
        if let Some(authorization) = &self.authorization {
            message.put_header("authorization", authorization.as_str());
        }
        message.write_content(&request.body);
        let mut bytes = Zeroizing::new(Vec::with_capacity(padded(request.body.len() + PADDING)));
        message
            .write_bhttp(Mode::KnownLength, &mut *bytes)
            .map_err(|error| unusable(&format!("the request cannot be sealed: {error}")))?;
        let length = padded(bytes.len());
        bytes.resize(length, 0);
        Ok(bytes)
    }
}

/// A response through a relay whose body is being read: a file in pieces, or any other response whole.
pub(super) struct Relayed {
    request: Request,
    pieces: Option<Pieces>,
    /// The part that arrived last and was not read yet.
    part: Option<Vec<u8>>,
}

impl Relayed {
    /// Sends a request. Returns the head of its response.
    pub(super) async fn begin(
        relay: &Relay,
        link: &Link,
        mut request: Request,
    ) -> Result<(Head, Self), TransportFailure> {
        let mut pieces = Pieces::of(&request);
        if let Some(pieces) = &pieces {
            pieces.ask(&mut request);
        }
        let (head, body) = relay.send(link, &request).await?;
        let whole = pieces.as_mut().and_then(|pieces| pieces.received(&head, body.len()));
        // A response that is not a piece, such as an error, is whole.
        let pieces = pieces.filter(|_| whole.is_some());
        Ok((whole.unwrap_or(head), Self { request, pieces, part: Some(body) }))
    }

    /// Returns the next part of the body, or `None` after its end.
    pub(super) async fn next(
        &mut self,
        relay: &Relay,
        link: &Link,
    ) -> Result<Option<Vec<u8>>, TransportFailure> {
        if let Some(part) = self.part.take() {
            return Ok(Some(part));
        }
        let Some(pieces) = self.pieces.as_mut().filter(|pieces| !pieces.is_done()) else { return Ok(None) };
        pieces.ask(&mut self.request);
        let (head, body) = relay.send(link, &self.request).await?;
        if pieces.received(&head, body.len()).is_none() {
            return Err(unusable("the server sent a part of a file, and no other"));
        }
        Ok(Some(body))
    }
}

/// A problem document of a relay (RFC 9457).
#[derive(Deserialize)]
struct RelayProblem {
    detail: String,
}

/// Returns the failure for a relay that did not pass a request on.
fn refused(said: &RelayResponse) -> TransportFailure {
    let status = said.head.status;
    let problem = serde_json::from_slice::<RelayProblem>(&said.body).ok();
    let detail = problem.map_or_else(|| unexplained(status).to_owned(), |problem| shown(&problem.detail));
    let reason = format!("the relay did not pass the request on: {detail} (status {status})");
    if said.is_transient() {
        TransportFailure::Unreachable { reason, transient: true }
    } else {
        TransportFailure::Relay { reason }
    }
}

/// Returns a likely reason for an HTTP status of a relay, or of a proxy in front of it, that came without one.
fn unexplained(status: u16) -> &'static str {
    match status {
        300..=399 => "it has moved, so use the URL to which it has",
        403 => "it, or a proxy in front of it, does not let this client in",
        413 => {
            "it, or a proxy in front of it, takes no request of this length, so ask its operator to allow longer ones"
        }
        429 => "this client asks too often",
        502..=504 => "it, or a proxy in front of it, does not reach what is behind it",
        _ => "it says no reason",
    }
}

/// Returns the date that the server asks for, if it refused a request because of its date.
fn date_in(head: &Head, body: &[u8]) -> Option<Duration> {
    let is_date = head.status == 400 && String::from_utf8_lossy(body).contains(DATE_PROBLEM);
    head.header("date").filter(|_| is_date).and_then(parse_date)
}

/// Parses a date of HTTP. Returns the time since 1970.
fn parse_date(text: &str) -> Option<Duration> {
    httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()
}

fn decode(message: &[u8]) -> Result<(Head, Vec<u8>), TransportFailure> {
    let refused = |why: &str| unusable(&format!("the sealed response: {why}"));
    check_message(message).map_err(refused)?;
    let message =
        Message::read_bhttp(&mut Cursor::new(message)).map_err(|error| refused(&error.to_string()))?;
    let status = message.control().status().ok_or_else(|| refused("it is a request"))?.code();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = message.header().fields().iter();
    let headers = headers.map(|field| (text(field.name()), text(field.value()))).collect();
    let body = message.content().to_vec();
    Ok((Head { status, headers, body_bytes: Some(body.len() as u64) }, body))
}

fn unusable(reason: &str) -> TransportFailure {
    TransportFailure::Relay { reason: reason.into() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
