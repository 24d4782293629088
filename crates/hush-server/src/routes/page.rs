//! `GET /`, `GET /page/{*path}`, `GET /v1/tables/{table}/plan`: for people with a browser.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{ConnectInfo, Path, State, rejection::PathRejection},
    http::{
        HeaderMap, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, REFERRER_POLICY,
            X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
};
use tokio::task::spawn_blocking;

use super::{TableName, admit, is_not_modified, resident};
use crate::{
    access::caller::Caller,
    page::Page,
    problem::{Code, Problem},
    state::Server,
};

/// The path of the files of the page, except the page itself.
pub(super) const FILES: &str = "/page/";
/// The content security policy: scripts, styles and pictures are this server's own files, no other server is asked, and no other
/// site shows the page. No text becomes markup or a script.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; \
                      style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types hushdb";
const OTHERS: [(&str, &str); 2] =
    [("cross-origin-opener-policy", "same-origin"), ("cross-origin-resource-policy", "same-origin")];

/// Returns the page itself.
pub(super) async fn index(
    State(page): State<Arc<dyn Page>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    file(&*page, "index.html", &headers)
}

/// Returns any other file of the page.
pub(super) async fn asset(
    State(page): State<Arc<dyn Page>>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Ok(Path(path)) = path else { return Err(no_file()) };
    file(&*page, &path, &headers)
}

fn file(page: &dyn Page, path: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    let bytes = page.file(path).ok_or_else(no_file)?;
    let content_type = match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let etag = format!("\"{}\"", blake3::hash(bytes).to_hex());
    let not_modified = is_not_modified(headers, &etag);
    let caching = [(CACHE_CONTROL, "no-cache".to_owned()), (ETAG, etag)];
    let safety = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    let head = (caching, safety, OTHERS);
    Ok(match not_modified {
        true => (StatusCode::NOT_MODIFIED, head).into_response(),
        false => (head, [(CONTENT_TYPE, content_type)], bytes).into_response(),
    })
}

fn no_file() -> Problem {
    Problem::new(Code::NotFound, "the page has no such file")
}

/// Returns the tables that the records of this one could have, as far as its description tells. Where there is a page for browsers.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/tables/{table}/plan", operation_id = "planTable",
    responses((status = 200, description = "Those that no other is better than in everything, and the table itself.",
        body = ref("#/components/schemas/TablePlan")))))]
pub(super) async fn plan(
    State((server, page)): State<(Arc<Server>, Arc<dyn Page>)>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    caller: Caller,
    name: TableName,
) -> Result<Response, Problem> {
    let (table, _) = resident(&server, &caller, name)?;
    admit(&server, peer.ip().into())?;
    let planned = spawn_blocking(move || page.plan(&table.name, table.served())).await;
    let planned = planned.unwrap_or_else(|_| Err("the planner has failed".into()));
    let json = planned.map_err(|reason| Problem::new(Code::NotFound, reason))?;
    Ok(([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache")], json).into_response())
}
