//! The names by which a listener is asked.
//!
//! A page of another site can have its own name resolve to an address of this machine (DNS rebinding), and then read what only
//! this machine should. The requests of such a page still have its own name in `Host`, so the server can refuse them.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{header::HOST, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::Endpoints;
use crate::problem::{Code, Problem};

/// The number of characters of a name that an error shows.
const MAX_SHOWN: usize = 100;

/// The names of a server beside those of loopback.
pub(crate) struct Hosts(Vec<String>);

impl Hosts {
    pub(crate) fn new(names: Vec<String>) -> Hosts {
        Hosts(names)
    }

    /// Returns whether a listener answers to some names alone. Health checks come to any address, and a relay serves nothing of
    /// its own.
    pub(crate) fn are_asked_for(&self, is_local: bool, endpoints: Endpoints) -> bool {
        match endpoints {
            Endpoints::Relay => false,
            Endpoints::Health => is_local,
            Endpoints::All | Endpoints::Tables | Endpoints::Admin => is_local || !self.0.is_empty(),
        }
    }

    /// Returns whether `authority` names this server, with any port: a forwarded port (`ssh -L`) has another number.
    fn include(&self, authority: &str) -> bool {
        let Some(host) = authority.parse().ok().as_ref().and_then(host_of) else { return false };
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        address.is_ok_and(|address| address.to_canonical().is_loopback())
            || host == "localhost"
            || host.ends_with(".localhost")
            || self.0.contains(&host)
    }
}

/// Returns the host of an authority in the form that is compared: lower case, without a dot at the end. Returns `None` if there
/// is a user or no host.
pub(super) fn host_of(authority: &Authority) -> Option<String> {
    let host = authority.host().to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    (!authority.as_str().contains('@') && !host.is_empty()).then(|| host.to_owned())
}

/// Reads a name of a server, such as `hush.example` or `[2001:db8::1]`. Returns it in lower case. Fails with advice if the text
/// is no host, or has a port or a user.
pub fn host_name(text: &str) -> Result<String, String> {
    let authority: Option<Authority> = text.parse().ok();
    let host = authority.filter(|authority| authority.port().is_none()).as_ref().and_then(host_of);
    host.ok_or_else(|| "it is the name or the address of a server, without a port, as hush.example".into())
}

/// Passes a request on if it names one of `hosts`, and refuses others with `misdirected`. Without `hosts`, passes every request
/// on. Health checks by another name get the status alone.
pub(super) async fn check(State(hosts): State<Option<Arc<Hosts>>>, request: Request, next: Next) -> Response {
    let Some(hosts) = hosts else { return next.run(request).await };
    let fields = request.headers().get_all(HOST).iter().map(|value| value.to_str().unwrap_or_default());
    let named: Vec<&str> =
        request.uri().authority().map(Authority::as_str).into_iter().chain(fields).collect();
    if !named.is_empty() && named.iter().all(|name| hosts.include(name)) {
        return next.run(request).await;
    }
    if matches!(request.uri().path(), "/livez" | "/readyz") {
        // Balancers and orchestrators look at the status only. A page of another site gets no more.
        return next.run(request).await.status().into_response();
    }
    let detail = match named.iter().find(|name| !hosts.include(name)) {
        Some(name) => {
            let name: String = name.chars().take(MAX_SHOWN).collect();
            format!(
                "this server is not known as {name}, only as localhost and by the names that who runs it allows (allowed-hosts)"
            )
        }
        None => "the request does not say which host it is for".into(),
    };
    Problem::new(Code::Misdirected, detail).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_and_of_the_settings_are_answered() {
        let hosts = Hosts::new(vec![host_name("Hush.Example").unwrap(), host_name("[2001:db8::1]").unwrap()]);
        for name in [
            "localhost",
            "LOCALHOST:7700",
            "localhost.",
            "a.localhost:1",
            "127.0.0.1",
            "127.0.0.1:7700",
            "127.8.8.8:1",
            "[::1]",
            "[::1]:7700",
            "[::ffff:127.0.0.1]",
            "hush.example",
            "hush.example.:443",
            "[2001:db8::1]:80",
        ] {
            assert!(hosts.include(name), "{name}");
        }
        for name in [
            "",
            ":7700",
            "evil.example",
            "localhost.evil.example",
            "notlocalhost",
            "127.0.0.1.evil.example",
            "0.0.0.0",
            "[::]",
            "10.0.0.1",
            "evil.example@localhost",
            "localhost@evil.example",
            "localhost evil",
            "a.hush.example",
            "127.1",
        ] {
            assert!(!hosts.include(name), "{name}");
        }
        for name in ["", "a:80", "https://a", "a/b", "a@b", "a b"] {
            assert!(host_name(name).is_err(), "{name}");
        }
    }
}
