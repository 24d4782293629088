//! Requests over HTTP/1.1, sent one after another on the thread of the call.

use std::io::{self, Read};

use hush_protocol::wording::Wording;
use ureq::{
    Agent, Body, Proxy, Timeout,
    http::{Response, Uri},
    tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem},
    unversioned::{
        resolver::DefaultResolver,
        transport::{ConnectProxyConnector, Connector, RustlsConnector, TcpConnector},
    },
};

use super::{
    BearerToken, Cancel, HttpError, HttpOptions, TlsIdentity, TlsOptions,
    call::{Calling, Leaving, in_time, set_time_left, wait},
};
use crate::session::{self, Action, Head, Method, Request, ServerUrl, Task, TransportFailure};

/// Error names of the TLS library, and what they mean.
const TLS_FAILURES: [(&str, Wording); 4] = [
    (
        "InvalidContentType",
        Wording("what answers there speaks http, not https: the URL may have to begin with http://"),
    ),
    ("CertificateRequired", Wording("the server asks clients for a certificate: {client-cert}")),
    (
        "CaUsedAsEndEntity",
        Wording(
            "the server's own certificate is that of an authority, which signs others and is no server's: its operator must make one \
         with basicConstraints=critical,CA:FALSE, or have the authority sign one",
        ),
    ),
    ("UnknownIssuer", Wording("nobody that is trusted has signed the server's certificate")),
];

/// The header that closes a connection after its response.
pub(super) const CLOSE: (&str, &str) = ("Connection", "close");
/// The number of bytes read from the network at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// The connection of a client to its server or relay.
#[derive(Clone)]
pub(super) struct Transport {
    agent: Agent,
    /// The URL of the server, or of the relay before it.
    url: ServerUrl,
    /// The token for the server. `None` with a relay, because sealed requests contain it.
    token: Option<BearerToken>,
    /// Whether the last request of a call closes the connection.
    closes: bool,
}

impl Transport {
    /// Creates the transport. It does not connect yet.
    ///
    /// # Errors
    /// [`HttpError`] if an option is invalid.
    pub(super) fn new(url: &ServerUrl, options: &HttpOptions) -> Result<Self, HttpError> {
        let (peer, token) = match &options.relay {
            Some(relay) => (ServerUrl::parse(&relay.url)?, None),
            None => {
                check_token(url, options)?;
                (url.clone(), options.token.clone())
            }
        };
        let agent = agent_for(&peer, options)?;
        Ok(Self { agent, url: peer, token, closes: options.closes })
    }

    /// Executes the actions of `task` until it is done or cancelled.
    pub(super) fn drive<T>(
        &self,
        mut task: Task<'_, Result<T, HttpError>>,
        cancel: &Cancel,
    ) -> Result<T, HttpError> {
        let _calling = Calling::begin(cancel);
        loop {
            if cancel.is_cancelled() {
                return Err(HttpError::Cancelled);
            }
            match task.advance() {
                Action::Send(request) => self.exchange(&mut task, request),
                Action::Wait(time) => wait(time, cancel),
                Action::Done(result) => return result,
            }
        }
    }

    fn exchange<T>(&self, task: &mut Task<'_, T>, request: Request) {
        set_time_left(request.time_left);
        let response = match self.send(request) {
            Ok(response) => response,
            Err(error) => return task.fail(failure(&self.url, error)),
        };
        let mut more = task.begin(head(&response));
        let mut reader = response.into_body().into_reader();
        let mut chunk = vec![0; CHUNK_BYTES];
        while more {
            match reader.read(&mut chunk) {
                Ok(0) => return task.end(),
                Ok(count) => more = task.body(&chunk[..count]),
                Err(error) => return task.fail(failure(&self.url, error.into())),
            }
        }
    }

    fn send(&self, request: Request) -> Result<Response<Body>, ureq::Error> {
        let Request { method, path, headers, body, is_last, .. } = request;
        let url = format!("{}{path}", self.url.as_str());
        let token = self.token.as_ref().map(BearerToken::header);
        let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
        let headers = headers.chain(token.iter().map(|token| ("Authorization", token.as_str())));
        let headers = headers.chain((self.closes && is_last).then_some(CLOSE));
        let with_body = match method {
            Method::Get => {
                let request = in_time(self.agent.get(url));
                return headers.fold(request, |request, (name, value)| request.header(name, value)).call();
            }
            Method::Post => self.agent.post(url),
            Method::Put => self.agent.put(url),
        };
        headers.fold(in_time(with_body), |request, (name, value)| request.header(name, value)).send(body)
    }
}

