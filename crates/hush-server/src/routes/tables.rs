//! `GET /v1/tables`, `GET /v1/tables/{table}`: what is served here.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{
        HeaderMap, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE, ETAG},
    },
    response::{IntoResponse, Response},
};
use hush_protocol::Name;
use serde::Serialize;

use super::{TableName, is_not_modified, resident};
use crate::{
    access::{caller::Caller, tokens::Scope},
    problem::Problem,
    state::Server,
    tables::TableSlot,
};

/// The list of tables.
#[derive(Serialize)]
pub(super) struct List {
    tables: Vec<TableEntry>,
}

/// One table of the list. One that is not resident has a name, and a reason if it failed.
#[derive(Serialize)]
pub(super) struct TableEntry {
    name: Name,
    state: &'static str,
    epoch: Option<String>,
    protocol: Option<String>,
    records: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Returns the tables that the caller may look up, by name.
pub(super) async fn list(State(server): State<Arc<Server>>, caller: Caller) -> Json<List> {
    Json(List { tables: entries(&server, &caller, Scope::Query) })
}

/// Returns the tables with which the caller may do what `scope` is for.
pub(super) fn entries(server: &Server, caller: &Caller, scope: Scope) -> Vec<TableEntry> {
    let without_table =
        |name, state, reason| TableEntry { name, state, epoch: None, protocol: None, records: None, reason };
    let entry = |(name, slot)| match slot {
        TableSlot::Loading => without_table(name, "loading", None),
        TableSlot::Failed(reason) => without_table(name, "failed", Some(reason.to_string())),
        TableSlot::Resident(table) => TableEntry {
            name,
            state: "resident",
            epoch: Some(hex::encode(table.served().epoch)),
            protocol: Some(table.served().protocol.clone()),
            records: Some(table.served().records),
            reason: None,
        },
    };
    server.tables.all().into_iter().filter(|(name, _)| caller.may(scope, name)).map(entry).collect()
}

/// One table's descriptor. It changes with the epoch, so the epoch is its entity tag.
pub(super) async fn descriptor(
    State(server): State<Arc<Server>>,
    caller: Caller,
    name: TableName,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (table, _) = resident(&server, &caller, name)?;
    let etag = format!("\"{}\"", hex::encode(table.served().epoch));
    let not_modified = is_not_modified(&headers, &etag);
    let caching = [(CACHE_CONTROL, "no-cache".to_owned()), (ETAG, etag)];
    if not_modified {
        return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
    }
    let content_type = [(CONTENT_TYPE, "application/json")];
    Ok((caching, content_type, table.descriptor.clone()).into_response())
}
