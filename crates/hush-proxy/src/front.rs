//! The HTTP server of the front door: it listens on the loopback, and answers only those who ask for it by its own names.

use std::{collections::BTreeMap, future::Future, io, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::{Bytes, to_bytes},
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN},
        request::Parts,
    },
    response::{IntoResponse, Response},
};
use tokio::net::TcpListener;

use crate::{
    config::{ConfigError, ProxyConfig, is_own_host, wrong},
    routes::Routes,
    rpc::Rpc,
    tables::{NoAnswer, PrivateTable},
};

/// The most bytes of the body of a request.
const MAX_BODY: usize = 1 << 20;

/// A front door that can be opened.
pub struct FrontDoor {
    listen: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    hosts: Vec<String>,
    routes: Routes,
    rpcs: BTreeMap<String, Rpc>,
}

impl FrontDoor {
    /// Prepares what the settings say, and starts to open the tables.
    ///
    /// # Errors
    /// [`ConfigError`] names the setting that cannot be used.
    pub fn new(config: ProxyConfig) -> Result<Self, ConfigError> {
        let ProxyConfig { listen, hosts, tables, route, rpc } = config;
        let tables = tables
            .iter()
            .map(|(name, settings)| Ok((name.clone(), PrivateTable::start(name, settings)?)))
            .collect::<Result<BTreeMap<_, _>, ConfigError>>()?;
        let mut rpcs = BTreeMap::new();
        for settings in rpc {
            let path = settings.post.clone();
            if rpcs.insert(path.clone(), Rpc::new(settings, &tables)?).is_some() {
                return Err(wrong(format!("rpc {path}"), "it is there twice"));
            }
        }
        let routes = Routes::new(route, &tables)?;
        Ok(Self { listen, shared: Arc::new(Shared { hosts, routes, rpcs }) })
    }

    /// Listens at the address of the settings.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn listen(&self) -> io::Result<TcpListener> {
        TcpListener::bind(self.listen).await
    }

    /// Answers requests until `shutdown` ends, and then what is in flight.
    ///
    /// # Errors
    /// The listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let router = Router::new().fallback(answer).with_state(self.shared);
        axum::serve(listener, router).with_graceful_shutdown(shutdown).await
    }
}

/// Answers a request. Requests for other hosts come from pages that had their own name lead here; those with an origin come from
/// pages of a browser, which have no business here.
async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if !is_meant(&parts, &shared.hosts) {
        return refused(
            StatusCode::MISDIRECTED_REQUEST,
            "this is no name of the front door: ask for localhost, or add it to hosts",
        );
    }
    if parts.headers.contains_key(ORIGIN) {
        return refused(StatusCode::FORBIDDEN, "pages of a browser are not answered");
    }
    let path = parts.uri.path();
    if let Some(rpc) = shared.rpcs.get(path) {
        if parts.method != Method::POST {
            return wrong_method("POST");
        }
        return match to_bytes(body, MAX_BODY).await {
            Ok(body) => rpc.answer(&parts.headers, body).await,
            Err(_) => refused(StatusCode::PAYLOAD_TOO_LARGE, "a body has at most 1 MiB"),
        };
    }
    match shared.routes.find(path) {
        None => refused(StatusCode::NOT_FOUND, "no route has this path"),
        Some(_) if parts.method != Method::GET && parts.method != Method::HEAD => wrong_method("GET, HEAD"),
        Some(found) => found.answer(parts.uri.query().unwrap_or_default()).await,
    }
}

/// Returns whether a request is for this front door. HTTP/2 has the host in the target, and HTTP/1.1 may.
fn is_meant(parts: &Parts, own: &[String]) -> bool {
    let named = parts.headers.get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let hosts: Vec<&str> = named.chain(parts.uri.authority().map(|authority| authority.as_str())).collect();
    !hosts.is_empty() && hosts.into_iter().all(|host| is_own_host(host, own))
}

fn wrong_method(allowed: &'static str) -> Response {
    let mut response = refused(StatusCode::METHOD_NOT_ALLOWED, "the path has another method");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Returns a response of the front door's own, with a line of text.
pub(crate) fn refused(status: StatusCode, why: &str) -> Response {
    respond(status.as_u16(), "text/plain; charset=utf-8", format!("{why}\n"))
}

/// Returns a response. What it says may be private, so that no cache on the way may keep it.
pub(crate) fn respond(status: u16, content_type: &str, body: impl Into<Bytes>) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(content_type) = HeaderValue::from_str(content_type) {
        headers.insert(CONTENT_TYPE, content_type);
    }
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, headers, body.into()).into_response()
}

impl NoAnswer {
    /// Returns the status of a response, and why there is no answer.
    pub(crate) fn told(&self) -> (StatusCode, &str) {
        match self {
            Self::Key(why) => (StatusCode::BAD_REQUEST, why),
            Self::Server(why) => (StatusCode::BAD_GATEWAY, why),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "too many look-ups wait: try again"),
        }
    }
}
