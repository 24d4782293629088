//! `GET /livez`, `GET /readyz`, `GET /info`: for orchestrators and operators.

use std::{sync::Arc, time::Duration};

use axum::{Json, extract::State};
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::tables::{TableEntry, entries};
use crate::{
    access::{caller::Caller, tokens::Scope},
    metrics::collected::program,
    problem::{Code, Problem},
    state::Server,
    tables::parts::PartDown,
};

/// The time after which a client may ask for a part again.
const RETRY: Duration = Duration::from_secs(1);

/// Tells that the process answers.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/livez", operation_id = "live",
    responses((status = 200, description = "Text.", body = String))))]
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Tells whether the server answers queries, and what is wrong although it does.
///
/// Answers 200 once no table is loading, if one is resident or there are none, unless a table has lost its GPU or one of its parts,
/// or the server stops.
/// Each thing that is wrong although queries are answered has a line of the text: a table that has failed, too, unless the setting
/// require-tables makes it a 503.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/readyz", operation_id = "ready",
    responses((status = 200, body = String,
        description = "`ok`, and a line `degraded: ..` for each thing that is wrong although queries are answered: a table that has failed while others answer, a GPU with a copy of a table that has failed while others answer, a background task that failed and was started again, a table that is not known to be up to date."))))]
pub(super) async fn ready(State(server): State<Arc<Server>>) -> Result<String, Problem> {
    let upkeep = server.tables.upkeep();
    if let Some((table, reason)) = server.tables.lost() {
        let detail = format!("the GPU of table {table} has failed; start the server again: {reason}");
        return Err(Problem::new(Code::DeviceLost, detail));
    }
    if let Some(PartDown { table, part, since }) = server.tables.parts().down() {
        let detail =
            format!("part {part} of table {table} has had no live replica for {} s", since.as_secs());
        return Err(Problem::new(Code::PartUnavailable, detail).retry_in(RETRY));
    }
    if let Some(task) = upkeep.down() {
        return Err(Problem::warming(&format!("the task {task} has failed, and is being started again")));
    }
    if server.is_stopping() || server.tables.any_loading() {
        return Err(Problem::warming("loading, or stopping"));
    }
    let failed = server.tables.failed();
    if let Some((table, reason)) = failed.first()
        && (server.config.require_tables || !server.tables.any_resident())
    {
        return Err(Problem::table_failed(table, reason));
    }
    let failed = failed.into_iter().map(|(table, reason)| format!("table {table} is not served: {reason}"));
    let copies = server.tables.degraded();
    let copies = copies.into_iter().map(|(table, reason)| format!("table {table}: {reason}"));
    let degraded = failed.chain(copies).chain(upkeep.degraded()).map(|line| format!("degraded: {line}\n"));
    Ok("ok\n".to_owned() + &degraded.collect::<String>())
}

/// The program that runs here, and its tables.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Info {
    version: &'static str,
    /// BLAKE3 of the program, in hex; null if it cannot be read.
    program: Option<&'static str>,
    tables: Vec<TableEntry>,
}

/// Returns version, program, tables and epochs: of the tables, those that the caller operates.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/info", operation_id = "info",
    responses((status = 200, description = "Version, program, tables.", body = Info))))]
pub(super) async fn info(State(server): State<Arc<Server>>, caller: Caller) -> Json<Info> {
    let program = spawn_blocking(program).await.unwrap_or(None);
    Json(Info {
        version: env!("CARGO_PKG_VERSION"),
        program,
        tables: entries(&server, &caller, Scope::Admin),
    })
}
