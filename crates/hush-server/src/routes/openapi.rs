//! The endpoints and their types, as the description of the API (`docs/reference/openapi.json`) has them.

use utoipa::{OpenApi, ToSchema};

use super::{admin, blobs, gateway, health, keys, metrics, page, query, tables};
use crate::problem;

/// The endpoints of a server. Two bodies are described by the crates that make them: `TaskRequest` and `TablePlan`.
#[derive(OpenApi)]
#[rustfmt::skip] // a list, not a column
#[openapi(
    paths(tables::list, tables::descriptor, page::plan, query::answer, blobs::download, keys::contains, keys::upload,
        gateway::key, gateway::answer, health::live, health::ready, health::info, metrics::text, admin::kept, admin::reload,
        admin::changes, admin::compact, admin::tasks, admin::submit, admin::task, admin::cancel, admin::begin_upload, admin::upload,
        admin::append, admin::remove_upload),
    components(schemas(problem::Document, Name))
)]
pub struct Endpoints;

/// The name of a table, of a file, or of an upload: 1 to 64 letters, digits, `.`, `_` and `-`, without a dot at the beginning.
#[derive(ToSchema)]
#[schema(pattern = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$")]
pub struct Name(#[allow(dead_code, reason = "a type that is only described")] String);
