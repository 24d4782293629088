//! The refusals of servers, each with what to do.

use std::error::Error;

use super::url::without_secrets;

pub(crate) const SILENT: &str = "the server is silent";
pub(crate) const TOO_SOON: &str = "the server ended it too soon";
pub(super) const NAME: &str = "check the name";
const BEGIN: &str = "begin again";
/// The meaning of the TLS library's error `CaUsedAsEndEntity`, and what to do.
pub(crate) const AUTHORITY_AS_SERVER: (&str, &str) = (
    "the server's certificate is that of an authority, which signs others and is no server's",
    "its operator must make one with basicConstraints=critical,CA:FALSE",
);

/// The reason why a request failed.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) message: String,
    /// The advice to the user; `None` where a retry may succeed.
    pub(crate) advice: Option<&'static str>,
}

impl Refused {
    pub(crate) fn new(message: impl Into<String>, advice: &'static str) -> Self {
        Self { message: message.into(), advice: Some(advice) }
    }

    pub(super) fn again(error: &dyn Error) -> Self {
        Self { message: chain(error), advice: None }
    }

    /// Adds how many bytes of how many had arrived, if a retry might have continued from there.
    pub(crate) fn so_far(mut self, here: u64, size: Option<u64>) -> Self {
        if self.advice.is_none() && here > 0 {
            let of = size.map_or_else(String::new, |size| format!(" of {size}"));
            self.message += &format!(" ({here}{of} bytes had come)");
        }
        self
    }

    /// Creates a refusal that a retry may overcome.
    pub(crate) fn for_now(message: &str) -> Self {
        Self { message: message.into(), advice: None }
    }

    /// Creates the refusal of an object that has changed.
    pub(crate) fn changed() -> Self {
        Self::new("it was changed while it was fetched", BEGIN)
    }

    /// Returns the refusal of an object that the header of a table names.
    pub(crate) fn of_table(self) -> Self {
        match self.advice {
            Some(NAME | BEGIN) => Self::new(
                format!(
                    "the table is not whole there, or another one is being put in its place: {}",
                    self.message
                ),
                "put all of it there again, its header last",
            ),
            _ => self,
        }
    }

    /// Returns what to do when no attempt is left; `later` if nothing better is known.
    pub(crate) fn last_advice(&self, later: &'static str) -> &'static str {
        // A network that is down for a while resolves no names either, so this error is retried first.
        let unknown_host = self
            .message
            .contains("dns error")
            .then_some("check the name of its host, and this machine's network");
        self.advice.or(unknown_host).unwrap_or(later)
    }

    /// Creates the refusal of what looks like a web page instead of the object. Servers send one to clients that have to sign in.
    pub(crate) fn page() -> Self {
        Self::new(
            "a web page came in place of the file",
            "give the URL of the file itself, and check who may read it",
        )
    }

    /// Returns whether the server has nothing of this name.
    pub(crate) fn is_missing(&self) -> bool {
        self.advice == Some(NAME)
    }
}

/// Returns whether a file begins as a web page does.
pub(crate) fn is_page(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|start: &&[u8]| head.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)))
}

/// Formats an error and its causes, without the secrets of URLs in it.
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
    // The text of a server may have several lines.
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
