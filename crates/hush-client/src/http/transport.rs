//! Requests, retries, bounded bodies.

use std::{
    io::{self, Read},
    net::IpAddr,
    thread,
    time::{Duration, Instant},
};

use hush_protocol::{
    descriptor::{Descriptor, MAX_DESCRIPTOR_BYTES},
    wire,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use ureq::{
    Agent, Body,
    http::{
        HeaderMap, Response, StatusCode, Uri,
        header::{CONTENT_TYPE, IF_RANGE, LOCATION, RANGE, RETRY_AFTER},
    },
    tls::{RootCerts, TlsConfig},
};

use super::{Event, HttpError, HttpOptions, Observer, RetryPolicy};

/// Longest problem document, its descriptor not counted.
const MAX_PROBLEM_BYTES: usize = 64 << 10;
/// Characters of a server's own words that are shown.
const MAX_DETAIL_CHARS: usize = 300;
/// Longest wait that a header can ask for.
const MAX_RETRY_AFTER: u64 = 24 * 3600;

/// A connection to one server.
#[derive(Clone)]
pub(super) struct Transport {
    agent: Agent,
    /// Without a slash at the end.
    url: String,
    retry: RetryPolicy,
    observer: Observer,
}

impl Transport {
    pub(super) fn new(url: &str, options: &HttpOptions) -> Result<Self, HttpError> {
        let uri = check_url(url)?;
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let mut config = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("hushdb/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(options.connect_timeout))
            .timeout_per_read(Some(options.silence_timeout))
            .timeout_per_write(Some(options.silence_timeout));
        if is_loopback(&uri) {
            // A proxy of the environment is another machine: it cannot reach this one's loopback.
            config = config.proxy(None);
        }
        let url = url.trim_end_matches('/').to_owned();
        let agent = config.build().new_agent();
        Ok(Self { agent, url, retry: options.retry, observer: options.observer.clone() })
    }

    /// Reports an event.
    pub(super) fn report(&self, event: &Event<'_>) {
        (self.observer)(event);
    }

    /// Makes `attempt` until it succeeds, fails for good, has been made as often as the policy says, or the server
    /// asks for a wait that the policy does not allow.
    pub(super) fn retrying<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, HttpError>,
    ) -> Result<T, HttpError> {
        let RetryPolicy { attempts, first_wait, max_wait, max_warming } = self.retry;
        let (mut backoff, mut failed, mut warming_since) = (first_wait, 0, None);
        loop {
            let error = match attempt() {
                Err(error) if error.is_transient() => error,
                outcome => return outcome,
            };
            let wait = error.retry_after().max(backoff.min(max_wait));
            let enough = if error.is_warming() {
                warming_since.get_or_insert_with(Instant::now).elapsed() + wait > max_warming
            } else {
                failed += 1;
                failed >= attempts
            };
            if enough || wait > max_wait {
                return Err(error);
            }
            self.report(&Event::Retry { error: &error, wait });
            thread::sleep(wait);
            backoff = backoff.saturating_mul(2);
        }
    }

    /// A document of at most `limit` bytes.
    pub(super) fn get(&self, path: &str, what: &'static str, limit: usize) -> Result<Vec<u8>, HttpError> {
        let response = self.checked(self.agent.get(self.at(path)).call())?;
        self.body(response, what, limit)
    }

    /// A file from byte `from` on. The response may hold the whole file all the same.
    pub(super) fn get_file(&self, path: &str, etag: &str, from: u64) -> Result<Response<Body>, HttpError> {
        let mut request = self.agent.get(self.at(path));
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-")).header(IF_RANGE, etag);
        }
        self.checked(request.call())
    }

    /// Posts a request of the wire format; the response has at most `limit` bytes.
    pub(super) fn post(&self, path: &str, body: &[u8], limit: usize) -> Result<Vec<u8>, HttpError> {
        let request = self.agent.post(self.at(path)).header(CONTENT_TYPE, wire::CONTENT_TYPE);
        let response = self.checked(request.send(body))?;
        self.body(response, "an answer", limit)
    }

    /// Puts a body of the wire format; nothing is read of the response but its status.
    pub(super) fn put(&self, path: &str, body: &[u8]) -> Result<(), HttpError> {
        let request = self.agent.put(self.at(path)).header(CONTENT_TYPE, wire::CONTENT_TYPE);
        self.checked(request.send(body)).map(drop)
    }

    /// The server's base URL, the same however its host is spelled.
    pub(super) fn origin(&self) -> String {
        let Ok(uri) = self.url.parse::<Uri>() else { return self.url.clone() };
        let lower = |part: Option<&str>| part.unwrap_or("").to_ascii_lowercase();
        let (scheme, host) = (lower(uri.scheme_str()), lower(uri.host()));
        let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        format!("{scheme}://{host}:{port}{}", uri.path().trim_end_matches('/'))
    }

    /// What a failure while reading a body means.
    pub(super) fn read_error(&self, error: io::Error) -> HttpError {
        self.failure(ureq::Error::from(error))
    }

    /// Something that no server of this API answers.
    pub(super) fn odd(&self, reason: impl Into<String>) -> HttpError {
        HttpError::NotHushDb { url: self.url.clone(), reason: reason.into() }
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// The response if it is a success.
    fn checked(&self, outcome: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, HttpError> {
        let response = outcome.map_err(|error| self.failure(error))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(response)) }
    }

    fn body(&self, response: Response<Body>, what: &'static str, limit: usize) -> Result<Vec<u8>, HttpError> {
        let limit = limit as u64;
        let too_long = || HttpError::TooLong { what, limit };
        let body = response.into_body();
        if body.content_length().is_some_and(|length| length > limit) {
            return Err(too_long());
        }
        let mut bytes = Vec::new();
        let mut reader = body.into_reader().take(limit + 1);
        reader.read_to_end(&mut bytes).map_err(|error| self.read_error(error))?;
        if bytes.len() as u64 > limit { Err(too_long()) } else { Ok(bytes) }
    }

    /// What a request that brought no response means.
    fn failure(&self, error: ureq::Error) -> HttpError {
        let url = self.url.clone();
        let unreachable = |reason, transient| HttpError::Unreachable { url: url.clone(), reason, transient };
        match error {
            ureq::Error::Timeout(phase) => HttpError::Timeout { url, phase: phase.to_string() },
            ureq::Error::Rustls(error) => HttpError::Tls { url, reason: error.to_string() },
            ureq::Error::Tls(reason) => HttpError::Tls { url, reason: reason.into() },
            // How a failed handshake, or a record that does not decrypt, comes through a stream.
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                HttpError::Tls { url, reason: error.to_string() }
            }
            ureq::Error::Io(error) => unreachable(error.to_string(), true),
            ureq::Error::HostNotFound => unreachable("no such host".into(), false),
            error @ (ureq::Error::ConnectionFailed | ureq::Error::ConnectProxyFailed(_)) => {
                unreachable(error.to_string(), false)
            }
            error => self.odd(error.to_string()),
        }
    }

    /// What a response other than a success means.
    fn refusal(&self, response: Response<Body>) -> HttpError {
        let status = response.status();
        if let Some(location) = response.headers().get(LOCATION).filter(|_| status.is_redirection()) {
            return HttpError::Moved { location: shown(&String::from_utf8_lossy(location.as_bytes())) };
        }
        let retry_after = retry_after(response.headers());
        let limit = match status {
            StatusCode::GONE => MAX_DESCRIPTOR_BYTES + MAX_PROBLEM_BYTES,
            _ => MAX_PROBLEM_BYTES,
        };
        let problem = match self.body(response, "an error message", limit) {
            Ok(body) => serde_json::from_slice::<Problem>(&body).ok(),
            Err(error @ HttpError::TooLong { .. }) => return error,
            // The status counts even if the document is lost.
            Err(_) => None,
        };
        match (status, problem) {
            (StatusCode::GONE, Some(Problem { descriptor: Some(text), .. })) => {
                match Descriptor::from_json(text.get().as_bytes()) {
                    Ok(descriptor) => HttpError::EpochGone { descriptor: Box::new(descriptor) },
                    Err(error) => error.into(),
                }
            }
            (StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS, problem)
                // Waiting does not help there.
                if problem.as_ref().is_none_or(|problem| problem.code != "device_lost") =>
            {
                let warming = problem.as_ref().is_some_and(|problem| problem.code == "warming");
                let detail = problem.map_or_else(|| status.to_string(), |problem| shown(&problem.detail));
                HttpError::Busy { detail, warming, retry_after }
            }
            (_, Some(problem)) => HttpError::Refused {
                status: status.as_u16(),
                code: shown(&problem.code),
                detail: shown(&problem.detail),
            },
            (_, None) => self.odd(format!("status {}", status.as_u16())),
        }
    }
}

