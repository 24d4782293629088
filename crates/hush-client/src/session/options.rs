//! The options of a session, and the events that it reports.

use std::time::Duration;

use hush_protocol::ring_keys::LOOKUPS_PER_KEY;
use serde::{Serialize, Serializer};
use zeroize::Zeroizing;

use super::SessionError;
use crate::Acceptance;

/// The longest hint that is downloaded by default: 8 GiB.
pub const DEFAULT_MAX_HINT_BYTES: u64 = 8 << 30;
/// The most look-ups with the same evaluation keys, by default.
pub const DEFAULT_LOOKUPS_PER_KEY: u32 = LOOKUPS_PER_KEY;
/// The greatest value of [`SessionOptions::lookups_per_key`].
pub const MAX_LOOKUPS_PER_KEY: u32 = 1 << 20;

/// An event during a long call.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event<'a> {
    /// The download of a hint, or of its missing part, is about to begin. It is reported again after a [`Event::Retry`].
    HintStart {
        /// The length of the hint in bytes.
        bytes: u64,
        /// The bytes of it that are left from an earlier attempt.
        present: u64,
    },
    /// More of the hint has arrived. The number of bytes falls if a damaged part was deleted.
    HintProgress {
        /// The bytes that are present, from the start.
        present: u64,
    },
    /// The hint is complete and has its hash.
    HintEnd,
    /// Another process is downloading the same hint, and this one waits for it.
    HintLocked,
    /// Evaluation keys are about to be uploaded, because they are new or the server lost them.
    KeysUpload {
        /// The length of the keys in bytes.
        bytes: u64,
    },
    /// A request failed, and will be sent again.
    Retry {
        /// The reason of the failure.
        #[serde(rename = "reason", serialize_with = "in_words")]
        error: &'a SessionError,
        /// The time until the request is sent again.
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

/// The policy of retries after a temporary failure: a lost connection, or a server that reports that it is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The total number of attempts, at least 1.
    pub attempts: u32,
    /// The wait before the second attempt. It is doubled before each further one. A server may ask for a longer wait.
    pub first_wait: Duration,
    /// The longest wait. If a server asks for more, the call fails at once.
    pub max_wait: Duration,
    /// The longest time of retries while a server loads the table, or fails after it has answered look-ups of the same
    /// call. These retries do not count as attempts.
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

/// A relay of Oblivious HTTP (RFC 9458). The server does not learn who asks, and the relay does not learn what is asked.
#[derive(Clone)]
pub struct RelayOptions {
    /// The URL of the relay.
    pub url: String,
    /// The server's key configuration, as the server publishes it (RFC 9540). `None` trusts the relay to send it.
    pub keys: Option<Vec<u8>>,
}

impl RelayOptions {
    /// Returns a name for the route through this relay. Every route has its own evaluation keys, so that the server cannot
    /// link requests on one route with those on another. A relay that is trusted to send the server's keys can read the
    /// requests. So routes with different keys, or with keys from the relay, are different routes.
    pub(super) fn route(&self) -> String {
        let keys = self.keys.as_ref().map(|keys| blake3::hash(keys).to_hex());
        format!("{} {}", self.url.trim_end_matches('/'), keys.as_ref().map_or("", |hash| hash.as_str()))
    }
}

/// The options of a session.
#[derive(Clone)]
pub struct SessionOptions {
    /// The conditions for a table.
    pub acceptance: Acceptance,
    /// The longest hint that is accepted, in bytes.
    pub max_hint_bytes: u64,
    /// The most look-ups in one request, at least 1.
    pub max_queries: usize,
    /// The most look-ups with the same evaluation keys, from 1 to [`MAX_LOOKUPS_PER_KEY`]. A look-up that is sent again
    /// counts again. After them the client creates and uploads new keys.
    pub lookups_per_key: u32,
    /// The relay through which requests go. `None` sends them directly to the server. With a relay, a driver sends every
    /// request to the relay's URL, without a token.
    pub relay: Option<RelayOptions>,
    /// The `Authorization` header of requests through a relay, which is sealed with them. A driver adds it to all other
    /// requests itself.
    pub authorization: Option<Zeroizing<String>>,
    /// Whether values are returned in the [stored form](crate::Table::use_stored_form).
    pub stored_form: bool,
    /// The policy of retries.
    pub retry: RetryPolicy,
    /// The longest time of a call, including all of its requests, retries and waits. `None` sets no limit.
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
