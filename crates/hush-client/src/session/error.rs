//! The errors of a session. Every message names a remedy.

use std::{
    error::Error,
    fmt::{self, Display, Formatter},
    time::Duration,
};

use hush_protocol::{
    Code, ProtocolError, Remedy,
    descriptor::Descriptor,
    wire::WireError,
    wording::{Slot, Wording},
};
use thiserror::Error;

use crate::ClientError;

/// The reason why a [`Host`](super::Host) could not use its cache. The message names a remedy.
pub type CacheError = Box<dyn Error + Send + Sync>;

/// The reason why a request brought no response, or only a part of one. Drivers report it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum TransportFailure {
    /// The connection failed or was lost.
    #[error("{reason}")]
    Unreachable { reason: String, transient: bool },
    #[error("timeout: {phase}")]
    Timeout { phase: String },
    /// TLS could not be established.
    #[error("{reason}")]
    Tls { reason: String },
    /// The proxy that the environment names does not connect.
    #[error("{reason}")]
    Proxy { reason: String },
    /// The relay, or a response through it, cannot be used.
    #[error("{reason}")]
    Relay { reason: String },
    /// The response is not HTTP.
    #[error("{reason}")]
    Odd { reason: String },
}

/// An error that the server returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerRefusal {
    /// The code of the error.
    pub code: Code,
    /// The server's code as text. A newer server may have codes that [`Code`] lacks.
    pub word: String,
    /// The HTTP status.
    pub status: u16,
    /// The message for people.
    pub detail: String,
    /// The time for which the server asks to wait.
    pub retry_after: Option<Duration>,
}

/// The reason why a server could not be asked, or its answer could not be used.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum SessionError {
    #[error("'{url}' is not the URL of a server ({reason}): give one such as http://localhost:7700")]
    Url { url: String, reason: &'static str },
    #[error("cannot reach {url} ({reason}): is the server running, and is the URL right?")]
    Unreachable { url: String, reason: String, transient: bool },
    #[error("cannot reach {url} through {reason}")]
    Proxy { url: String, reason: String },
    #[error("{url} did not answer in time ({phase}): try again later")]
    Timeout { url: String, phase: String },
    #[error(
        "no secure connection to {url} ({reason}): {}",
        Wording(
            "check that its certificate is valid for this name and trusted by this system, or by {ca-cert}"
        )
    )]
    Tls { url: String, reason: String },
    /// A certificate or a key in the client's options is invalid.
    #[error("{reason}")]
    Certificates { reason: String },
    /// The token would be sent to another machine without TLS.
    #[error("a token over http could be read by anyone on the way: use https")]
    TokenInTheOpen,
    #[error(
        "a token goes through a relay only if it is sealed for keys that are surely the server's: {}",
        Wording(
            "fetch them from the server, with curl -o FILE https://SERVER/.well-known/ohttp-gateway, and name the file with \
                 {ohttp-keys}"
        )
    )]
    TokenToRelay,
    /// The relay, or a response through it, cannot be used.
    #[error("{reason}")]
    Relay { reason: String },
    #[error("the server says that it has moved to {location}: if that is right, use that URL")]
    Moved { location: String },
    /// An intermediary, such as a reverse proxy, answered in place of the server.
    #[error("{}", intermediary_text(url, name.as_deref(), *status, *sent))]
    Intermediary { url: String, name: Option<String>, status: u16, sent: usize },
    #[error("{url} does not answer like a hushdb server ({reason}): check the URL, https or http too")]
    NotHushDb { url: String, reason: String },
    #[error("the server has no tables")]
    NoTables,
    #[error("the server has several tables, choose one with {}: {}", Slot::Option("table"), tables.join(", "))]
    ChooseTable { tables: Vec<String> },
    #[error("the server has no table '{name}': it has {}", list(tables))]
    UnknownTable { name: String, tables: Vec<String> },
    #[error("{0}")]
    Refused(ServerRefusal),
    #[error(
        "the server did not keep this client's evaluation keys: ask its operator whether its store of keys is too \
         small"
    )]
    KeysNotKept,
    #[error("the table changed while it was looked up: try again")]
    EpochGone { descriptor: Box<Descriptor> },
    #[error("the table changes faster than its new state can be fetched: try again")]
    ChangesTooFast,
    #[error("the server's answer cannot be used ({0}): is it the same version as this client?")]
    Wire(#[from] WireError),
    #[error("the server's answer cannot be used ({what} of more than {limit} bytes): do not use this server")]
    TooLong { what: &'static str, limit: u64 },
    #[error(
        "the table's hint is {bytes} bytes, more than the {limit} allowed: if you trust the server and have the \
         space, allow it with {}",
        Slot::Setting("max-hint", bytes)
    )]
    HintTooLong { bytes: u64, limit: u64 },
    #[error(
        "the download broke off after {present} of {bytes} bytes ({reason}): run it again to go on from there"
    )]
    Interrupted { present: u64, bytes: u64, reason: String },
    #[error("the server sent a hint that does not match its hash or length: try again, or ask its operator")]
    HintMismatch,
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(CacheError),
    #[error("the call was given up")]
    Cancelled,
    /// The client itself refused the table or a look-up.
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl From<ProtocolError> for SessionError {
    fn from(error: ProtocolError) -> Self {
        Self::Client(error.into())
    }
}

