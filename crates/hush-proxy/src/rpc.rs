//! Methods of JSON-RPC 2.0 that are answered by look-ups. Others are refused, or passed on as they are.

use std::{borrow::Cow, collections::BTreeMap};

use axum::{
    body::Bytes,
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::Response,
};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use ureq::Agent;

use hush_client::http::{HttpOptions, agent, why_failed};

use crate::{
    config::{ConfigError, MethodSettings, RpcSettings, wrong},
    front::{refused, respond},
    tables::PrivateTable,
    template::{at_path, of_record},
};

const JSON: &str = "application/json";
/// The most calls of a batch.
const MOST_CALLS: usize = 100;
/// The most bytes of a response that is passed on.
const MAX_PASSED: u64 = 64 << 20;

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const NO_METHOD: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const SERVER_ERROR: i32 = -32000;

/// The methods behind a path.
pub(crate) struct Rpc {
    methods: BTreeMap<String, (MethodSettings, PrivateTable)>,
    upstream: Option<(Agent, String)>,
}

/// The error of a call.
struct CallError(i32, String);

impl Rpc {
    pub(crate) fn new(
        settings: RpcSettings,
        tables: &BTreeMap<String, PrivateTable>,
    ) -> Result<Self, ConfigError> {
        let RpcSettings { post, pass_on, methods } = settings;
        let place = format!("rpc {post}");
        let methods = methods.into_iter().map(|(name, method)| {
            let table = tables.get(&method.table).ok_or_else(|| wrong(&place, "its table is not there"))?;
            Ok((name, (method, table.clone())))
        });
        let methods = methods.collect::<Result<_, ConfigError>>()?;
        let upstream = pass_on.map(|url| match agent(&url, &HttpOptions::default()) {
            Ok(agent) => Ok((agent, url)),
            Err(error) => Err(wrong(&place, format!("pass-on: {error}"))),
        });
        Ok(Self { methods, upstream: upstream.transpose()? })
    }

    /// Answers a call, or a batch of them.
    pub(crate) async fn answer(&self, headers: &HeaderMap, body: Bytes) -> Response {
        let content_type = headers.get(CONTENT_TYPE).and_then(|own| own.to_str().ok()).unwrap_or_default();
        if !content_type.to_ascii_lowercase().starts_with(JSON) {
            return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "calls are of the type application/json");
        }
        let said = match serde_json::from_slice(&body) {
            Ok(Value::Array(calls)) if calls.is_empty() || calls.len() > MOST_CALLS => {
                let why = format!("a batch has 1 to {MOST_CALLS} calls");
                Some(failed(&Value::Null, CallError(INVALID_REQUEST, why)))
            }
            Ok(Value::Array(calls)) => {
                let mut all = Vec::new();
                for call in &calls {
                    all.extend(self.call(call).await);
                }
                (!all.is_empty()).then_some(Value::Array(all))
            }
            Ok(call) => self.call(&call).await,
            Err(error) => Some(failed(&Value::Null, CallError(PARSE_ERROR, error.to_string()))),
        };
        match said {
            Some(said) => respond(200, JSON, said.to_string()),
            // Nobody waits for the answer of a notification.
            None => respond(204, JSON, Bytes::new()),
        }
    }

    /// Returns the response to a call. Returns `None` for a notification.
    async fn call(&self, call: &Value) -> Option<Value> {
        let id = call.get("id");
        let said = match (call.get("method").and_then(Value::as_str), call.get("params")) {
            (None, _) => {
                let error = CallError(INVALID_REQUEST, "a call is an object with a method".into());
                return Some(failed(id.unwrap_or(&Value::Null), error));
            }
            (Some(name), params) => match self.methods.get(name) {
                Some((method, table)) => method.result(table, params.unwrap_or(&Value::Null)).await,
                None => {
                    return self
                        .passed_on(call, name)
                        .await
                        .or_else(|error| Ok::<_, ()>(id.map(|id| failed(id, error))))
                        .ok()?;
                }
            },
        };
        let id = id?;
        Some(match said {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => failed(id, error),
        })
    }

    /// Passes a call on, and returns the response as it is.
    async fn passed_on(&self, call: &Value, name: &str) -> Result<Option<Value>, CallError> {
        let Some((agent, url)) = self.upstream.clone() else {
            return Err(CallError(
                NO_METHOD,
                format!("the method {name} is not answered here, and not passed on"),
            ));
        };
        let body = call.to_string();
        let is_notification = call.get("id").is_none();
        let said = spawn_blocking(move || {
            let sent = agent.post(&url).header("Content-Type", JSON).send(body);
            let read = sent
                .and_then(|mut response| response.body_mut().with_config().limit(MAX_PASSED).read_to_vec());
            read.map_err(|error| why_failed(&url, error))
        });
        let said = said.await.unwrap_or_else(|_| Err("the call was not passed on".into()));
        let said = said.map_err(|why| CallError(SERVER_ERROR, why))?;
        if is_notification {
            return Ok(None);
        }
        let json = serde_json::from_slice(&said);
        json.map(Some)
            .map_err(|_| CallError(SERVER_ERROR, "what the call was passed on to said no JSON".into()))
    }
}

impl MethodSettings {
    /// Looks the key of a call up, and returns its result.
    async fn result(&self, table: &PrivateTable, params: &Value) -> Result<Value, CallError> {
        let invalid = |why: String| CallError(INVALID_PARAMS, why);
        let given = |name: &str| {
            let path = name.strip_prefix("params.")?;
            at_path(params, path)
        };
        for (name, allowed) in &self.allow {
            let text = given(name).map(|text| String::from_utf8_lossy(&text).into_owned());
            if let Some(text) = text.filter(|text| !allowed.contains(text)) {
                return Err(invalid(format!("{name} is {text}: only {} is answered", allowed.join(", "))));
            }
        }
        let key = self.key.fill(|name| given(name).map(Cow::Owned));
        let key = key.map_err(|name| invalid(format!("the call has no {name}")))?;
        let record = table.look_up(&key).await.map_err(|error| {
            let (status, why) = error.told();
            let code = if status == StatusCode::BAD_REQUEST { INVALID_PARAMS } else { SERVER_ERROR };
            CallError(code, why.to_owned())
        })?;
        let result = match (&record, &self.missing) {
            (Some(value), _) => {
                let find = |name| of_record(value, name).or_else(|| given(name).map(Cow::Owned));
                let filled = self.result.fill(find);
                filled.map_err(|name| CallError(SERVER_ERROR, format!("the record has no {name}")))?
            }
            (None, Some(missing)) => missing.clone().into_bytes().into(),
            (None, None) => return Err(invalid("the table has no such key".into())),
        };
        serde_json::from_slice(&result).map_err(|error| {
            CallError(SERVER_ERROR, format!("the result of this record is no JSON: {error}"))
        })
    }
}

/// Returns the response to a call that failed.
fn failed(id: &Value, CallError(code, message): CallError) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
