//! The endpoints: one file each, put together here.

mod admin;
mod blobs;
mod gate;
mod gateway;
mod health;
mod host;
mod keys;
mod metrics;
#[cfg(feature = "openapi")]
pub mod openapi;
mod origins;
mod page;
mod query;
mod relay;
mod tables;

use std::sync::Arc;

use axum::{
    Router,
    extract::{MatchedPath, Path, Request, State, rejection::PathRejection},
    http::{
        HeaderMap,
        header::{CONTENT_TYPE, IF_NONE_MATCH},
    },
    middleware::{self, Next},
    response::Response,
    routing::{get, head, post},
};

use hush_protocol::{Name, ohttp::GATEWAY_PATH};
use tokio::time::Instant;
use tracing::{Instrument, field::Empty};

pub(crate) use self::{host::Hosts, origins::Origins};
pub use self::{host::host_name, origins::origin};
use crate::{
    access::{caller::Caller, client::ClientAddress, tokens::Scope},
    metrics::known,
    problem::{Code, Problem},
    relay::Uplink,
    state::{ResidentTable, Server},
    tables::TableSlot,
};

/// The purpose of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoints {
    All,
    /// Everything but health and metrics.
    Tables,
    Health,
    Admin,
    /// The endpoints of a relay, which has no tables.
    Relay,
}

/// Returns the endpoints of a listener, for pages of `origins`. `hosts` are the names to which the listener answers, if these are
/// limited.
pub(crate) fn router(
    server: Arc<Server>,
    endpoints: Endpoints,
    hosts: Option<Arc<Hosts>>,
    origins: Option<Arc<Origins>>,
) -> Router {
    let mut router = Router::new();
    if endpoints == Endpoints::Admin {
        router = router
            .route("/v1/admin/tables/{table}/reload", post(admin::reload))
            .route("/v1/admin/tables/{table}/compact", post(admin::compact))
            .route("/v1/admin/tables/{table}/changes", post(admin::changes))
            .route("/v1/admin/tables", get(admin::kept))
            .route("/v1/admin/tasks", get(admin::tasks).post(admin::submit))
            .route("/v1/admin/tasks/{id}", get(admin::task))
            .route("/v1/admin/tasks/{id}/cancel", post(admin::cancel))
            .route("/v1/admin/uploads", post(admin::begin_upload))
            .route(
                "/v1/admin/uploads/{id}",
                get(admin::upload).patch(admin::append).delete(admin::remove_upload),
            );
    }
    if matches!(endpoints, Endpoints::All | Endpoints::Tables) {
        router = router.merge(of_tables());
        if let Some(gateway) = server.gateway.clone() {
            // A sealed request may name any server.
            let endpoints = finished(of_tables(), &server, Endpoints::Tables, None, None);
            let inside = gateway::Inside { server: server.clone(), gateway, endpoints };
            let own = get(gateway::key).post(gateway::answer).with_state(inside);
            router = router.route(GATEWAY_PATH, own);
        }
        if let Some(page) = server.page.clone() {
            let planned = (server.clone(), page.clone());
            router = router
                .route("/", get(page::index).with_state(page.clone()))
                .route("/page/{*path}", get(page::asset).with_state(page))
                .route("/v1/tables/{table}/plan", get(page::plan).with_state(planned));
        }
    }
    if matches!(endpoints, Endpoints::All | Endpoints::Health) {
        router = router
            .route("/livez", get(health::live))
            .route("/readyz", get(health::ready))
            .route("/info", get(health::info))
            .route("/metrics", get(metrics::text));
    }
    finished(router, &server, endpoints, hosts, origins)
}

/// Returns the routes for clients.
fn of_tables() -> Router<Arc<Server>> {
    Router::new()
        .route("/v1/tables", get(tables::list))
        .route("/v1/tables/{table}", get(tables::descriptor))
        .route("/v1/tables/{table}/query", post(query::answer))
        .route("/v1/blobs/{hash}", get(blobs::download))
        .route("/v1/keys/{hash}", head(keys::contains).put(keys::upload))
}