/// Returns an agent that connects to `url`, for requests that are not look-ups.
///
/// # Errors
/// [`HttpError`] if the URL or an option is invalid.
pub fn agent(url: &str, options: &HttpOptions) -> Result<Agent, HttpError> {
    let url = ServerUrl::parse(url)?;
    check_token(&url, options)?;
    agent_for(&url, options)
}

/// Returns the reason why a request to `url` failed, for a user of [`agent`].
pub fn why_failed(url: &str, error: ureq::Error) -> String {
    ServerUrl::parse(url).map_or_else(|url| url.to_string(), |url| failure(&url, error).to_string())
}

/// Returns the error of a response that a proxy sent, or that is a redirect. Returns `None` for a response of the server.
pub fn on_the_way(url: &str, path: &str, sent: usize, response: &Response<Body>) -> Option<HttpError> {
    session::on_the_way(&ServerUrl::parse(url).ok()?, path, sent, &head(response))
}

/// Refuses a token over `http`, except to this machine.
fn check_token(url: &ServerUrl, options: &HttpOptions) -> Result<(), HttpError> {
    let is_open = options.token.is_some() && !url.is_https() && !url.is_loopback();
    if is_open { Err(HttpError::TokenInTheOpen) } else { Ok(()) }
}

/// Returns an agent that connects to `url`.
pub(super) fn agent_for(url: &ServerUrl, options: &HttpOptions) -> Result<Agent, HttpError> {
    let silence = options.timeout.unwrap_or(options.silence_timeout);
    let mut config = Agent::config_builder()
        .tls_config(tls(url, &options.tls)?)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("hushdb/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(options.timeout.unwrap_or(options.connect_timeout)))
        .timeout_per_read(Some(silence))
        .timeout_per_write(Some(silence));
    config = config.proxy(proxy(url));
    let connector =
        ().chain(ConnectProxyConnector::default())
            .chain(TcpConnector::default())
            .chain(Leaving)
            .chain(RustlsConnector::default());
    Ok(Agent::with_parts(config.build(), connector, DefaultResolver::default()))
}

/// Returns the proxy of the environment through which connections to `url` go.
fn proxy(url: &ServerUrl) -> Option<Proxy> {
    // The proxy is another machine, so it cannot reach the loopback of this one.
    let proxy = Proxy::try_from_env().filter(|_| !url.is_loopback())?;
    let is_left_out = url.as_str().parse::<Uri>().is_ok_and(|url| proxy.is_no_proxy(&url));
    (!is_left_out).then_some(proxy)
}

/// Returns the certificates by which the server and this client authenticate.
fn tls(url: &ServerUrl, options: &TlsOptions) -> Result<TlsConfig, HttpError> {
    let refused = |reason: String| HttpError::Certificates { reason };
    if options.is_insecure && !url.is_loopback() {
        let reason = Wording(
            "without a check of its certificate, anyone on the way could be the server: {insecure=true} is for \
                      this machine's loopback alone, and {ca-cert} for a certificate of your own",
        );
        return Err(refused(reason.to_string()));
    }
    let roots = match &options.ca_cert {
        // Android's own roots are behind its JVM, and the platform verifier panics without access to that. So this uses
        // Mozilla's roots, as of the build.
        None if cfg!(target_os = "android") => RootCerts::WebPki,
        None => RootCerts::PlatformVerifier,
        Some(pem) => RootCerts::new_with_certs(&certificates(pem).map_err(refused)?),
    };
    let identity = options.identity.as_ref().map(|TlsIdentity { cert, key }| {
        let key = PrivateKey::from_pem(key).map_err(|_| "the client's key is no private key in PEM")?;
        Ok(ClientCert::new_with_certs(&certificates(cert)?, key))
    });
    let identity = identity.transpose().map_err(refused)?;
    let config = TlsConfig::builder().root_certs(roots).client_cert(identity);
    Ok(config.disable_verification(options.is_insecure).build())
}

/// Returns the certificates of a PEM text, at least one.
fn certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>, String> {
    let found = parse_pem(pem).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
        Ok(_) => None,
        Err(error) => Some(Err(error.to_string())),
    });
    let found = found.collect::<Result<Vec<_>, _>>()?;
    if found.is_empty() { Err("there is no certificate in PEM".into()) } else { Ok(found) }
}

