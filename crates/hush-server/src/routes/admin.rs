//! `/v1/admin/..`: the endpoints for operators.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{
        ConnectInfo, Path, Query, Request, State,
        rejection::{PathRejection, QueryRejection},
    },
    http::{HeaderMap, HeaderValue, StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
};
use hush_protocol::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep},
};

use super::TableName;
use crate::{
    access::{caller::Caller, client::ClientAddress, tokens::Scope},
    operator::{KeptTable, Operator, OperatorError, Task, TaskStatus, Upload},
    problem::{Code, Problem},
    queue::limits::read_body,
    state::Server,
};

/// The longest request of a task, in bytes.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// The longest part of an upload, in bytes.
const MAX_PART_BYTES: usize = 64 << 20;
/// The seconds for which a request of changes waits, if it does not say, and at most.
const CHANGES_WAIT: u64 = 10;
const MAX_CHANGES_WAIT: u64 = 60;
/// The interval at which it looks.
const CHANGES_LOOK: Duration = Duration::from_millis(10);
/// The most tasks of a list.
const MOST_TASKS: usize = 100;
/// The header that tells where the next part of an upload begins.
const UPLOAD_OFFSET: &str = "upload-offset";

/// The ID of a task or of an upload in a path.
type Id<T> = Result<Path<T>, PathRejection>;

/// The tables that the server keeps.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct KeptTables {
    tables: Vec<KeptTable>,
}

/// The last tasks, the newest first.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Tasks))]
pub(super) struct TaskList {
    tasks: Vec<Task>,
}

/// Loads the table that is in the folder now; answers when it is served.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/admin/tables/{table}/reload", operation_id = "reload",
    responses((status = 200, description = "It is served: its `epoch`, in hex.", body = Object))))]
pub(super) async fn reload(
    State(server): State<Arc<Server>>,
    caller: Caller,
    table: TableName,
) -> Result<Json<Value>, Problem> {
    let table = operated(&caller, table)?;
    let epoch = ask(&server, move |operator| operator.reload(&table)).await?;
    Ok(Json(json!({ "epoch": hex::encode(epoch) })))
}

/// Begins to fold the table's changes into a new base, which is taken up when it is there.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/admin/tables/{table}/compact", operation_id = "compact",
    responses((status = 202, description = "It has begun.", body = Object))))]
pub(super) async fn compact(
    State(server): State<Arc<Server>>,
    caller: Caller,
    table: TableName,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let table = operated(&caller, table)?;
    ask(&server, move |operator| operator.compact(&table)).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "state": "begun" }))))
}

/// The time for which a request of changes waits.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub(super) struct ChangesWait {
    /// How many seconds to wait for the epoch that has the changes: 10 if not given.
    #[cfg_attr(feature = "openapi", param(maximum = 60))]
    wait: Option<u64>,
}

/// Applies changes to a table, all of them or none: a JSON object a line, of at most 64 MiB in all.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/admin/tables/{table}/changes", operation_id = "applyChanges",
    params(ChangesWait), request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, description = "They are served, in the task's `epoch`.", body = Task),
        (status = 202, description = "The task that applies them.", body = Task,
            headers(("Location" = String, description = "Where the task is."))))))]
pub(super) async fn changes(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    caller: Caller,
    table: TableName,
    wait: Result<Query<ChangesWait>, QueryRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let table = operated(&caller, table)?;
    let Query(ChangesWait { wait }) = wait.map_err(|_| {
        Problem::new(Code::InvalidRequest, "the query has nothing but wait, a whole number of seconds")
    })?;
    let (parts, body) = request.into_parts();
    let client = ClientAddress::from(peer.ip());
    let (bytes, memory) = read_body(&server, client, &parts.headers, body, MAX_PART_BYTES).await?;
    let asking = caller.clone();
    let task = ask(&server, move |operator| {
        let name = "changes.jsonl".parse().expect("a name");
        let Upload { id, .. } = operator.begin_upload(&asking, &name)?;
        let request = json!({ "kind": "changes", "table": table, "input": { "upload": id } });
        let submitted =
            operator.append(&asking, &id, 0, &bytes).and_then(|_| operator.submit(&asking, request));
        submitted.inspect_err(|_| drop(operator.remove_upload(&asking, &id)))
    });
    let mut task: Task = task.await?;
    drop(memory);
    let until = Instant::now() + Duration::from_secs(wait.unwrap_or(CHANGES_WAIT).min(MAX_CHANGES_WAIT));
    while !task.status.is_final() && Instant::now() < until {
        sleep(CHANGES_LOOK).await;
        let (caller, id) = (caller.clone(), task.id);
        task = ask(&server, move |operator| operator.task(&caller, id)).await?;
    }
    let location = [(LOCATION, format!("/v1/admin/tasks/{}", task.id))];
    match task.status {
        TaskStatus::Succeeded => Ok(Json(task).into_response()),
        status if status.is_final() => {
            let reason = task.error.unwrap_or_else(|| "the changes were given up".into());
            Err(Problem::new(Code::Refused, reason))
        }
        _ => Ok((StatusCode::ACCEPTED, location, Json(task)).into_response()),
    }
}

