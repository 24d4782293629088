//! The options of a session, and its reports while it works.

use std::time::Duration;

use hush_protocol::ring_keys::LOOKUPS_PER_KEY;
use serde::{Serialize, Serializer};
use zeroize::Zeroizing;

use super::SessionError;
use crate::Acceptance;

/// The longest hint that is downloaded unless a client says otherwise: 8 GiB.
pub const DEFAULT_MAX_HINT_BYTES: u64 = 8 << 30;
/// The most look-ups under the same evaluation keys unless a client says otherwise.
pub const DEFAULT_LOOKUPS_PER_KEY: u32 = LOOKUPS_PER_KEY;
/// The most that a client can choose.
pub const MAX_LOOKUPS_PER_KEY: u32 = 1 << 20;

/// An event of a call that takes long.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event<'a> {
    /// A hint, or what is missing of it, is about to be downloaded; again after a [`Event::Retry`].
    HintStart {
        /// The length of the hint in bytes.
        bytes: u64,
        /// Bytes of it that an earlier attempt left behind.
        present: u64,
    },
    /// So many bytes of the hint are there now. Falls when a damaged part is thrown away.
    HintProgress {
        /// Bytes from the start.
        present: u64,
    },
    /// The hint is complete and has its hash.
    HintEnd,
    /// Another process is downloading the same hint; this one waits for it.
    HintLocked,
    /// This client's evaluation keys are new, or the server has lost them: they are uploaded now.
    KeysUpload {
        /// The length of the keys in bytes.
        bytes: u64,
    },
    /// A request failed and is made again.
    Retry {
        /// Why it failed.
        #[serde(rename = "reason", serialize_with = "in_words")]
        error: &'a SessionError,
        /// How long is waited before.
        #[serde(rename = "wait_ms", serialize_with = "in_milliseconds")]
        wait: Duration,
    },
}

fn in_words<S: Serializer>(error: &SessionError, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(error)
}

fn in_milliseconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64() * 1000.0)
}

/// How often and how soon a request is made again after a failure that may pass: a lost connection, or a server
/// that says that it is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, at least 1.
    pub attempts: u32,
    /// Wait before the second attempt; doubled before each further one. A server may ask for more.
    pub first_wait: Duration,
    /// The longest wait. If a server asks for more, the call fails at once.
    pub max_wait: Duration,
    /// How long a server is asked again that is loading the table, or that has answered look-ups of a call and fails since; these
    /// requests do not count as attempts.
    pub max_warming: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_wait: Duration::from_millis(200),
            max_wait: Duration::from_secs(30),
            max_warming: Duration::from_secs(120),
        }
    }
}

/// A relay of Oblivious HTTP (RFC 9458): the server does not see who asks, and the relay not what.
#[derive(Clone)]
pub struct RelayOptions {
    /// The URL of the relay.
    pub url: String,
    /// The server's key configuration, as the server gives it (RFC 9540); the relay's word for it if none.
    pub keys: Option<Vec<u8>>,
}

impl RelayOptions {
    /// Returns a name for the way through this relay. Every way has its own evaluation keys, so that the server cannot link what
    /// comes through one with what comes through another. A relay whose word is taken for the server's keys can have read what came
    /// through it; so that way and the one with keys of the server are two, and so are those to different keys.
    pub(super) fn route(&self) -> String {
        let keys = self.keys.as_ref().map(|keys| blake3::hash(keys).to_hex());
        format!("{} {}", self.url.trim_end_matches('/'), keys.as_ref().map_or("", |hash| hash.as_str()))
    }
}

/// The choices of a session.
#[derive(Clone)]
pub struct SessionOptions {
    /// Which tables are accepted.
    pub acceptance: Acceptance,
    /// The longest hint that is accepted, in bytes.
    pub max_hint_bytes: u64,
    /// Most look-ups in one request, at least 1.
    pub max_queries: usize,
    /// The most look-ups under the same evaluation keys, of 1 to [`MAX_LOOKUPS_PER_KEY`]; a look-up that is sent again counts
    /// again. After them the client makes fresh keys and uploads them.
    pub lookups_per_key: u32,
    /// The relay that requests go through, if not straight to the server. Then a driver makes every request at the relay's URL, and
    /// adds no token to it.
    pub relay: Option<RelayOptions>,
    /// The `Authorization` of requests through a relay, sealed with them. A driver adds it to all other requests itself.
    pub authorization: Option<Zeroizing<String>>,
    /// Whether values are given in the [stored form](crate::Table::use_stored_form).
    pub stored_form: bool,
    /// Retries.
    pub retry: RetryPolicy,
    /// The longest time that a call takes, with all its requests, retries and waits. `None` is no limit.
    pub timeout: Option<Duration>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            acceptance: Acceptance::default(),
            max_hint_bytes: DEFAULT_MAX_HINT_BYTES,
            max_queries: 64,
            lookups_per_key: DEFAULT_LOOKUPS_PER_KEY,
            relay: None,
            authorization: None,
            stored_form: false,
            retry: RetryPolicy::default(),
            timeout: None,
        }
    }
}
