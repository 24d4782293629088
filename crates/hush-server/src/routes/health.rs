//! `GET /livez`, `GET /readyz`: for orchestrators.

use std::sync::Arc;

use axum::extract::State;

use crate::{problem::Problem, state::Server};

/// The process answers.
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Every table is resident and the server is not stopping.
pub(super) async fn ready(State(server): State<Arc<Server>>) -> Result<&'static str, Problem> {
    if server.is_ready() { Ok("ok\n") } else { Err(Problem::warming("loading, or stopping")) }
}
