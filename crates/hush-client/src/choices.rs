//! The choices of a client's user. They have the same names in every language, each in the language's own case.

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

use crate::{
    Acceptance, parse_epoch,
    session::{RelayOptions, RetryPolicy, SessionOptions},
};

/// The choices of a client's user. `None` stands for the default. In JSON the names are those of JavaScript.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Choices {
    /// The token by which the server recognises this client. Its memory is wiped when dropped.
    pub token: Option<Zeroizing<String>>,
    /// The longest time of a call, including all of its requests, retries and waits. In JSON it is a number of milliseconds.
    #[serde(rename = "timeoutMs", deserialize_with = "of_milliseconds")]
    pub timeout: Option<Duration>,
    /// The most attempts of a request, if its failure may be temporary.
    pub attempts: Option<u32>,
    /// The URL of an Oblivious HTTP relay through which all requests go.
    pub relay: Option<String>,
    /// The server's keys for requests through the relay. `None` trusts the relay to send them.
    pub ohttp_keys: Option<Vec<u8>>,
    /// The publisher who must have signed the table. Either a public key, or a public key, `=` and a name.
    pub trust: Option<String>,
    /// The only epoch that is accepted: 64 hex digits.
    pub epoch: Option<String>,
    /// The parameter set that is accepted although it has less than 128 bits of security.
    pub allow_weak: Option<String>,
    /// The longest hint that is accepted, in bytes.
    pub max_hint: Option<u64>,
    /// The most look-ups in one request.
    pub max_queries: Option<usize>,
    /// The most look-ups with the same evaluation keys.
    pub lookups_per_key: Option<u32>,
}

impl Choices {
    /// Returns the options of a session.
    ///
    /// # Errors
    /// A text that says which choice is invalid.
    pub fn session(&self) -> Result<SessionOptions, &'static str> {
        let defaults = SessionOptions::default();
        if self.timeout.is_some_and(|time| time.is_zero()) {
            return Err("a timeout is a time above 0");
        }
        let attempts = self.attempts.unwrap_or(defaults.retry.attempts);
        if attempts == 0 {
            return Err("attempts is a number of at least 1");
        }
        Ok(SessionOptions {
            acceptance: Acceptance {
                weak_preset: self.allow_weak.clone(),
                epoch: self.epoch.as_deref().map(parse_epoch).transpose()?,
                trust: self.trust.as_deref().map(str::parse).transpose()?,
            },
            max_hint_bytes: self.max_hint.unwrap_or(defaults.max_hint_bytes),
            max_queries: self.max_queries.unwrap_or(defaults.max_queries).max(1),
            lookups_per_key: self.lookups_per_key.unwrap_or(defaults.lookups_per_key),
            relay: self.relay.clone().map(|url| RelayOptions { url, keys: self.ohttp_keys.clone() }),
            authorization: self.token.as_ref().map(|token| Zeroizing::new(format!("Bearer {}", **token))),
            retry: RetryPolicy { attempts, ..defaults.retry },
            timeout: self.timeout,
            ..defaults
        })
    }
}

fn of_milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let time = Option::<f64>::deserialize(deserializer)?.map(|ms| Duration::try_from_secs_f64(ms / 1000.0));
    time.transpose().map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hush_protocol::wording::camel_case;

    use super::*;

    const JAVASCRIPT: &str = include_str!("../../../clients/js/src/options.ts");
    const MOBILE: &str = include_str!("../../hush-mobile/src/options.rs");
    const PYTHON: &str = include_str!("../../hush-py/python/hushdb/__init__.py");

    /// Returns the names of all choices, from the error for an unknown name.
    fn names() -> BTreeSet<String> {
        let refused = serde_json::from_str::<Choices>(r#"{"none": 1}"#).err().unwrap().to_string();
        refused.split('`').skip(3).step_by(2).map(str::to_owned).collect()
    }

    /// Returns the names at the beginnings of a declaration's lines, in camel case. The declaration is between `from` and `to`.
    fn declared(source: &str, from: &str, to: &str) -> BTreeSet<String> {
        let (_, source) = source.split_once(from).unwrap();
        let lines = source.split_once(to).unwrap().0.lines().map(str::trim);
        let members =
            lines.filter(|line| !line.starts_with(['/', '*', '#'])).filter_map(|line| line.split_once(':'));
        members.map(|(name, _)| camel_case(name.trim_start_matches("pub ").trim_end_matches('?'))).collect()
    }

    #[test]
    fn languages_have_these_names() {
        let javascript = declared(JAVASCRIPT, "export interface ConnectOptions {", "\n}");
        assert_eq!(names().difference(&javascript).collect::<Vec<_>>(), [] as [&str; 0]);
        let beside = ["fetch", "onProgress", "signal", "storage"];
        assert_eq!(javascript.difference(&names()).collect::<Vec<_>>(), beside);

        // The other languages have a type for times. There, `maxQueries` is an option of a single call, or absent.
        let others: BTreeSet<String> = names().into_iter().filter(|name| name != "maxQueries").collect();
        let others =
            others.iter().map(|name| name.trim_end_matches("Ms").to_owned()).collect::<BTreeSet<_>>();
        for (source, from, to, beside) in [
            (
                MOBILE,
                "pub struct Options {",
                "\n}",
                &["cache", "caCert", "clientCert", "clientKey", "insecure"][..],
            ),
            (
                PYTHON,
                "\ndef connect(",
                ") -> Client:",
                &[
                    "ca_cert",
                    "cache",
                    "client_cert",
                    "client_key",
                    "insecure",
                    "no_cache",
                    "on_progress",
                    "url",
                ],
            ),
        ] {
            let declared = declared(source, from, to);
            let beside: BTreeSet<String> = beside.iter().map(|name| camel_case(name)).collect();
            assert_eq!(declared, others.union(&beside).cloned().collect(), "{from}");
        }
    }

    #[test]
    fn invalid_choices_are_refused() {
        let session = |json: &str| serde_json::from_str::<Choices>(json).unwrap().session();
        let options =
            session(r#"{"timeoutMs": 1500.0, "token": "t", "maxHint": 7, "ohttpKeys": [1]}"#).unwrap();
        assert_eq!((options.timeout, options.max_hint_bytes), (Some(Duration::from_millis(1500)), 7));
        assert_eq!(options.authorization.unwrap().as_str(), "Bearer t");
        for (json, reason) in [
            (r#"{"timeoutMs": 0}"#, "above 0"),
            (r#"{"attempts": 0}"#, "at least 1"),
            (r#"{"epoch": "12"}"#, "64 hex digits"),
            (r#"{"trust": "12"}"#, ""),
        ] {
            assert!(session(json).err().unwrap().contains(reason), "{json}");
        }
        assert!(serde_json::from_str::<Choices>(r#"{"timeoutMs": -1}"#).is_err());
    }
}