/// Returns the tables that the server keeps, with the kept builds of each.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/admin/tables", operation_id = "listKept",
    responses((status = 200, description = "All of them.", body = KeptTables))))]
pub(super) async fn kept(
    State(server): State<Arc<Server>>,
    caller: Caller,
) -> Result<Json<KeptTables>, Problem> {
    let tables = ask(&server, move |operator| Ok(operator.kept(&caller))).await?;
    Ok(Json(KeptTables { tables }))
}

/// Puts a task behind the others.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/admin/tasks", operation_id = "submitTask",
    request_body(content = ref("#/components/schemas/TaskRequest"), content_type = "application/json"),
    responses((status = 202, description = "The task.", body = Task,
        headers(("Location" = String, description = "Where the task is."))))))]
pub(super) async fn submit(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let request = json_of(&server, peer, request).await?;
    let task: Task = ask(&server, move |operator| operator.submit(&caller, request)).await?;
    let location = [(LOCATION, format!("/v1/admin/tasks/{}", task.id))];
    Ok((StatusCode::ACCEPTED, location, Json(task)).into_response())
}

/// Which tasks are asked for.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub(super) struct TaskPage {
    /// The tasks before this number.
    before: Option<u64>,
    /// How many, at most.
    #[cfg_attr(feature = "openapi", param(maximum = 100))]
    limit: Option<usize>,
}

/// Returns the last tasks, the newest first.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/admin/tasks", operation_id = "listTasks", params(TaskPage),
    responses((status = 200, description = "At most a hundred.", body = TaskList))))]
pub(super) async fn tasks(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Query(TaskPage { before, limit }): Query<TaskPage>,
) -> Result<Json<TaskList>, Problem> {
    let most = limit.unwrap_or(MOST_TASKS).min(MOST_TASKS);
    let tasks = ask(&server, move |operator| Ok(operator.tasks(&caller, before, most))).await?;
    Ok(Json(TaskList { tasks }))
}

/// Returns a task.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/admin/tasks/{id}", operation_id = "getTask",
    responses((status = 200, description = "How far it is.", body = Task))))]
pub(super) async fn task(
    State(server): State<Arc<Server>>,
    caller: Caller,
    id: Id<u64>,
) -> Result<Json<Task>, Problem> {
    let id = of_path(id, "task")?;
    Ok(Json(ask(&server, move |operator| operator.task(&caller, id)).await?))
}

/// Has a task given up. One that is being done ends soon.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/admin/tasks/{id}/cancel", operation_id = "cancelTask",
    responses((status = 200, description = "The task.", body = Task))))]
pub(super) async fn cancel(
    State(server): State<Arc<Server>>,
    caller: Caller,
    id: Id<u64>,
) -> Result<Json<Task>, Problem> {
    let id = of_path(id, "task")?;
    Ok(Json(ask(&server, move |operator| operator.cancel(&caller, id)).await?))
}

/// The request that begins an upload.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct NewUpload {
    /// A name for the upload. Its ending says the format.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::Name))]
    name: Name,
}

/// Begins an upload: `{"name": "people.csv"}`.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/admin/uploads", operation_id = "beginUpload",
    request_body(content = NewUpload, content_type = "application/json"),
    responses((status = 201, description = "The upload.", body = Upload,
        headers(("Location" = String, description = "Where the upload is."))))))]
pub(super) async fn begin_upload(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let request = json_of(&server, peer, request).await?;
    let NewUpload { name } = serde_json::from_value(request).map_err(|error| {
        Problem::new(
            Code::InvalidRequest,
            format!("an upload has a name, as {{\"name\": \"people.csv\"}}: {error}"),
        )
    })?;
    let upload: Upload = ask(&server, move |operator| operator.begin_upload(&caller, &name)).await?;
    let location = format!("/v1/admin/uploads/{}", upload.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(upload)).into_response())
}

/// Tells how much of an upload is here.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/admin/uploads/{id}", operation_id = "getUpload",
    responses((status = 200, description = "The upload; Upload-Offset has its bytes.", body = Upload))))]
