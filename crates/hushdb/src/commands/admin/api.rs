//! A client of the admin endpoints of a server.

use std::error::Error;

use hush_client::http::{BearerToken, HttpOptions, TlsOptions, agent, on_the_way, why_failed};
use hush_protocol::shown_url;
use serde_json::Value;
use ureq::{Agent, Body, RequestBuilder, http::Response};
use zeroize::Zeroizing;

/// The most bytes of an answer; the longest is a list of tasks.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

pub(super) struct Api {
    agent: Agent,
    url: String,
    token: Option<BearerToken>,
}

impl Api {
    pub(super) fn new(
        url: &str,
        token: Option<Zeroizing<String>>,
        tls: TlsOptions,
    ) -> Result<Self, Box<dyn Error>> {
        let token = token.map(|text| text.parse::<BearerToken>()).transpose()?;
        let agent = agent(url, &HttpOptions { token: token.clone(), tls, ..HttpOptions::default() })?;
        Ok(Self { agent, url: url.trim_end_matches('/').to_owned(), token })
    }

    pub(super) fn get(&self, path: &str) -> Result<Value, Box<dyn Error>> {
        self.answer(path, 0, self.with_token(self.agent.get(self.at(path))).call())
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, Box<dyn Error>> {
        let request = self.with_token(self.agent.post(self.at(path)));
        let body = body.to_string();
        let sent = body.len();
        self.answer(path, sent, request.header("Content-Type", "application/json").send(body))
    }

    /// Adds a part to an upload. `offset` is the number of bytes before the part.
    pub(super) fn append(&self, path: &str, offset: u64, part: &[u8]) -> Result<Value, Box<dyn Error>> {
        let request = self.with_token(self.agent.patch(self.at(path)));
        self.answer(path, part.len(), request.header("Upload-Offset", offset).send(part))
    }

    pub(super) fn delete(&self, path: &str) -> Result<Value, Box<dyn Error>> {
        self.answer(path, 0, self.with_token(self.agent.delete(self.at(path))).call())
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn with_token<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.token {
            Some(token) => request.header("Authorization", token.header().as_str()),
            None => request,
        }
    }

    /// Returns the JSON of the response to a request of `path` with a body of `sent` bytes.
    fn answer(
        &self,
        path: &str,
        sent: usize,
        answer: Result<Response<Body>, ureq::Error>,
    ) -> Result<Value, Box<dyn Error>> {
        let shown = shown_url(&self.url);
        let unreachable = |error: ureq::Error| {
            let reason = why_failed(&self.url, error);
            format!("{shown} does not answer ({reason}): does 'hushdb serve --listen-admin' run there?")
        };
        let mut answer = answer.map_err(unreachable)?;
        let status = answer.status();
        let body =
            answer.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_vec().map_err(unreachable)?;
        let value: Option<Value> =
            if body.is_empty() { Some(Value::Null) } else { serde_json::from_slice(&body).ok() };
        if status.is_success() {
            return value.ok_or_else(|| format!("{shown} is no HushDB: its answer is no JSON").into());
        }
        let detail = value.as_ref().and_then(|problem| problem["detail"].as_str());
        let Some(detail) = detail else {
            if let Some(error) = on_the_way(&self.url, path, sent, &answer) {
                return Err(error.into());
            }
            return Err(format!("{shown} is no HushDB: status {status}").into());
        };
        Err(match status.as_u16() {
            401 => format!("{detail}: give one with HUSHDB_TOKEN or --token").into(),
            404 if detail.contains("endpoint") => {
                format!("{shown} has no admin endpoints: they are at --listen-admin of 'hushdb serve'").into()
            }
            _ => detail.to_owned().into(),
        })
    }
}
