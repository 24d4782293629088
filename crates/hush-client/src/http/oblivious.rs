//! Requests of Oblivious HTTP (RFC 9458) that are not look-ups: to a relay or a gateway, sent by a relay.

use hush_protocol::ohttp::{KEYS_TYPE, MAX_KEYS_BYTES, REQUEST_TYPE, RESPONSE_TYPE};
use ureq::{Agent, Body, http::Response};

use super::{
    HttpError, HttpOptions,
    call::in_time,
    transport::{CLOSE, agent_for, failure},
};
use crate::session::{ServerUrl, TransportFailure};

/// The receiver of sealed requests: a relay, or a gateway itself.
#[derive(Clone)]
pub struct SealedPeer {
    agent: Agent,
    url: ServerUrl,
}

/// The response of a peer.
pub struct Said {
    /// The HTTP status.
    pub status: u16,
    /// The content type, if the response has one.
    pub content_type: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl SealedPeer {
    /// Creates a relay, or a gateway at its well-known path. It does not connect yet.
    ///
    /// # Errors
    /// [`HttpError`] if the URL or the certificates of the options are invalid.
    pub fn new(url: &str, options: &HttpOptions) -> Result<Self, HttpError> {
        let url = ServerUrl::parse(url)?;
        Ok(Self { agent: agent_for(&url, options)?, url })
    }

    /// Returns the peer's response with its key configurations, whatever its status. Fails with [`TransportFailure`] if the request
    /// or the response fails on the way, or the body is too long.
    pub fn keys(&self) -> Result<Said, TransportFailure> {
        let failure = |error| failure(&self.url, error);
        let request = in_time(self.agent.get(self.url.as_str())).header("Accept", KEYS_TYPE);
        said(request.call().map_err(failure)?, KEYS_TYPE, MAX_KEYS_BYTES as u64).map_err(failure)
    }

    /// Returns the response to a sealed request, of at most `most` bytes. If `closes`, the connection is closed after it.
    pub fn post(&self, sealed: &[u8], most: u64, closes: bool) -> Result<Said, TransportFailure> {
        let mut request = in_time(self.agent.post(self.url.as_str())).header("Content-Type", REQUEST_TYPE);
        if closes {
            request = request.header(CLOSE.0, CLOSE.1);
        }
        let failure = |error| failure(&self.url, error);
        said(request.send(sealed).map_err(failure)?, RESPONSE_TYPE, most).map_err(failure)
    }
}

/// Reads a response. A successful response of another type than `wanted`, such as the page of a web server, does not come
/// from a relay, and its body is not read.
fn said(mut response: Response<Body>, wanted: &str, most: u64) -> Result<Said, ureq::Error> {
    let status = response.status().as_u16();
    let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
    let content_type = content_type.map(str::to_owned);
    if status == 200 && content_type.as_deref() != Some(wanted) {
        return Ok(Said { status, content_type, body: Vec::new() });
    }
    let body = response.body_mut().with_config().limit(most).read_to_vec()?;
    Ok(Said { status, content_type, body })
}
