//! What can be chosen.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use zeroize::Zeroizing;

use crate::{
    Acceptance,
    session::{Event, RetryPolicy, SessionOptions},
};

/// Receives events; called on the thread that made the call.
pub type Observer = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// Where hints are kept, and the seeds of evaluation keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HintCache {
    /// `hushdb/hints` and `hushdb/secrets` in the user's cache directory (`$XDG_CACHE_HOME`, or `~/.cache`).
    #[default]
    User,
    /// This directory; seeds in `secrets` inside it.
    Directory(PathBuf),
    /// In a nameless temporary file that goes with the process. Every open table has new evaluation keys.
    Off,
}

/// The choices of a client.
#[derive(Clone)]
pub struct HttpOptions {
    /// Where hints and seeds are kept.
    pub cache: HintCache,
    /// Which tables are accepted.
    pub acceptance: Acceptance,
    /// The longest hint that is accepted, in bytes.
    pub max_hint_bytes: u64,
    /// Most look-ups in one request, at least 1.
    pub max_queries: usize,
    /// Retries.
    pub retry: RetryPolicy,
    /// Longest time to connect.
    pub connect_timeout: Duration,
    /// Longest silence of the server, the time it takes to answer included.
    pub silence_timeout: Duration,
    /// The token with which the server knows this client, if it asks for one.
    pub token: Option<Token>,
    /// How servers and this client prove who they are.
    pub tls: TlsOptions,
    /// Receives progress.
    pub observer: Observer,
}

/// A bearer token.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// A token as `hushdb token create` prints it, or any other that is visible ASCII.
    pub fn new(text: &str) -> Option<Self> {
        let is_token = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_token.then(|| Self(Zeroizing::new(text.to_owned())))
    }

    /// The value of an `Authorization` header.
    pub(super) fn header(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("Bearer {}", *self.0))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// How servers with TLS and clients prove who they are.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Certificates, in PEM, of who may sign those of servers; the system's own if none.
    pub ca_cert: Option<Vec<u8>>,
    /// The certificate of this client, with those that lead to one that the server trusts, and its private key, in PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Take any certificate, on this machine's loopback alone.
    pub is_insecure: bool,
}

impl Default for HttpOptions {
    fn default() -> Self {
        let SessionOptions { acceptance, max_hint_bytes, max_queries, retry } = SessionOptions::default();
        Self {
            cache: HintCache::User,
            acceptance,
            max_hint_bytes,
            max_queries,
            retry,
            connect_timeout: Duration::from_secs(10),
            silence_timeout: Duration::from_secs(120),
            token: None,
            tls: TlsOptions::default(),
            observer: Arc::new(|_| {}),
        }
    }
}

impl HttpOptions {
    /// Those that are not the transport's.
    pub(super) fn session(&self) -> SessionOptions {
        let Self { max_hint_bytes, max_queries, retry, .. } = *self;
        SessionOptions { acceptance: self.acceptance.clone(), max_hint_bytes, max_queries, retry }
    }
}
