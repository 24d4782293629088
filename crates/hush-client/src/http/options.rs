//! The options of a client over HTTP.

use std::{path::PathBuf, str::FromStr, sync::Arc, time::Duration};

use zeroize::Zeroizing;

use crate::{
    Acceptance, Choices,
    session::{Event, RelayOptions, RetryPolicy, SessionOptions},
};

/// Receives events; called on the thread that made the call.
pub type Observer = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// Where hints are kept, and the records of evaluation keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HintCache {
    /// `hushdb/hints` and `hushdb/secrets` in the user's cache directory (`$XDG_CACHE_HOME`, or `~/.cache`).
    #[default]
    User,
    /// This directory; keys in `secrets` inside it.
    Directory(PathBuf),
    /// In a nameless temporary file that goes with the process. Every open table has new evaluation keys.
    Off,
}

/// The choices of a client.
#[derive(Clone)]
pub struct HttpOptions {
    /// Where hints and keys are kept.
    pub cache: HintCache,
    /// Which tables are accepted.
    pub acceptance: Acceptance,
    /// The longest hint that is accepted, in bytes.
    pub max_hint_bytes: u64,
    /// Most look-ups in one request, at least 1.
    pub max_queries: usize,
    /// The most look-ups under the same evaluation keys ([`SessionOptions::lookups_per_key`]).
    pub lookups_per_key: u32,
    /// Whether values are given in the [stored form](crate::Table::use_stored_form).
    pub stored_form: bool,
    /// Retries.
    pub retry: RetryPolicy,
    /// The longest time that a call takes, with all its requests, retries and waits. It takes the place of the limits below.
    pub timeout: Option<Duration>,
    /// Longest time to connect.
    pub connect_timeout: Duration,
    /// Longest silence of the server, the time it takes to answer included.
    pub silence_timeout: Duration,
    /// The token with which the server knows this client, if it asks for one.
    pub token: Option<BearerToken>,
    /// How servers and this client prove who they are.
    pub tls: TlsOptions,
    /// The relay that requests go through; straight to the server without it.
    pub relay: Option<RelayOptions>,
    /// Close the connection with the last response of each call of look-ups, for programs that make one call and end: how long they
    /// work after it does not show. Others keep it, for the next call.
    pub closes: bool,
    /// Receives progress.
    pub observer: Observer,
}

/// A bearer token (RFC 6750).
#[derive(Clone)]
pub struct BearerToken(Zeroizing<String>);

impl FromStr for BearerToken {
    type Err = &'static str;

    /// Returns a token as `hushdb token create` prints it, or any other that is visible ASCII.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A file that is read into a variable often ends its line.
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            return Err("that is no token: it is empty");
        }
        match text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Self(Zeroizing::new(text.to_owned()))),
            false => Err("that is no token: it has a space, a line end or a character that is not ASCII"),
        }
    }
}

impl BearerToken {
    /// Returns the value of an `Authorization` header.
    pub fn header(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("Bearer {}", *self.0))
    }
}

/// How servers with TLS and clients prove who they are. PEM texts, of at least one certificate or of one key.
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// Certificates of who may sign those of servers; the system's own if none, on Android those that Mozilla trusts.
    pub ca_cert: Option<Vec<u8>>,
    /// The identity of this client, for servers that ask for one.
    pub identity: Option<TlsIdentity>,
    /// Take any certificate, on this machine's loopback alone.
    pub is_insecure: bool,
}

/// A client's own certificate.
#[derive(Clone)]
pub struct TlsIdentity {
    /// The certificate, and those that lead to one that the server trusts.
    pub cert: Vec<u8>,
    /// The private key.
    pub key: Zeroizing<Vec<u8>>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        SessionOptions::default().into()
    }
}

impl From<SessionOptions> for HttpOptions {
    fn from(options: SessionOptions) -> Self {
        let SessionOptions { acceptance, max_hint_bytes, max_queries, lookups_per_key, .. } = options;
        let SessionOptions { relay, stored_form, retry, timeout, .. } = options;
        Self {
            cache: HintCache::User,
            acceptance,
            max_hint_bytes,
            max_queries,
            lookups_per_key,
            stored_form,
            retry,
            timeout,
            connect_timeout: Duration::from_secs(10),
            silence_timeout: Duration::from_secs(120),
            token: None,
            tls: TlsOptions::default(),
            relay,
            closes: false,
            observer: Arc::new(|_| {}),
        }
    }
}

impl HttpOptions {
    /// Returns the options of a client with these choices.
    ///
    /// # Errors
    /// Which choice is invalid.
    pub fn of(choices: &Choices) -> Result<Self, &'static str> {
        let token = choices.token.as_ref().map(|token| token.parse()).transpose()?;
        Ok(Self { token, ..choices.session()?.into() })
    }

    /// Returns the options that are not the transport's.
    pub(super) fn session(&self) -> SessionOptions {
        let Self { max_hint_bytes, max_queries, lookups_per_key, stored_form, retry, timeout, .. } = *self;
        SessionOptions {
            acceptance: self.acceptance.clone(),
            max_hint_bytes,
            max_queries,
            lookups_per_key,
            relay: self.relay.clone(),
            authorization: self.token.as_ref().map(BearerToken::header),
            stored_form,
            retry,
            timeout,
        }
    }
}
