//! Oblivious HTTP (RFC 9458): requests go sealed to a relay, which passes them on. The relay sees who asks, the server what for.

use std::{
    io::Cursor,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bhttp::{Message, Mode};
use hush_protocol::ohttp::{
    DATE_PROBLEM, KEY_PROBLEM, KEYS_TYPE, MAX_KEYS_BYTES, PADDING, REQUEST_TYPE, RESPONSE_TYPE,
    check_message, padded,
};
use ohttp::{
    ClientRequest, KeyConfig, SymmetricSuite,
    hpke::{Aead, Kdf},
};
use ureq::{Agent, Body, http::Response};
use zeroize::Zeroizing;

use super::{
    HttpError, HttpOptions, RelayOptions,
    call::in_time,
    transport::{CLOSE, agent_for, failure},
};
use crate::session::{Head, Request, ServerUrl, TransportFailure};

/// Bytes of a sealed response beside its body: fields, padding, and what an error says.
const RESPONSE_SLACK: u64 = 1 << 20;

/// The `Date` of a request is a multiple of so many seconds until the relay has told the time: a finer one would tell the server
/// how wrong the client's clock is.
const DATE_SECONDS: u64 = 60;
/// The last date that HTTP can write, in seconds since 1970: the end of the year 9999.
const LAST_DATE: Duration = Duration::from_secs(253_402_300_799);

/// Where sealed requests go, to a relay or straight to a gateway.
#[derive(Clone)]
pub struct SealedPeer {
    agent: Agent,
    url: String,
}

/// What a peer said.
pub struct Said {
    /// The HTTP status.
    pub status: u16,
    /// The content type, if there was one.
    pub content_type: Option<String>,
    /// The body.
    pub body: Vec<u8>,
    /// The time by the peer's clock, if it said so.
    date: Option<SystemTime>,
}

impl SealedPeer {
    /// A relay, or a gateway at its well-known path; no connection is made yet.
    ///
    /// # Errors
    /// [`HttpError`] if the URL or the certificates of the options are of no use.
    pub fn new(url: &str, options: &HttpOptions) -> Result<Self, HttpError> {
        let url = ServerUrl::parse(url)?;
        Ok(Self { agent: agent_for(&url, options)?, url: url.as_str().to_owned() })
    }

    /// The key configurations that the peer has.
    ///
    /// # Errors
    /// [`TransportFailure`].
    pub fn keys(&self) -> Result<Said, TransportFailure> {
        let response =
            in_time(self.agent.get(&self.url)).header("Accept", KEYS_TYPE).call().map_err(failure)?;
        said(response, KEYS_TYPE, MAX_KEYS_BYTES as u64)
    }

    /// The response to a sealed request, of at most so many bytes. The connection ends with it if it `closes`.
    ///
    /// # Errors
    /// [`TransportFailure`].
    pub fn post(&self, sealed: &[u8], most: u64, closes: bool) -> Result<Said, TransportFailure> {
        let mut request = in_time(self.agent.post(&self.url)).header("Content-Type", REQUEST_TYPE);
        if closes {
            request = request.header(CLOSE.0, CLOSE.1);
        }
        said(request.send(sealed).map_err(failure)?, RESPONSE_TYPE, most)
    }
}

/// What a response says. If all is well, but it is of another type than `wanted`, as the page of a web server, its body is none of
/// a relay's and is not read.
fn said(mut response: Response<Body>, wanted: &str, most: u64) -> Result<Said, TransportFailure> {
    let status = response.status().as_u16();
    let field = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let content_type = field("content-type").map(str::to_owned);
    let date = field("date").and_then(|date| httpdate::parse_http_date(date).ok());
    if status == 200 && content_type.as_deref() != Some(wanted) {
        return Ok(Said { status, content_type, body: Vec::new(), date });
    }
    let body = response.body_mut().with_config().limit(most).read_to_vec().map_err(failure)?;
    Ok(Said { status, content_type, body, date })
}

/// A server behind a relay.
#[derive(Clone)]
pub(super) struct Relayed {
    relay: SealedPeer,
    /// The server, as sealed requests name it.
    scheme: &'static str,
    authority: String,
    /// What requests are sealed for; of the relay, if nobody has fetched them from the server.
    keys: Arc<Mutex<Option<Vec<u8>>>>,
    are_pinned: bool,
    /// The time that the relay said last, and when that was: all clients of a relay have its clock.
    clock: Arc<Mutex<Option<(SystemTime, Instant)>>>,
}

impl Relayed {
    /// The server at `url` behind a relay.
    ///
    /// # Errors
    /// [`HttpError`] if the options are of no use.
    pub(super) fn new(
        url: &ServerUrl,
        relay: &RelayOptions,
        options: &HttpOptions,
    ) -> Result<Self, HttpError> {
        let are_pinned = relay.keys.is_some();
        if options.token.is_some() && !are_pinned {
            return Err(HttpError::TokenToRelay);
        }
        if let Some(keys) = &relay.keys {
            check_keys(keys).map_err(|reason| HttpError::Relay { reason })?;
        }
        Ok(Self {
            relay: SealedPeer::new(&relay.url, options)?,
            scheme: if url.is_https() { "https" } else { "http" },
            authority: url.authority().to_owned(),
            keys: Arc::new(Mutex::new(relay.keys.clone())),
            are_pinned,
            clock: Arc::default(),
        })
    }

    /// Makes a request through the relay, whose connection ends with the response if it `closes`. A key that the server has no more
    /// is fetched anew, once. Where the server takes another date, the request has that one, once: later requests do not, since a
    /// date that only one client was told would link them.
    pub(super) fn send(
        &self,
        request: &Request,
        authorization: Option<&Zeroizing<String>>,
        closes: bool,
    ) -> Result<(Head, Vec<u8>), TransportFailure> {
        let most = request.max_response_bytes.saturating_add(RESPONSE_SLACK);
        let mut is_second = false;
        let mut servers_date = None;
        loop {
            let keys = self.keys()?;
            let message = self.encode(request, authorization, servers_date.unwrap_or_else(|| self.date()))?;
            let (sealed, opens) = seal(&keys, &message)?;
            let said = self.relay.post(&sealed, most, closes)?;
            self.note_date(&said);
            let is_key = said.status == 400 && String::from_utf8_lossy(&said.body).contains(KEY_PROBLEM);
            if is_key && self.are_pinned {
                return Err(unusable(
                    "the server has other keys by now: fetch them from it again, for --ohttp-keys",
                ));
            }
            if is_key && !is_second {
                *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = None;
                is_second = true;
                continue;
            }
            if said.status != 200 || said.content_type.as_deref() != Some(RESPONSE_TYPE) {
                return Err(self.refused(&said));
            }
            let opened = opens
                .decapsulate(&said.body)
                .map_err(|_| unusable("the response does not open: it was not sealed for this request"))?;
            let (head, body) = decode(&opened)?;
            match date_in(&head, &body) {
                date @ Some(_) if servers_date.is_none() => servers_date = date,
                _ => return Ok((head, body)),
            }
        }
    }

    /// What requests are sealed for.
    fn keys(&self) -> Result<Vec<u8>, TransportFailure> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = &*keys {
            return Ok(keys.clone());
        }
        let said = self.relay.keys()?;
        self.note_date(&said);
        let is_key = said.status == 200 && said.content_type.as_deref() == Some(KEYS_TYPE);
        if !is_key {
            let reason = format!(
                "the relay has no keys of the server (status {}): fetch them from the server, and name the file with \
                 --ohttp-keys",
                said.status
            );
            return Err(TransportFailure::Relay { reason });
        }
        Ok(keys.insert(said.body).clone())
    }

    fn note_date(&self, said: &Said) {
        let now = said.date.map(|date| (date, Instant::now()));
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        *clock = now.or(*clock);
    }

    /// The time by the relay's clock, or this machine's, rounded down.
    fn date(&self) -> SystemTime {
        let clock = *self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let relays = clock.and_then(|(date, since)| date.checked_add(since.elapsed()));
        let date = relays.unwrap_or_else(|| {
            let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            UNIX_EPOCH + Duration::from_secs(seconds / DATE_SECONDS * DATE_SECONDS)
        });
        date.min(UNIX_EPOCH + LAST_DATE)
    }

    /// What a relay says that passes nothing on.
    fn refused(&self, said: &Said) -> TransportFailure {
        let transient = matches!(said.status, 429 | 502..=504);
        let detail = serde_json::from_slice::<serde_json::Value>(&said.body).ok();
        let detail = detail.as_ref().and_then(|problem| problem["detail"].as_str()).unwrap_or("no reason");
        let reason = format!("the relay did not pass the request on: {detail} (status {})", said.status);
        if transient {
            TransportFailure::Unreachable { reason, transient }
        } else {
            TransportFailure::Relay { reason }
        }
    }

    fn encode(
        &self,
        request: &Request,
        authorization: Option<&Zeroizing<String>>,
        date: SystemTime,
    ) -> Result<Zeroizing<Vec<u8>>, TransportFailure> {
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
        message.put_header("date", httpdate::fmt_http_date(date));
        if let Some(authorization) = authorization {
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

/// The date that a server would take, if it refuses a request because of its date.
fn date_in(head: &Head, body: &[u8]) -> Option<SystemTime> {
    let is_date = head.status == 400 && String::from_utf8_lossy(body).contains(DATE_PROBLEM);
    httpdate::parse_http_date(head.header("date").filter(|_| is_date)?).ok()
}

/// Seals a message for the first of the keys that this program knows the ciphers of.
fn seal(keys: &[u8], message: &[u8]) -> Result<(Vec<u8>, ohttp::ClientResponse), TransportFailure> {
    let is_known = |config: &KeyConfig| {
        let ciphers = [Aead::Aes128Gcm, Aead::Aes256Gcm, Aead::ChaCha20Poly1305];
        ciphers.iter().any(|&aead| config.select(SymmetricSuite::new(Kdf::HkdfSha256, aead)).is_ok())
    };
    let no_keys = || unusable("the keys of the server are none that this program can use");
    let mut known = KeyConfig::decode_list(keys).map_err(|_| no_keys())?.into_iter().filter(is_known);
    let mut config = known.next().ok_or_else(no_keys)?;
    let sealed = ClientRequest::from_config(&mut config).and_then(|request| request.encapsulate(message));
    sealed.map_err(|_| no_keys())
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

/// Whether a file of keys can be used.
///
/// # Errors
/// What to do.
fn check_keys(keys: &[u8]) -> Result<(), String> {
    let sealed = seal(keys, b"").map(drop);
    sealed.map_err(|_| {
        "that is no key configuration of Oblivious HTTP: fetch it with curl -o FILE \
         https://SERVER/.well-known/ohttp-gateway"
            .into()
    })
}
