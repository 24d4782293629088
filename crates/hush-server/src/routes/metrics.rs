//! `GET /metrics`: Prometheus.

use std::sync::Arc;

use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};

use crate::{metrics, problem::Problem, state::Server};

/// All metrics, as text.
pub(super) async fn text(State(server): State<Arc<Server>>) -> Result<Response, Problem> {
    let text = server.metrics.encode().map_err(|_| Problem::internal())?;
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}
