//! The interpretation of error responses.

use std::time::Duration;

use hush_protocol::{
    Code, Remedy,
    descriptor::{Descriptor, MAX_DESCRIPTOR_BYTES},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::session::{Head, ServerRefusal, ServerUrl, SessionError};

/// The longest problem document, without its descriptor, in bytes.
const MAX_PROBLEM_BYTES: usize = 64 << 10;
/// The most bytes of any error response that are read.
pub(in crate::session) const MAX_REFUSAL_BYTES: usize = MAX_DESCRIPTOR_BYTES + MAX_PROBLEM_BYTES;
/// The number of characters of a server's text that are shown.
const MAX_DETAIL_CHARS: usize = 300;
/// The longest wait that a header can ask for, in seconds.
const MAX_RETRY_AFTER: u64 = 24 * 3600;

const GONE: u16 = 410;
const SERVICE_UNAVAILABLE: u16 = 503;

/// A problem document (RFC 9457).
#[derive(Deserialize)]
struct ProblemBody {
    code: String,
    detail: String,
    descriptor: Option<Box<RawValue>>,
}

/// Returns the error of a response that a proxy sent, or that redirects to another URL. The request had the path `path` and
/// a body of `sent` bytes. Returns `None` for other responses.
#[cfg(feature = "http")]
pub(crate) fn on_the_way(url: &ServerUrl, path: &str, sent: usize, head: &Head) -> Option<SessionError> {
    moved(url, path, head).or_else(|| intermediary(url, sent, head))
}

/// Returns the error for a redirect of the server at `url`. `path` is the path of the request. If the new location has the
/// same path, the error names the new base URL, which a client can be given.
pub(in crate::session) fn moved(url: &ServerUrl, path: &str, head: &Head) -> Option<SessionError> {
    let location = head.header("location").filter(|_| (300..400).contains(&head.status))?;
    let is_path = location.starts_with('/') && !location.starts_with("//");
    let location = if is_path { format!("{}{location}", url.root()) } else { location.to_owned() };
    let base = location.split(['?', '#']).next().and_then(|location| location.strip_suffix(path));
    Some(SessionError::Moved { location: shown(base.unwrap_or(&location)) })
}

/// Returns the error for a response with a status that only proxies send. The request had a body of `sent` bytes.
fn intermediary(url: &ServerUrl, sent: usize, head: &Head) -> Option<SessionError> {
    let is_of_proxies = matches!(head.status, 401 | 403 | 407 | 413 | 451 | 502 | 504 | 520..=527);
    let name = head.header("server").filter(|name| !name.is_empty()).map(shown);
    let url = url.shown().to_owned();
    is_of_proxies.then_some(SessionError::Intermediary { url, name, status: head.status, sent })
}

/// Returns whether the head of a response announces a problem document (RFC 9457), as a server of this API sends.
pub(in crate::session) fn announces_problem(head: &Head) -> bool {
    head.header("content-type").is_some_and(|kind| kind.trim_start().starts_with("application/problem+json"))
}

/// Returns the most bytes of the body of a response with this status.
pub(in crate::session) fn refusal_limit(status: u16) -> usize {
    if status == GONE { MAX_REFUSAL_BYTES } else { MAX_PROBLEM_BYTES }
}

/// Returns the error of a response. `body` is its body, if that arrived. `odd` creates the error for a response that no
/// server of this API sends. `sent` is the length of the request's body.
pub(in crate::session) fn refusal(
    url: &ServerUrl,
    sent: usize,
    head: &Head,
    body: Option<&[u8]>,
    odd: impl FnOnce(String) -> SessionError,
) -> SessionError {
    let problem = body.and_then(|body| serde_json::from_slice::<ProblemBody>(body).ok());
    let status = head.status;
    let code = Code::of_refusal(status, problem.as_ref().map(|problem| problem.code.as_str()));
    let (word, detail) = match problem {
        Some(ProblemBody { descriptor: Some(text), .. }) if code == Code::EpochGone => {
            return match Descriptor::from_json(text.get().as_bytes()) {
                Ok(descriptor) => SessionError::EpochGone { descriptor: Box::new(descriptor) },
                Err(error) => error.into(),
            };
        }
        Some(problem) => (shown(&problem.code), shown(&problem.detail)),
        // Proxies also send such a status if a server is busy.
        None if code.remedy() == Remedy::Wait => (code.word().into(), unexplained(status)),
        None => return intermediary(url, sent, head).unwrap_or_else(|| odd(format!("status {status}"))),
    };
    SessionError::Refused(ServerRefusal { code, word, status, detail, retry_after: retry_after(head) })
}

fn unexplained(status: u16) -> String {
    let reason = if status == SERVICE_UNAVAILABLE { "Service Unavailable" } else { "Too Many Requests" };
    format!("{status} {reason}")
}

/// Returns `Retry-After` in seconds. Ignores its other form, a date, and leaves the wait to the back-off.
fn retry_after(head: &Head) -> Option<Duration> {
    let seconds: u64 = head.header("retry-after")?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(MAX_RETRY_AFTER)))
}

/// Returns a server's text, shortened to one line for a terminal.
pub(in crate::session) fn shown(text: &str) -> String {
    text.chars().take(MAX_DETAIL_CHARS).map(|c: char| if c.is_control() { ' ' } else { c }).collect()
}
