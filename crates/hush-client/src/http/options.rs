//! The options of a client over HTTP.

use std::{path::PathBuf, str::FromStr, sync::Arc, time::Duration};

use zeroize::Zeroizing;

use crate::{
    Acceptance, Choices,
    session::{Event, RelayOptions, RetryPolicy, SessionOptions},
};

/// A function that receives events, on the thread that made the call.
pub type Observer = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// The location of cached hints and of the records of evaluation keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HintCache {
    /// `hushdb/hints` and `hushdb/secrets` in the user's cache directory (`$XDG_CACHE_HOME`, or `~/.cache`).
    #[default]
    User,
    /// This directory. Keys are in its folder `secrets`.
    Directory(PathBuf),
    /// A temporary file without a name, which ends with the process. Every open table has new evaluation keys.
    Off,
}

/// The options of a client.
#[derive(Clone)]
pub struct HttpOptions {
    /// The location of hints and keys.
    pub cache: HintCache,
    /// The conditions for a table.
    pub acceptance: Acceptance,
    /// The longest hint that is accepted, in bytes.
    pub max_hint_bytes: u64,
    /// The most look-ups in one request, at least 1.
    pub max_queries: usize,
    /// The most look-ups with the same evaluation keys ([`SessionOptions::lookups_per_key`]).
    pub lookups_per_key: u32,
    /// Whether values are returned in the [stored form](crate::Table::use_stored_form).
    pub stored_form: bool,
    /// The policy of retries.
    pub retry: RetryPolicy,
    /// The longest time of a call, including all requests, retries and waits. If set, it replaces the two limits below.
    pub timeout: Option<Duration>,
    /// The longest time to connect.
    pub connect_timeout: Duration,
    /// The longest silence of the server, including the time until it answers.
    pub silence_timeout: Duration,
    /// The token by which the server recognises this client. `None` if the server asks for none.
    pub token: Option<BearerToken>,
    /// The certificates by which servers and this client authenticate.
    pub tls: TlsOptions,
    /// The relay through which requests go. `None` sends them directly to the server.
    pub relay: Option<RelayOptions>,
    /// Whether the connection is closed with the last response of each call of look-ups. This is for programs that make one
    /// call and exit, so that the end of the connection does not show how long they work afterwards. Other programs keep it
    /// for the next call.
    pub closes: bool,
    /// The function that receives progress.
    pub observer: Observer,
}

/// A bearer token (RFC 6750).
#[derive(Clone)]
pub struct BearerToken(Zeroizing<String>);

impl FromStr for BearerToken {
    type Err = &'static str;

    /// Parses a token as `hushdb token create` prints it. Any other text of visible ASCII is accepted too.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A variable that was read from a file often ends with a line end.
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

/// The certificates by which servers and clients authenticate over TLS. A PEM text has at least one certificate, or one key.
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// The certificates that may sign those of servers. `None` takes the system's, or on Android those that Mozilla trusts.
    pub ca_cert: Option<Vec<u8>>,
    /// The identity of this client, for servers that ask for one.
    pub identity: Option<TlsIdentity>,
    /// Whether any certificate is accepted. Allowed only for the loopback of this machine.
    pub is_insecure: bool,
}

/// A client's own certificate.
#[derive(Clone)]
pub struct TlsIdentity {
    /// The client's certificate, followed by those that lead to a certificate that the server trusts.
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
    /// Returns options with these choices.
    ///
    /// # Errors
    /// A text that says which choice is invalid.
    pub fn of(choices: &Choices) -> Result<Self, &'static str> {
        let token = choices.token.as_ref().map(|token| token.parse()).transpose()?;
        Ok(Self { token, ..choices.session()?.into() })
    }

    /// Returns the options of the session, without those of the transport.
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
