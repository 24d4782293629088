//! `GET /livez`, `GET /readyz`, `GET /info`: for orchestrators, and for who runs the server.

use std::{
    fs::File,
    sync::{Arc, OnceLock},
};

use axum::{Json, extract::State};
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::tables::{Entry, entries};
use crate::{
    caller::Caller,
    problem::{Code, Problem},
    state::Server,
    tokens::Scope,
};

/// The process answers.
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Every table is resident, none has failed or lost its GPU, and the server is not stopping.
/// Of what does not keep queries from being answered, the text has a line each.
pub(super) async fn ready(State(server): State<Arc<Server>>) -> Result<String, Problem> {
    let upkeep = server.tables.upkeep();
    if let Some((table, reason)) = server.tables.lost() {
        let detail = format!("the GPU of table {table} has failed; start the server again: {reason}");
        return Err(Problem::new(Code::DeviceLost, detail));
    }
    if let Some((table, reason)) = server.tables.failed() {
        return Err(Problem::table_failed(&table, &reason));
    }
    if let Some(task) = upkeep.down() {
        return Err(Problem::warming(&format!("the task {task} has failed, and is being started again")));
    }
    if server.is_stopping() || server.tables.any_loading() {
        return Err(Problem::warming("loading, or stopping"));
    }
    let degraded = upkeep.degraded().into_iter().map(|line| format!("degraded: {line}\n"));
    Ok("ok\n".to_owned() + &degraded.collect::<String>())
}

/// What runs here.
#[derive(Serialize)]
pub(super) struct Info {
    version: &'static str,
    /// BLAKE3 of the program, in hex; null if it cannot be read.
    program: Option<&'static str>,
    tables: Vec<Entry>,
}

/// Returns version, program, tables and epochs: of the tables, those that the caller operates.
pub(super) async fn info(State(server): State<Arc<Server>>, caller: Caller) -> Json<Info> {
    let program = spawn_blocking(program).await.unwrap_or(None);
    Json(Info {
        version: env!("CARGO_PKG_VERSION"),
        program,
        tables: entries(&server, &caller, Scope::Admin),
    })
}

/// The hash of the program that runs, also where another one has taken its place on disk.
fn program() -> Option<&'static str> {
    static HASH: OnceLock<Option<String>> = OnceLock::new();
    let hash = || {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open("/proc/self/exe").ok()?).ok()?;
        Some(hasher.finalize().to_hex().to_string())
    };
    HASH.get_or_init(hash).as_deref()
}