/// Returns the endpoints of a relay.
pub(crate) fn relay_router(
    server: Arc<Server>,
    uplink: Arc<dyn Uplink>,
    origins: Option<Arc<Origins>>,
) -> Router {
    let own = get(relay::keys).post(relay::pass_on).with_state(relay::Relay::new(server.clone(), uplink));
    finished(Router::new().route("/", own), &server, Endpoints::Relay, None, origins)
}

/// Adds the checks and records that all endpoints share.
fn finished(
    router: Router<Arc<Server>>,
    server: &Arc<Server>,
    endpoints: Endpoints,
    hosts: Option<Arc<Hosts>>,
    origins: Option<Arc<Origins>>,
) -> Router {
    router
        .fallback(async || Problem::new(Code::NotFound, "there is no such endpoint"))
        .method_not_allowed_fallback(async || {
            Problem::new(Code::MethodNotAllowed, "the endpoint does not take this method")
        })
        .layer(middleware::from_fn_with_state((server.clone(), endpoints), gate::enter))
        .layer(middleware::from_fn_with_state((origins, endpoints), origins::check))
        .layer(middleware::from_fn_with_state(hosts, host::check))
        .layer(middleware::from_fn_with_state(server.clone(), observe))
        .with_state(server.clone())
}

/// Counts, logs and traces a request: the template of its route, but neither its bytes nor its sender. A client cannot make a
/// request a part of another trace.
async fn observe(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or("other", MatchedPath::as_str);
    let known = known(&method);
    let span = tracing::info_span!(
        "request",
        otel.name = format_args!("{known} {route}"),
        otel.kind = "server",
        http.request.method = known,
        http.route = route,
        http.response.status_code = Empty,
        otel.status_code = Empty,
    );
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    // A span has no other numbers than i64.
    span.record("http.response.status_code", i64::from(status));
    if status >= 500 {
        span.record("otel.status_code", "ERROR");
    }
    let elapsed = started.elapsed();
    server.metrics.request(&method, route, status, elapsed);
    tracing::debug!(%method, route, status, ?elapsed, "request");
    response
}

/// The name of a table in a path.
type TableName = Result<Path<Name>, PathRejection>;

/// Returns the resident table that a path names, and its replaced epochs that still answer, for a caller that may look it up.
/// Fails with `unknown_table`, `forbidden`, `warming` or `table_failed`.
fn resident(
    server: &Server,
    caller: &Caller,
    name: TableName,
) -> Result<(Arc<ResidentTable>, Vec<Arc<ResidentTable>>), Problem> {
    let Path(name) = name.map_err(|_| Problem::unknown_table())?;
    caller.check(Scope::Query, &name)?;
    match server.tables.slot(&name) {
        None => Err(Problem::unknown_table()),
        Some((TableSlot::Loading, _)) => Err(Problem::warming("the table is still loading")),
        Some((TableSlot::Failed(reason), _)) => Err(Problem::table_failed(&name, &reason)),
        Some((TableSlot::Resident(table), replaced)) => Ok((table, replaced)),
    }
}

/// Returns whether `If-None-Match` lists `etag`, or anything.
fn is_not_modified(headers: &HeaderMap, etag: &str) -> bool {
    let values = headers.get_all(IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// Counts a request towards the queries of its client. Fails with `throttled` if the client has none left.
fn admit(server: &Server, client: ClientAddress) -> Result<(), Problem> {
    server
        .buckets
        .as_ref()
        .map_or(Ok(()), |buckets| buckets.admit(client, Instant::now()).map_err(Problem::throttled))
}

/// Refuses, with `unsupported_media_type`, a body whose content type is not `expected`.
fn check_content_type(headers: &HeaderMap, expected: &str) -> Result<(), Problem> {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = value.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case(expected) {
        return Ok(());
    }
    Err(Problem::new(Code::UnsupportedMediaType, format!("the content type must be {expected}")))
}
