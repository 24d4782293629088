//! Methods of JSON-RPC 2.0 that are answered by look-ups. Others are refused, or passed on as they are. What is not looked at is
//! passed as it was written: numbers of a chain have more digits than most programs keep.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    body::Bytes,
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::Response,
};
use hush_client::http::{HttpOptions, agent, why_failed};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::task::spawn_blocking;
use ureq::Agent;

use crate::{
    config::{ConfigError, MethodSettings, RpcSettings, wrong},
    front::{refused, respond},
    tables::PrivateTable,
    template::{Filling, at_path, of_record},
};

const JSON: &str = "application/json";
/// The most calls of a batch.
const MOST_CALLS: usize = 100;
/// The most bytes of a response that is passed on, and the longest silence before it.
const MAX_PASSED: u64 = 64 << 20;
const SILENCE: Duration = Duration::from_secs(30);

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

/// The members of a call. Those that are not looked at stay text.
#[derive(Deserialize)]
struct RpcCall {
    id: Option<Box<RawValue>>,
    method: String,
    params: Option<Box<RawValue>>,
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
        let options = HttpOptions { silence_timeout: SILENCE, ..HttpOptions::default() };
        let upstream = pass_on.map(|url| match agent(&url, &options) {
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
        let is_batch = body.trim_ascii_start().starts_with(b"[");
        let said = match is_batch {
            false => match serde_json::from_slice::<&RawValue>(&body) {
                Ok(call) => self.call(call.get()).await,
                Err(error) => Some(failed(None, CallError(PARSE_ERROR, error.to_string()))),
            },
            true => match serde_json::from_slice::<Vec<&RawValue>>(&body) {
                Ok(calls) if calls.is_empty() || calls.len() > MOST_CALLS => Some(failed(
                    None,
                    CallError(INVALID_REQUEST, format!("a batch has 1 to {MOST_CALLS} calls")),
                )),
                Ok(calls) => {
                    let mut all = Vec::new();
                    for call in calls {
                        all.extend(self.call(call.get()).await);
                    }
                    (!all.is_empty()).then(|| format!("[{}]", all.join(",")))
                }
                Err(error) => Some(failed(None, CallError(PARSE_ERROR, error.to_string()))),
            },
        };
        match said {
            Some(said) => respond(200, JSON, said),
            // Nobody waits for the answer of a notification.
            None => respond(204, JSON, Bytes::new()),
        }
    }

    /// Returns the response to a call as JSON. Returns `None` for a notification.
    async fn call(&self, text: &str) -> Option<String> {
        let Ok(RpcCall { id, method, params }) = serde_json::from_str(text) else {
            return Some(failed(
                None,
                CallError(INVALID_REQUEST, "a call is an object with a method".into()),
            ));
        };
        let result = match self.methods.get(&method) {
            Some((own, table)) => own.result(table, params.as_deref().map_or("null", RawValue::get)).await,
            None => match self.passed_on(text, &method).await {
                Ok(said) => return id.and(Some(said)),
                Err(error) => Err(error),
            },
        };
        let id = id?;
        Some(match result {
            Ok(result) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"),
            Err(error) => failed(Some(&id), error),
        })
    }

    /// Passes a call on, and returns the response as it is.
    async fn passed_on(&self, call: &str, method: &str) -> Result<String, CallError> {
        let Some((agent, url)) = self.upstream.clone() else {
            let why = format!("the method {method} is not answered here, and not passed on");
            return Err(CallError(NO_METHOD, why));
        };
        let call = call.to_owned();
        let said = spawn_blocking(move || {
            let sent = agent.post(&url).header("Content-Type", JSON).send(call);
            let mut response = sent.map_err(|error| why_failed(&url, error))?;
            if !response.status().is_success() {
                return Err(format!("{url} answered with status {}", response.status().as_u16()));
            }
            let read = response.body_mut().with_config().limit(MAX_PASSED).read_to_string();
            read.map_err(|error| why_failed(&url, error))
        });
        let failed = |why: String| CallError(SERVER_ERROR, format!("the call was passed on: {why}"));
        let said = said.await.unwrap_or_else(|_| Err("that was given up".into())).map_err(failed)?;
        match serde_json::from_str::<&RawValue>(&said) {
            Ok(json) => Ok(json.get().to_owned()),
            Err(_) => Err(failed("what came back is no JSON".into())),
        }
    }
}

impl MethodSettings {
    /// Looks the key of a call up, and returns its result as JSON.
    async fn result(&self, table: &PrivateTable, params: &str) -> Result<String, CallError> {
        let invalid = |why: String| CallError(INVALID_PARAMS, why);
        let given = |name: &str| at_path(params, name.strip_prefix("params.")?);
        for (name, allowed) in &self.allow {
            let Some(Filling::Json(json)) = given(name) else { continue };
            let text = serde_json::from_str::<String>(&json).unwrap_or(json);
            if !allowed.contains(&text) {
                return Err(invalid(format!("{name} is {text}: only {} is answered", allowed.join(", "))));
            }
        }
        let key = self.key.fill(|name| given(name).and_then(Filling::if_key));
        let key = key.map_err(|name| invalid(format!("the call has no {name} that is text or a number")))?;
        let record = table.look_up(&key).await.map_err(|error| {
            let (status, why) = error.told();
            let code = if status == StatusCode::BAD_REQUEST { INVALID_PARAMS } else { SERVER_ERROR };
            CallError(code, why.to_owned())
        })?;
        let result = match (&record, &self.missing) {
            (Some(value), _) => {
                let filled = self.result.fill(|name| of_record(value, name).or_else(|| given(name)));
                filled.map_err(|name| CallError(SERVER_ERROR, format!("the record has no {name}")))?
            }
            (None, Some(missing)) => missing.clone().into_bytes().into(),
            (None, None) => return Err(invalid("the table has no such key".into())),
        };
        match serde_json::from_slice::<&RawValue>(&result) {
            Ok(result) => Ok(result.get().to_owned()),
            Err(error) => {
                Err(CallError(SERVER_ERROR, format!("the result of this record is no JSON: {error}")))
            }
        }
    }
}

/// Returns the response to a call that failed.
fn failed(id: Option<&RawValue>, CallError(code, message): CallError) -> String {
    let id = id.map_or("null", RawValue::get);
    let message = Value::from(message);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{message}}}}}")
}
