//! `GET /metrics`: Prometheus.

use std::sync::Arc;

use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};

use tokio::task::spawn_blocking;

use crate::{
    access::{caller::Caller, tokens::Scope},
    metrics::{self, collected::program},
    problem::{Code, Problem},
    state::Server,
};

/// Returns all metrics, as text, to a caller that operates all tables.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/metrics", operation_id = "metrics",
    responses((status = 200, description = "OpenMetrics text.", body = String,
        content_type = "application/openmetrics-text"))))]
pub(super) async fn text(State(server): State<Arc<Server>>, caller: Caller) -> Result<Response, Problem> {
    if !caller.may_all(Scope::Admin) {
        return Err(Problem::new(
            Code::Forbidden,
            "the metrics are of all tables, and the token is for some",
        ));
    }
    // A metric has the hash of the program, for which the whole program is read once.
    let _ = spawn_blocking(program).await;
    // Counts the tables that are stale now, and the parts whose state is unknown.
    server.tables.upkeep().degraded();
    server.tables.parts().down();
    let text = server.metrics.encode().map_err(|_| Problem::internal())?;
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}