/// A problem document (RFC 9457).
#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: String,
    descriptor: Option<Box<RawValue>>,
}

fn check_url(url: &str) -> Result<Uri, HttpError> {
    let invalid = |reason| HttpError::Url { url: url.to_owned(), reason };
    let uri: Uri = url.parse().map_err(|_| invalid("not a URL"))?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        Some(_) => return Err(invalid("the scheme is not http or https")),
        None => return Err(invalid("it does not begin with http:// or https://")),
    }
    if uri.query().is_some() || url.contains('#') {
        return Err(invalid("it has a query or a fragment"));
    }
    Ok(uri)
}

fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or("");
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// `Retry-After` in seconds; its other form, a date, is left to the back-off.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(MAX_RETRY_AFTER)))
}

/// A server's own words, fit for one line of a terminal.
fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(MAX_DETAIL_CHARS).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_has_one_origin() {
        let origin = |url: &str| Transport::new(url, &HttpOptions::default()).unwrap().origin();
        assert_eq!(origin("http://LocalHost"), "http://localhost:80");
        assert_eq!(origin("HTTP://localhost:80/"), "http://localhost:80");
        assert_eq!(origin("https://hush.example/Db/"), "https://hush.example:443/Db");
        assert_eq!(origin("http://[::1]:7700"), "http://[::1]:7700");
        assert_ne!(origin("http://localhost:7700"), origin("http://localhost:7701"));
    }
}
