//! `GET /v1/tables`, `GET /v1/tables/{table}`: the tables of this server.

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
use serde_json::value::RawValue;

use super::{TableName, is_not_modified, resident};
use crate::{
    access::{caller::Caller, tokens::Scope},
    problem::Problem,
    state::Server,
    tables::TableSlot,
};

/// The list of tables.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Tables))]
pub(super) struct List {
    tables: Vec<TableEntry>,
    /// The descriptor of the only table, as `GET /v1/tables/{table}` has it: it spares clients a round trip. Absent if it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    descriptor: Option<Box<RawValue>>,
}

/// The longest descriptor that comes with the list, in bytes: with the list it fits in the first flight of TCP, of 14,600.
const MAX_LISTED_DESCRIPTOR: usize = 12 << 10;

/// A table of the list. One that is not resident has a name, and a reason if it failed.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Table))]
pub(super) struct TableEntry {
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::Name))]
    name: Name,
    /// `resident`, `loading` or `failed`.
    state: &'static str,
    /// The hash of what is in the table, in hex.
    epoch: Option<String>,
    protocol: Option<String>,
    records: Option<u64>,
    /// Why the table failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Returns the tables that the caller may look up, by name.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/tables", operation_id = "listTables",
    responses((status = 200, description = "All of them, or those that the token is for.", body = List))))]
pub(super) async fn list(State(server): State<Arc<Server>>, caller: Caller) -> Json<List> {
    let tables = entries(&server, &caller, Scope::Query);
    let only = match tables.as_slice() {
        [only] => server.tables.slot(&only.name).map(|(slot, _)| slot),
        _ => None,
    };
    let descriptor = match only {
        Some(TableSlot::Resident(table)) => {
            let json = &*table.descriptor_value;
            (json.get().len() <= MAX_LISTED_DESCRIPTOR).then(|| json.to_owned())
        }
        _ => None,
    };
    Json(List { tables, descriptor })
}

/// Returns the tables with which the caller may do what `scope` is for.
pub(super) fn entries(server: &Server, caller: &Caller, scope: Scope) -> Vec<TableEntry> {
    let without_table =
        |name, state, reason| TableEntry { name, state, epoch: None, protocol: None, records: None, reason };
    let mut entries = Vec::new();
    for (name, slot) in server.tables.all() {
        if !caller.may(scope, &name) {
            continue;
        }
        entries.push(match slot {
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
        });
    }
    entries
}

/// Returns a table's descriptor: all that a client needs to make queries. It changes with the epoch, which is its entity tag.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/tables/{table}", operation_id = "getDescriptor",
    responses(
        (status = 200, description = "The descriptor: docs/reference/file-formats.md.", body = Object, headers(("ETag" = String, description = "The epoch."))),
        (status = 304, description = "It is still the same."))))]
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
