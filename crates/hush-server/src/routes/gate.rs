//! The first check of a request: its token, before anything else is done. The [`Caller`] decides about a table, once the table is
//! known.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Method,
        header::{AUTHORIZATION, CONTENT_LENGTH, WWW_AUTHENTICATE},
    },
    middleware::Next,
    response::{IntoResponse, Response},
};

use hush_protocol::ohttp::GATEWAY_PATH;
use hyper::body::Body as _;

use super::{Endpoints, page};
use crate::{
    access::{
        caller::Caller,
        tokens::{Refusal, Scope},
    },
    problem::{Code, Problem},
    state::Server,
};

/// Passes a request with a valid token on, with its [`Caller`] attached. Passes every request on if the listener asks for no
/// token.
pub(super) async fn enter(
    State((server, endpoints)): State<(Arc<Server>, Endpoints)>,
    mut request: Request,
    next: Next,
) -> Response {
    if endpoints == Endpoints::Admin && is_from_a_page(request.headers()) {
        return Problem::new(Code::Forbidden, "the admin endpoints are not for pages in a browser")
            .into_response();
    }
    let tokens = server.tokens.as_ref().filter(|_| endpoints != Endpoints::Health);
    let Some(tokens) = tokens else {
        request.extensions_mut().insert(Caller::anyone());
        return next.run(request).await;
    };
    let Some(scope) = scope(endpoints, request.uri().path(), server.page.is_some()) else {
        return next.run(request).await;
    };
    let header = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
    let grant = match tokens.check(header, scope) {
        Ok(grant) => grant,
        Err(refusal) => return refused(refusal, scope),
    };
    if let Err(seconds) = grant.enter_bytes() {
        return Problem::throttled(seconds).into_response();
    }
    let sent = length(request.headers());
    let is_query = request.method() == Method::POST && scope == Scope::Query;
    let _in_flight = match is_query.then(|| grant.enter()).transpose() {
        Ok(in_flight) => in_flight,
        Err(seconds) => return Problem::throttled(seconds).into_response(),
    };
    tracing::debug!(token = grant.token.id, "accepted a request with a token");
    request.extensions_mut().insert(Caller::holder(grant.clone()));
    let response = next.run(request).await;
    let received = response.body().size_hint().exact().unwrap_or_else(|| length(response.headers()));
    grant.charge_bytes(sent.saturating_add(received));
    response
}

/// Returns the length that a message declares for its body.
fn length(headers: &HeaderMap) -> u64 {
    headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0)
}

/// Returns whether a page in a browser sends the request. Any page that is open on this machine could send requests here.
fn is_from_a_page(headers: &HeaderMap) -> bool {
    ["origin", "sec-fetch-site"].iter().any(|name| headers.contains_key(*name))
}

/// Returns the scope that a request to `path` needs; `None` if it needs no token.
fn scope(endpoints: Endpoints, path: &str, has_page: bool) -> Option<Scope> {
    match endpoints {
        Endpoints::Admin => Some(Scope::Admin),
        Endpoints::Health | Endpoints::Relay => None,
        Endpoints::All | Endpoints::Tables => match path {
            "/livez" | "/readyz" => None,
            // The page must load before it can ask for a token, and holds nothing of a table.
            "/" if has_page => None,
            file if has_page && file.starts_with(page::FILES) => None,
            // The sealed request inside has the token.
            GATEWAY_PATH => None,
            "/metrics" | "/info" => Some(Scope::Admin),
            _ => Some(Scope::Query),
        },
    }
}

fn refused(refusal: Refusal, scope: Scope) -> Response {
    let (code, detail) = match refusal {
        Refusal::Missing => (Code::Unauthorized, "this server asks for a token"),
        Refusal::Unknown => (Code::Unauthorized, "the token is none of this server's"),
        Refusal::Expired => (Code::Unauthorized, "the token has expired"),
        Refusal::Scope => match scope {
            Scope::Query => (Code::Forbidden, "the token is not for this: it needs the scope query"),
            Scope::Admin => (Code::Forbidden, "the token is not for this: it needs the scope admin"),
        },
    };
    let mut response = Problem::new(code, detail).into_response();
    if code == Code::Unauthorized {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
