//! Why a server does not give what it is asked for, and what to do.

use std::error::Error;

use super::url::without_secrets;

pub(crate) const SILENT: &str = "the server is silent";
pub(crate) const TOO_SOON: &str = "the server ended it too soon";
pub(super) const NAME: &str = "check the name";
/// The error of a certificate that the TLS library calls `CaUsedAsEndEntity`, and the advice.
pub(crate) const AUTHORITY_AS_SERVER: (&str, &str) = (
    "the server's certificate is that of an authority, which signs others and is no server's",
    "its operator must make one with basicConstraints=critical,CA:FALSE",
);

/// Why there is no more.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) message: String,
    /// The advice; `None` where another attempt may succeed.
    pub(crate) advice: Option<&'static str>,
}

impl Refused {
    pub(crate) fn new(message: impl Into<String>, advice: &'static str) -> Self {
        Self { message: message.into(), advice: Some(advice) }
    }

    pub(super) fn again(error: &dyn Error) -> Self {
        Self { message: chain(error), advice: None }
    }

    /// Adds how many bytes had come of how many, if another attempt might have gone on from there.
    pub(crate) fn so_far(mut self, here: u64, size: Option<u64>) -> Self {
        if self.advice.is_none() && here > 0 {
            let of = size.map_or_else(String::new, |size| format!(" of {size}"));
            self.message += &format!(" ({here}{of} bytes had come)");
        }
        self
    }

    /// Creates a refusal after which another attempt may succeed.
    pub(crate) fn for_now(message: &str) -> Self {
        Self { message: message.into(), advice: None }
    }

    /// Creates the refusal of an object that is not what it was.
    pub(crate) fn changed() -> Self {
        Self::new("it was changed while it was fetched", "begin again")
    }

    /// Returns what to do when no attempt is left; `later` where nothing better is known.
    pub(crate) fn last_advice(&self, later: &'static str) -> &'static str {
        // A network that is down for a while has no names either, so that this is asked again first.
        let unknown_host = self
            .message
            .contains("dns error")
            .then_some("check the name of its host, and this machine's network");
        self.advice.or(unknown_host).unwrap_or(later)
    }

    /// Something that looks like a web page came in place of the object: servers send one to who has to sign in.
    pub(crate) fn page() -> Self {
        Self::new(
            "a web page came in place of the file",
            "give the URL of the file itself, and check who may read it",
        )
    }

    /// There is nothing of that name.
    pub(crate) fn is_missing(&self) -> bool {
        self.advice == Some(NAME)
    }
}

/// Returns whether a file begins as a web page does.
pub(crate) fn is_page(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    let begins = |start: &&[u8]| head.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    [&b"<!doctype html"[..], b"<html"].iter().any(begins)
}

/// Returns an error and what it came of, without what URLs in it keep secret.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    // What a server says may have several lines.
    without_secrets(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_from_files() {
        for page in ["<!DOCTYPE html>", " \n<html lang=en>", "<HTML>"] {
            assert!(is_page(page.as_bytes()), "{page}");
        }
        for file in ["", "k,v", "<xml/>", "{\"html\":1}"] {
            assert!(!is_page(file.as_bytes()), "{file}");
        }
    }
}
