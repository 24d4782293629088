//! `POST /v1/admin/tables/{table}/reload` and `../compact`: for who runs the server, on a listener of their own.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    http::StatusCode,
};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::{
    operator::{Operator, OperatorError},
    problem::{Code, Problem},
    state::Server,
};

type Name = Result<Path<String>, PathRejection>;

/// Takes up what is in the table's folder now; answers when it is served.
pub(super) async fn reload(State(server): State<Arc<Server>>, name: Name) -> Result<Json<Value>, Problem> {
    let epoch = ask(&server, name, |operator, name| operator.reload(name)).await?;
    Ok(Json(json!({ "epoch": hex::encode(epoch) })))
}

/// Begins to fold the table's changes into a new base, which is taken up when it is there.
pub(super) async fn compact(
    State(server): State<Arc<Server>>,
    name: Name,
) -> Result<(StatusCode, Json<Value>), Problem> {
    ask(&server, name, |operator, name| operator.compact(name)).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "state": "begun" }))))
}

async fn ask<T: Send + 'static>(
    server: &Server,
    name: Name,
    what: impl FnOnce(&dyn Operator, &str) -> Result<T, OperatorError> + Send + 'static,
) -> Result<T, Problem> {
    let Path(name) = name.map_err(|_| Problem::unknown_table())?;
    // Without one there is no such endpoint.
    let operator = server.operator.clone().ok_or_else(Problem::internal)?;
    let outcome = spawn_blocking(move || what(&*operator, &name)).await.map_err(|_| Problem::internal())?;
    outcome.map_err(|error| match error {
        OperatorError::UnknownTable => Problem::unknown_table(),
        OperatorError::Refused(reason) => Problem::new(Code::Refused, reason),
    })
}
