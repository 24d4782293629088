//! The URL of a server.

use std::{net::IpAddr, num::NonZeroU16};

use ::http::Uri;
use hush_protocol::shown_url;

use crate::session::SessionError;

/// The base URL of a server: `http://host:port` or `https://host`, optionally with a path.
#[derive(Clone, Debug)]
pub struct ServerUrl {
    /// The URL without a slash at its end.
    text: String,
    /// The URL without a password.
    shown: String,
    uri: Uri,
}

impl ServerUrl {
    /// Parses the URL of a server.
    ///
    /// # Errors
    /// [`SessionError::Url`] if the text is no URL, or cannot be that of a server.
    pub fn parse(url: &str) -> Result<Self, SessionError> {
        let invalid = |reason| SessionError::Url { url: shown_url(url), reason };
        let uri: Uri = url.parse().map_err(|_| invalid("not a URL"))?;
        match uri.scheme_str() {
            Some("http" | "https") => {}
            Some(_) => return Err(invalid("the scheme is not http or https")),
            None => return Err(invalid("it does not begin with http:// or https://")),
        }
        if uri.query().is_some() || url.contains('#') {
            return Err(invalid("it has a query or a fragment"));
        }
        let text = url.trim_end_matches('/').to_owned();
        let parsed = Self { shown: shown_url(&text), text, uri };
        let host = parsed.uri.host().unwrap_or("");
        if host.is_empty() {
            return Err(invalid("it names no host"));
        }
        // `Uri::port` leaves out a port that is no number of 16 bits.
        let port = parsed.authority().strip_prefix(host).and_then(|behind| behind.strip_prefix(':'));
        if port.is_some_and(|port| port.starts_with('+') || port.parse::<NonZeroU16>().is_err()) {
            return Err(invalid("its port is not a number from 1 to 65535"));
        }
        Ok(parsed)
    }

    /// Returns the URL without its password, for messages.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns the URL without a slash at its end. The path of a request is appended to it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the host, with the port if the URL names one.
    pub fn authority(&self) -> &str {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        authority.rsplit_once('@').map_or(authority, |(_, host)| host)
    }

    /// Returns the URL up to its authority, without a path.
    pub(in crate::session) fn root(&self) -> &str {
        let path = self.uri.path().trim_end_matches('/');
        self.shown.strip_suffix(path).unwrap_or(&self.shown)
    }

    /// Returns whether the scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// Returns whether the server is on this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.uri.host().unwrap_or("");
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    }

    /// Returns scheme, host, port and path in one canonical spelling. The server's keys are stored under it.
    pub(in crate::session) fn origin(&self) -> String {
        let lower = |part: Option<&str>| part.unwrap_or("").to_ascii_lowercase();
        let scheme = lower(self.uri.scheme_str());
        let host = lower(self.uri.host());
        let port = self.uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        format!("{scheme}://{host}:{port}{}", self.uri.path().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let url = ServerUrl::parse("https://user:secret@hush.example:443/a/").unwrap();
        assert_eq!(url.as_str(), "https://user:secret@hush.example:443/a");
        assert_eq!((url.shown(), url.authority()), ("https://user@hush.example:443/a", "hush.example:443"));
        let error = ServerUrl::parse("ftp://user:se/cret@hush.example").unwrap_err().to_string();
        assert!(error.starts_with("'ftp://user@hush.example' is not the URL"), "{error}");
    }

    #[test]
    fn the_root_has_no_path() {
        let root = |url: &str| ServerUrl::parse(url).unwrap().root().to_owned();
        assert_eq!(root("http://hush.example"), "http://hush.example");
        assert_eq!(root("http://hush.example:80/"), "http://hush.example:80");
        assert_eq!(root("https://hush.example/a/b/"), "https://hush.example");
    }

    #[test]
    fn this_machine_is_loopback() {
        let is_loopback = |url: &str| ServerUrl::parse(url).unwrap().is_loopback();
        for url in ["http://localhost", "http://LocalHost:80/a", "http://127.9.0.1:7700", "http://[::1]"] {
            assert!(is_loopback(url), "{url}");
        }
        for url in ["http://localhost.example", "https://10.0.0.1", "http://[2001:db8::1]:80", "http://[::]"]
        {
            assert!(!is_loopback(url), "{url}");
        }
    }

    #[test]
    fn one_server_has_one_origin() {
        let origin = |url: &str| ServerUrl::parse(url).unwrap().origin();
        assert_eq!(origin("http://LocalHost"), "http://localhost:80");
        assert_eq!(origin("HTTP://localhost:80/"), "http://localhost:80");
        assert_eq!(origin("https://hush.example/Db/"), "https://hush.example:443/Db");
        assert_eq!(origin("http://[::1]:7700"), "http://[::1]:7700");
        assert_ne!(origin("http://localhost:7700"), origin("http://localhost:7701"));
    }
}