fn head(response: &Response<Body>) -> Head {
    Head {
        status: response.status().as_u16(),
        headers: response
            .headers()
            .iter()
            .map(|(name, value): (&ureq::http::HeaderName, &ureq::http::HeaderValue)| {
                (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect(),
        body_bytes: response.body().content_length(),
    }
}

/// Returns the reason why a request to `url` failed.
pub(super) fn failure(url: &ServerUrl, error: ureq::Error) -> TransportFailure {
    // The variable may contain a user's name and password, which this text leaves out.
    let proxy = proxy(url).map(|proxy| {
        format!(
            "the proxy {}:{}, which HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names",
            proxy.host(),
            proxy.port()
        )
    });
    let through = proxy.as_ref().map_or(String::new(), |proxy| format!("; through {proxy}"));
    let unreachable = |reason: String, transient| TransportFailure::Unreachable {
        reason: format!("{reason}{through}"),
        transient,
    };
    let timeout = |phase: &str| TransportFailure::Timeout { phase: format!("{phase}{through}") };
    match error {
        ureq::Error::Timeout(Timeout::Global) => timeout("the time of the call is over"),
        ureq::Error::Timeout(Timeout::Resolve) => timeout("its name was not resolved"),
        ureq::Error::Timeout(Timeout::Connect) => timeout("no connection was made"),
        ureq::Error::Timeout(_) => timeout("nothing came or went for too long"),
        ureq::Error::Rustls(error) => no_tls(&error.to_string()),
        ureq::Error::Tls(reason) => TransportFailure::Tls { reason: reason.into() },
        // A stream reports a failed handshake, or a record that does not decrypt, like this.
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => no_tls(&error.to_string()),
        ureq::Error::Io(error) => unreachable(error.to_string(), true),
        ureq::Error::HostNotFound => unreachable("no such host".into(), false),
        ureq::Error::ConnectProxyFailed(said) => TransportFailure::Proxy {
            reason: format!("{} ({said}): {}", proxy.unwrap_or_default(), proxy_advice(&said)),
        },
        error @ ureq::Error::ConnectionFailed => unreachable(error.to_string(), false),
        error => TransportFailure::Odd { reason: error.to_string() },
    }
}

/// Returns the remedy for a proxy that does not connect.
fn proxy_advice(said: &str) -> &'static str {
    if said.contains("407") {
        "it wants a user and a password, as in http://USER:PASSWORD@HOST:PORT"
    } else {
        "ask its operator to let connections to the server pass, or name the server in NO_PROXY"
    }
}

/// Returns the error of the TLS library, or its explanation if there is one.
fn no_tls(said: &str) -> TransportFailure {
    let explained = TLS_FAILURES.iter().find(|(name, _)| said.contains(name));
    TransportFailure::Tls { reason: explained.map_or_else(|| said.into(), |(_, reason)| reason.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_over_tls_or_stays_on_this_machine() {
        let with_token = HttpOptions { token: Some("token".parse().unwrap()), ..HttpOptions::default() };
        for (url, is_allowed) in [
            ("http://192.0.2.1", false),
            ("http://hush.example:80/a", false),
            ("https://hush.example", true),
            ("http://localhost:7700", true),
            ("http://[::1]", true),
        ] {
            let refused = matches!(agent(url, &with_token), Err(HttpError::TokenInTheOpen));
            assert_eq!(refused, !is_allowed, "{url}");
            assert!(agent(url, &HttpOptions::default()).is_ok(), "{url}");
        }
    }

    #[test]
    fn only_this_machine_may_have_any_certificate() {
        let tls = TlsOptions { is_insecure: true, ..TlsOptions::default() };
        let options = HttpOptions { tls, ..HttpOptions::default() };
        assert!(matches!(agent("https://hush.example", &options), Err(HttpError::Certificates { .. })));
        assert!(agent("https://127.0.0.1:7700", &options).is_ok());
    }
}
