//! What can be chosen: a JSON document that the driver makes.

use std::time::Duration;

use hush_client::{
    Acceptance, parse_epoch,
    session::{RelayOptions, RetryPolicy, SessionOptions},
};
use serde::{Deserialize, Deserializer};
use wasm_bindgen::JsValue;
use zeroize::Zeroizing;

use crate::error::refused;

/// The longest hint that is accepted unless the caller says otherwise, in bytes: a page has 4 GiB for everything.
const MAX_HINT_BYTES: u64 = 1 << 30;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Options {
    max_hint_bytes: Option<u64>,
    max_queries: Option<usize>,
    /// Attempts of a request in all.
    attempts: Option<u32>,
    /// Milliseconds that a call may take.
    timeout_ms: Option<f64>,
    lookups_per_key: Option<u32>,
    allow_weak: Option<String>,
    /// 64 hex digits.
    epoch: Option<String>,
    /// A public key, or a public key, `=` and a name.
    trust: Option<String>,
    /// The token, which a driver sends with requests that go straight to the server.
    #[serde(default, deserialize_with = "wiped")]
    pub(crate) token: Option<Zeroizing<String>>,
    /// The URL of a relay.
    pub(crate) relay: Option<String>,
    /// The server's keys for requests through it.
    ohttp_keys: Option<Vec<u8>>,
    /// Whether the driver keeps hints for later.
    #[serde(default)]
    pub(crate) keeps_hints: bool,
}

impl Options {
    pub(crate) fn parse(json: &str) -> Result<Self, JsValue> {
        serde_json::from_str(json)
            .map_err(|error| refused("options", &format!("an option is of no use: {error}")))
    }

    pub(crate) fn session(&self) -> Result<SessionOptions, JsValue> {
        let epoch = self.epoch.as_deref().map(parse_epoch);
        let epoch = epoch.transpose().map_err(|reason| refused("options", &format!("epoch: {reason}")))?;
        let trust = self.trust.as_deref().map(|text| text.parse());
        let trust = trust.transpose().map_err(|reason| refused("options", &format!("trust: {reason}")))?;
        let defaults = SessionOptions::default();
        let attempts = self.attempts.unwrap_or(defaults.retry.attempts).max(1);
        let timeout = self.timeout_ms.map(|ms| Duration::try_from_secs_f64(ms / 1000.0));
        let timeout = timeout.transpose().ok().filter(|time| time.is_none_or(|time| !time.is_zero()));
        let no_time = || refused("options", "timeoutMs is a number of milliseconds above 0");
        Ok(SessionOptions {
            stored_form: false,
            acceptance: Acceptance { weak_preset: self.allow_weak.clone(), epoch, trust },
            max_hint_bytes: self.max_hint_bytes.unwrap_or(MAX_HINT_BYTES),
            max_queries: self.max_queries.unwrap_or(defaults.max_queries).max(1),
            lookups_per_key: self.lookups_per_key.unwrap_or(defaults.lookups_per_key),
            relay: self.relay.clone().map(|url| RelayOptions { url, keys: self.ohttp_keys.clone() }),
            authorization: self.token.as_ref().map(|token| Zeroizing::new(format!("Bearer {}", **token))),
            retry: RetryPolicy { attempts, ..defaults.retry },
            timeout: timeout.ok_or_else(no_time)?,
        })
    }
}

/// Reads a token into memory that is wiped.
fn wiped<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Zeroizing<String>>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(Zeroizing::new))
}
