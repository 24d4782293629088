//! The options of a client.

use std::{fmt, sync::Arc, time::Duration};

use hush_client::{
    Choices,
    http::{HintCache, HttpOptions, TlsIdentity, TlsOptions},
};
use hush_protocol::Code;
use zeroize::Zeroizing;

use crate::{
    HushError,
    observer::{Observer, telling},
};

/// The choices of a client. Nothing has to be chosen.
#[derive(Clone, uniffi::Record)]
#[uniffi::export(Display)]
pub struct Options {
    /// The token with which the server knows this client.
    #[uniffi(default)]
    pub token: Option<String>,
    /// The longest time that a call takes, with all its requests, retries and waits. If not given, a call ends when it takes 10 s
    /// to connect, or the server is silent for 120 s.
    #[uniffi(default)]
    pub timeout: Option<Duration>,
    /// Attempts of a request in all, where a failure may pass: 5 if not given.
    #[uniffi(default)]
    pub attempts: Option<u32>,
    /// The folder in which hints and evaluation keys are kept, made if it is not there: one of the app's own, in `Context.cacheDir`
    /// or `FileManager`'s `cachesDirectory`. Without it they go with the table that is open.
    #[uniffi(default)]
    pub cache: Option<String>,
    /// Certificates, in PEM, of who may sign those of servers. If not given, those that the system trusts; on Android those that
    /// Mozilla trusted when this was built.
    #[uniffi(default)]
    pub ca_cert: Option<String>,
    /// The certificate of this client in PEM, for servers that ask who it is; with `clientKey`.
    #[uniffi(default)]
    pub client_cert: Option<String>,
    /// The private key of `clientCert` in PEM.
    #[uniffi(default)]
    pub client_key: Option<String>,
    /// Take any certificate, on this machine's loopback alone.
    #[uniffi(default)]
    pub insecure: bool,
    /// URL of a relay of Oblivious HTTP to ask through, so that the server does not see who asks.
    #[uniffi(default)]
    pub relay: Option<String>,
    /// The server's keys for that, as the server gives them; the relay's word for them if not given.
    #[uniffi(default)]
    pub ohttp_keys: Option<Vec<u8>>,
    /// The publisher who must have signed the table under the name by which it is opened: 64 hex digits. Or these, `=` and the
    /// signed name, if the server has the table under another one.
    #[uniffi(default)]
    pub trust: Option<String>,
    /// The only epoch that is accepted: 64 hex digits.
    #[uniffi(default)]
    pub epoch: Option<String>,
    /// The one parameter set that is accepted although it has less than 128 bits of security.
    #[uniffi(default)]
    pub allow_weak: Option<String>,
    /// The longest hint that is accepted, in bytes: 8 GiB if not given.
    #[uniffi(default)]
    pub max_hint: Option<u64>,
    /// The most look-ups under the same evaluation keys, where the protocol has some: 256 if not given. After them fresh keys are
    /// uploaded.
    #[uniffi(default)]
    pub lookups_per_key: Option<u32>,
}

impl fmt::Display for Options {
    /// Tells no secret: a log may have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Options(..)")
    }
}

impl Options {
    /// Returns the options of a session.
    pub(crate) fn parse(self, observer: Option<Arc<dyn Observer>>) -> Result<HttpOptions, HushError> {
        let refused = |reason: &str| HushError::new(Code::Options, reason);
        let identity = match (self.client_cert, self.client_key) {
            (Some(cert), Some(key)) => {
                Some(TlsIdentity { cert: cert.into_bytes(), key: Zeroizing::new(key.into_bytes()) })
            }
            (None, None) => None,
            _ => return Err(refused("clientCert and clientKey go together")),
        };
        let choices = Choices {
            token: self.token.map(Zeroizing::new),
            timeout: self.timeout,
            attempts: self.attempts,
            relay: self.relay,
            ohttp_keys: self.ohttp_keys,
            trust: self.trust,
            epoch: self.epoch,
            allow_weak: self.allow_weak,
            max_hint: self.max_hint,
            max_queries: None,
            lookups_per_key: self.lookups_per_key,
        };
        let options = HttpOptions::of(&choices).map_err(refused)?;
        Ok(HttpOptions {
            cache: self.cache.map_or(HintCache::Off, |folder| HintCache::Directory(folder.into())),
            tls: TlsOptions {
                ca_cert: self.ca_cert.map(String::into_bytes),
                identity,
                is_insecure: self.insecure,
            },
            observer: observer.map_or(options.observer.clone(), telling),
            ..options
        })
    }
}