pub(super) async fn upload(
    State(server): State<Arc<Server>>,
    caller: Caller,
    id: Id<Name>,
) -> Result<Response, Problem> {
    let id = of_path(id, "upload")?;
    uploaded(ask(&server, move |operator| operator.upload(&caller, &id)).await?)
}

/// Adds the next part of an upload, of at most 64 MiB.
#[cfg_attr(feature = "openapi", utoipa::path(patch, path = "/v1/admin/uploads/{id}", operation_id = "appendUpload",
    params(("Upload-Offset" = u64, Header, description = "Where the part begins: the bytes that are here.")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, description = "The upload.", body = Upload))))]
pub(super) async fn append(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    caller: Caller,
    id: Id<Name>,
    request: Request,
) -> Result<Response, Problem> {
    let id = of_path(id, "upload")?;
    let (parts, body) = request.into_parts();
    let offset = offset(&parts.headers)?;
    // Asked before the body is read: the upload must be the caller's.
    let asking = caller.clone();
    let asked = id.clone();
    ask(&server, move |operator| operator.upload(&asking, &asked)).await?;
    let client = ClientAddress::from(peer.ip());
    let (bytes, memory) = read_body(&server, client, &parts.headers, body, MAX_PART_BYTES).await?;
    let appended = ask(&server, move |operator| operator.append(&caller, &id, offset, &bytes)).await;
    drop(memory);
    uploaded(appended?)
}

/// Removes an upload.
#[cfg_attr(feature = "openapi", utoipa::path(delete, path = "/v1/admin/uploads/{id}", operation_id = "removeUpload",
    responses((status = 204, description = "It is gone."))))]
pub(super) async fn remove_upload(
    State(server): State<Arc<Server>>,
    caller: Caller,
    id: Id<Name>,
) -> Result<StatusCode, Problem> {
    let id = of_path(id, "upload")?;
    ask(&server, move |operator| operator.remove_upload(&caller, &id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn uploaded(upload: Upload) -> Result<Response, Problem> {
    Ok(([(UPLOAD_OFFSET, HeaderValue::from(upload.bytes))], Json(upload)).into_response())
}

fn offset(headers: &HeaderMap) -> Result<u64, Problem> {
    let value = headers.get(UPLOAD_OFFSET).and_then(|value| value.to_str().ok()?.parse().ok());
    value.ok_or_else(|| {
        Problem::new(
            Code::InvalidRequest,
            "the header Upload-Offset says where this part begins: 0 for the first",
        )
    })
}

/// Returns the table that a path names, for a caller that operates it. Fails with `unknown_table` or `forbidden`.
fn operated(caller: &Caller, table: TableName) -> Result<Name, Problem> {
    let Path(table) = table.map_err(|_| Problem::unknown_table())?;
    caller.check(Scope::Admin, &table)?;
    Ok(table)
}

/// Returns the ID in a path. Fails with `not_found` if it is malformed; `what` names its kind.
fn of_path<T>(id: Id<T>, what: &'static str) -> Result<T, Problem> {
    id.map(|Path(id)| id).map_err(|_| problem(OperatorError::Unknown(what)))
}

/// Reads the body of a request as JSON.
async fn json_of(server: &Server, peer: SocketAddr, request: Request) -> Result<Value, Problem> {
    let (parts, body) = request.into_parts();
    let client = ClientAddress::from(peer.ip());
    let (bytes, _memory) = read_body(server, client, &parts.headers, body, MAX_REQUEST_BYTES).await?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Problem::new(Code::InvalidRequest, format!("the body is no JSON: {error}")))
}

/// Runs an order of the operator on a blocking thread.
async fn ask<T: Send + 'static>(
    server: &Server,
    what: impl FnOnce(&dyn Operator) -> Result<T, OperatorError> + Send + 'static,
) -> Result<T, Problem> {
    // A server without an operator has no admin endpoints.
    let operator = server.operator.clone().ok_or_else(Problem::internal)?;
    spawn_blocking(move || what(&*operator)).await.map_err(|_| Problem::internal())?.map_err(problem)
}

fn problem(error: OperatorError) -> Problem {
    match error {
        OperatorError::UnknownTable => Problem::unknown_table(),
        OperatorError::Unknown(_) => Problem::new(Code::NotFound, error.to_string()),
        OperatorError::Forbidden => Problem::new(Code::Forbidden, error.to_string()),
        OperatorError::Invalid(reason) => Problem::new(Code::InvalidRequest, reason),
        OperatorError::Refused(reason) => Problem::new(Code::Refused, reason),
    }
}
