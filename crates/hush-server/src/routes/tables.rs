//! `GET /v1/tables`, `GET /v1/tables/{table}`: what is served here.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{Path, State, rejection::PathRejection},
    http::{
        HeaderMap, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE, ETAG},
    },
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::{is_not_modified, resident};
use crate::{problem::Problem, state::Server, tables::Slot, tokens::Grant};

/// The list of tables.
#[derive(Serialize)]
pub(super) struct List {
    tables: Vec<Entry>,
}

/// One table of the list. One that is not resident has a name, and a reason if it failed.
#[derive(Default, Serialize)]
pub(super) struct Entry {
    name: String,
    state: &'static str,
    epoch: Option<String>,
    protocol: Option<String>,
    records: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// All tables, by name; of a token, those that it is for.
pub(super) async fn list(
    State(server): State<Arc<Server>>,
    grant: Option<Extension<Arc<Grant>>>,
) -> Json<List> {
    let is_shown = |name: &str| grant.as_ref().is_none_or(|Extension(grant)| grant.token.is_for(name));
    Json(List { tables: entries(&server, is_shown) })
}

/// The tables whose names are to be shown.
pub(super) fn entries(server: &Server, is_shown: impl Fn(&str) -> bool) -> Vec<Entry> {
    let entry = |(name, slot)| match slot {
        Slot::Loading => Entry { name, state: "loading", ..Entry::default() },
        Slot::Failed(reason) => {
            Entry { name, state: "failed", reason: Some(reason.to_string()), ..Entry::default() }
        }
        Slot::Resident(table) => Entry {
            name,
            state: "resident",
            epoch: Some(hex::encode(table.served().epoch)),
            protocol: Some(table.served().protocol.clone()),
            records: Some(table.served().records),
            reason: None,
        },
    };
    server.tables.all().into_iter().filter(|(name, _)| is_shown(name)).map(entry).collect()
}

/// One table's descriptor. It changes with the epoch, so the epoch is its entity tag.
pub(super) async fn descriptor(
    State(server): State<Arc<Server>>,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (table, _) = resident(&server, name)?;
    let etag = format!("\"{}\"", hex::encode(table.served().epoch));
    let not_modified = is_not_modified(&headers, &etag);
    let caching = [(CACHE_CONTROL, "no-cache".to_owned()), (ETAG, etag)];
    if not_modified {
        return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
    }
    let content_type = [(CONTENT_TYPE, "application/json")];
    Ok((caching, content_type, table.descriptor.clone()).into_response())
}
