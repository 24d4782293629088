//! The URLs of remote inputs and tables. A URL may hold a password or a signature, which no message shows.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use hush_protocol::shown_url;

use crate::remote::SourcePolicy;

/// The kind of server that a URL leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Postgres,
    /// Amazon S3 and compatible stores.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
    /// A web server.
    Web,
}

const SCHEMES: &[(&str, Scheme)] = &[
    ("postgres", Scheme::Postgres),
    ("postgresql", Scheme::Postgres),
    ("s3", Scheme::S3),
    ("s3a", Scheme::S3),
    ("gs", Scheme::Gcs),
    ("az", Scheme::Azure),
    ("azure", Scheme::Azure),
    ("abfs", Scheme::Azure),
    ("abfss", Scheme::Azure),
    ("https", Scheme::Web),
    ("http", Scheme::Web),
];

/// The URL of a remote input or table.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteUrl {
    text: String,
    shown: PathBuf,
    /// The policy that decides, at every attempt, whether the URL may be fetched.
    policy: SourcePolicy,
}

impl RemoteUrl {
    /// Parses `text`; `None` if it is a path.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let (scheme, _) = text.split_once("://")?;
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        is_scheme.then(|| Self {
            text: text.into(),
            shown: shown_url(text).into(),
            policy: SourcePolicy::default(),
        })
    }

    /// Puts the URL under a policy.
    pub(crate) fn under(self, policy: &SourcePolicy) -> Self {
        Self { policy: policy.clone(), ..self }
    }

    pub(crate) fn policy(&self) -> &SourcePolicy {
        &self.policy
    }

    /// Returns the URL without its possible secrets: a password, a query, a fragment.
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// Returns the whole URL, with its secrets.
    pub(crate) fn secret(&self) -> &str {
        &self.text
    }

    /// Returns the kind of server.
    ///
    /// # Errors
    /// The nearest known scheme, if the scheme is unknown.
    pub(crate) fn scheme(&self) -> Result<Scheme, &'static str> {
        let own = self.text.split(':').next().unwrap_or_default().to_ascii_lowercase();
        let known = SCHEMES.iter().find(|(name, _)| *name == own);
        known.map(|&(_, scheme)| scheme).ok_or_else(|| {
            let close = SCHEMES.iter().map(|(name, _)| (strsim::damerau_levenshtein(name, &own), *name));
            close.min().map_or("", |(_, name)| name)
        })
    }
}

impl fmt::Debug for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteUrl({})", self.shown.display())
    }
}

/// Returns `text` with the secrets of its URLs removed.
pub(crate) fn without_secrets(text: &str) -> String {
    let word = |word: &str| {
        let url = word
            .find("://")
            .map(|end| word[..end].rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1));
        url.map_or_else(|| word.to_owned(), |at| format!("{}{}", &word[..at], shown_url(&word[at..])))
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_is_shown() {
        for (text, expected) in [
            ("postgres://host/db", "postgres://host/db"),
            ("postgres://me@host:5432/db", "postgres://me@host:5432/db"),
            ("postgres://me:SECRET@host/db", "postgres://me@host/db"),
            ("postgres://me:SE:CR@E/T?SECRET#SECRET@host/db", "postgres://me@host/db"),
            ("postgres://host/db?user=me&password=SECRET", "postgres://host/db"),
            ("postgres://?password=SECRET@host", "postgres://@host"),
            ("https://host/a/b.csv?X-Amz-Signature=SECRET", "https://host/a/b.csv"),
            ("https://host/b.csv#SECRET", "https://host/b.csv"),
            ("s3://bucket/a@b.csv", "s3://bucket/a@b.csv"),
        ] {
            let url = RemoteUrl::of(text).unwrap();
            assert_eq!(url.shown(), Path::new(expected));
            assert!(!format!("{url:?}").contains("SECRET"));
        }
        assert_eq!(
            without_secrets("GET (https://me:SECRET@host/a?sig=SECRET in 1 s: no"),
            "GET (https://me@host/a in 1 s: no"
        );
        for path in ["a.csv", "a:b", "/a://b", "./a://b.csv", "://a", "2a://b"] {
            assert_eq!(RemoteUrl::of(path), None, "{path}");
        }
    }
}
