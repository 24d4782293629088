//! `GET /livez`, `GET /readyz`: for orchestrators.

use std::sync::Arc;

use axum::extract::State;

use crate::{
    problem::{Code, Problem},
    state::Server,
};

/// The process answers.
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Every table is resident, none has failed or lost its GPU, and the server is not stopping.
pub(super) async fn ready(State(server): State<Arc<Server>>) -> Result<&'static str, Problem> {
    if let Some((table, reason)) = server.tables.lost() {
        let detail = format!("the GPU of table {table} has failed; start the server again: {reason}");
        return Err(Problem::new(Code::DeviceLost, detail));
    }
    if let Some((table, reason)) = server.tables.failed() {
        return Err(Problem::table_failed(&table, &reason));
    }
    let is_ready = !server.is_stopping() && !server.tables.any_loading();
    if is_ready { Ok("ok\n") } else { Err(Problem::warming("loading, or stopping")) }
}