impl SessionError {
    /// Returns the code of the error.
    pub fn code(&self) -> Code {
        match self {
            Self::Url { .. } => Code::Url,
            Self::Unreachable { .. } | Self::Proxy { .. } => Code::Unreachable,
            Self::Timeout { .. } => Code::Timeout,
            Self::Tls { .. } => Code::Tls,
            Self::Certificates { .. } => Code::Options,
            Self::TokenInTheOpen | Self::TokenToRelay => Code::TokenInTheOpen,
            Self::Relay { .. } => Code::Relay,
            Self::Moved { .. } => Code::Moved,
            Self::Intermediary { .. } => Code::Proxy,
            Self::NotHushDb { .. } => Code::NotHushdb,
            Self::NoTables => Code::NoTables,
            Self::ChooseTable { .. } => Code::ChooseTable,
            Self::UnknownTable { .. } => Code::UnknownTable,
            Self::Refused(refusal) => refusal.code,
            Self::KeysNotKept => Code::KeysNotKept,
            Self::EpochGone { .. } | Self::ChangesTooFast => Code::EpochGone,
            Self::Wire(_) | Self::TooLong { .. } => Code::BadAnswer,
            Self::HintTooLong { .. } => Code::HintTooLong,
            Self::Interrupted { .. } => Code::Interrupted,
            Self::HintMismatch => Code::HintMismatch,
            Self::Cache(_) => Code::Cache,
            Self::Cancelled => Code::Aborted,
            Self::Client(error) => error.code(),
        }
    }

    /// Returns whether the same request may soon succeed.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { transient, .. } => *transient,
            Self::Interrupted { .. } => true,
            Self::Intermediary { status, .. } => matches!(status, 502 | 504),
            _ => self.code().remedy() == Remedy::Wait,
        }
    }

    /// Returns the time for which the server asks to wait, or zero.
    pub(super) fn retry_after(&self) -> Duration {
        match self {
            Self::Refused(refusal) => refusal.retry_after.unwrap_or_default(),
            _ => Duration::ZERO,
        }
    }
}

impl Display for ServerRefusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { code, word, status, detail, retry_after } = self;
        match code.remedy() {
            Remedy::Wait => {
                write!(f, "the server cannot answer now ({detail}): try again {}", when(*retry_after))
            }
            Remedy::Option("token") => write!(f, "{detail}: give one with {}", Slot::Option("token")),
            _ => write!(f, "the server refused the request: {detail} ({word}, status {status})"),
        }
    }
}

/// Returns the text for a request that an intermediary refused, with a remedy for its operator.
fn intermediary_text(url: &str, name: Option<&str>, status: u16, sent: usize) -> String {
    let name = name.map_or(String::new(), |name| format!(" ({name})"));
    let said = match status {
        413 if sent == 0 => {
            "says that a request without a body is too long: ask its operator to let requests to /v1/ pass"
                .into()
        }
        413 => format!(
            "takes no request of {sent} bytes: its operator must allow requests of at least that length (in nginx by \
             client_max_body_size)"
        ),
        502 | 504 => {
            "does not reach the server: try again later, or ask its operator whether the server runs".into()
        }
        407 => "asks for a sign-in of its own: ask its operator to let requests to /v1/ pass".into(),
        _ => "refuses the request: ask its operator to let requests to /v1/ pass".into(),
    };
    format!("a proxy in front of {url}{name} {said} (status {status})")
}

fn when(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(|| "later".into(), |wait| format!("in {} s", wait.as_secs()))
}

fn list(tables: &[String]) -> String {
    if tables.is_empty() { "none".into() } else { tables.join(", ") }
}
