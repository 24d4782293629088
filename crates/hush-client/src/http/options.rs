//! What can be chosen.

use std::{path::PathBuf, sync::Arc, time::Duration};

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
    /// Receives progress.
    pub observer: Observer,
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
