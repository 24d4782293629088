//! Errors of requests as problem documents (RFC 9457).
//!
//! Details name limits, lengths and the operator's own names; never bytes of a request.

use std::{sync::Arc, time::Duration};

use axum::{
    http::{
        StatusCode,
        header::{CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
};
use hush_engine::FILES_CHANGED;
pub(crate) use hush_protocol::Code;
use hush_protocol::{
    ohttp::{DATE_PROBLEM, KEY_PROBLEM},
    wire::WireError,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    keys::{KeyError, STORE_PAUSE},
    queue::batch::AnswerError,
    state::ResidentTable,
};

/// The seconds after which a client may ask a loading table again.
const WARMING_SECONDS: u64 = 5;
/// The seconds after which a client may ask an overloaded server again.
const OVERLOADED_SECONDS: u64 = 1;

/// An error response.
#[derive(Debug)]
pub(crate) struct Problem {
    code: Code,
    detail: String,
    /// The seconds for `Retry-After`.
    retry_after: Option<u64>,
    /// The length of the file, for `Content-Range` of a range outside it.
    file_bytes: Option<u64>,
    /// The table's current descriptor, for a client with an old one.
    descriptor: Option<Arc<RawValue>>,
}

/// An error (RFC 9457).
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Problem))]
pub(crate) struct Document<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    code: &'static str,
    /// The table's current descriptor, with the code `epoch_gone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    descriptor: Option<&'a RawValue>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Problem {
        let detail = detail.into();
        Problem { code, detail, retry_after: None, file_bytes: None, descriptor: None }
    }

    /// Sets how long a client should wait before it asks again: `wait`, rounded up to seconds, and at least one.
    pub(crate) fn retry_in(self, wait: Duration) -> Problem {
        let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
        Problem { retry_after: Some(seconds), ..self }
    }

    #[cfg(test)]
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.retry_after
    }

    pub(crate) fn is(&self, code: Code) -> bool {
        self.code == code
    }

    pub(crate) fn internal() -> Problem {
        Problem::new(Code::Internal, "the server's log has the cause")
    }

    /// Returns the problem of a query of a table whose GPU has failed for good.
    pub(crate) fn device_lost() -> Problem {
        let detail = "the table's GPU has failed: nothing is answered until the server is started again";
        Problem::new(Code::DeviceLost, detail)
    }

    pub(crate) fn unknown_table() -> Problem {
        Problem::new(Code::UnknownTable, "no table of this name is served here")
    }

    /// Returns the problem of a request for a table that could not be loaded, or that was changed while it was served.
    pub(crate) fn table_failed(name: &str, reason: &str) -> Problem {
        let detail =
            format!("table {name} is not served, and has to be mended by who runs this server: {reason}");
        Problem::new(Code::TableFailed, detail)
    }

    pub(crate) fn warming(detail: &str) -> Problem {
        Problem { retry_after: Some(WARMING_SECONDS), ..Problem::new(Code::Warming, detail) }
    }

    pub(crate) fn overloaded(detail: &str) -> Problem {
        Problem { retry_after: Some(OVERLOADED_SECONDS), ..Problem::new(Code::Overloaded, detail) }
    }

    pub(crate) fn throttled(seconds: u64) -> Problem {
        let detail = "this address has used up its queries";
        Problem { retry_after: Some(seconds), ..Problem::new(Code::Throttled, detail) }
    }

    /// Returns the problem of a client that has its whole share of a resource. `what` names the resource.
    pub(crate) fn used_up(what: &str) -> Problem {
        let detail = format!("this address has its share of the {what}: wait for its other requests");
        Problem { retry_after: Some(OVERLOADED_SECONDS), ..Problem::new(Code::Throttled, detail) }
    }

    pub(crate) fn range(file_bytes: u64) -> Problem {
        let detail = format!("the range is not inside a file of {file_bytes} bytes");
        Problem { file_bytes: Some(file_bytes), ..Problem::new(Code::RangeNotSatisfiable, detail) }
    }

    pub(crate) fn body_too_large(limit: usize) -> Problem {
        Problem::new(Code::TooLarge, format!("the body has more than {limit} bytes"))
    }

    pub(crate) fn answers_too_large(limit: usize) -> Problem {
        Problem::new(Code::TooLarge, format!("the body and its answers have more than {limit} bytes"))
    }

    pub(crate) fn too_many_keys(limit: usize) -> Problem {
        Problem::new(Code::TooLarge, format!("the queries name more than {limit} different keys"))
    }

    pub(crate) fn body_timeout(limit: Duration) -> Problem {
        Problem::new(Code::Timeout, format!("the body took more than {} s", limit.as_secs_f64()))
    }

    pub(crate) fn broken_body() -> Problem {
        Problem::new(Code::InvalidRequest, "the body broke off or is badly framed")
    }

    /// Returns the problem of a request whose bytes do not fit `table`.
    pub(crate) fn wire(error: WireError, table: &ResidentTable) -> Problem {
        let code = match error {
            WireError::EpochGone => {
                let descriptor = Some(table.descriptor_value.clone());
                return Problem { descriptor, ..Problem::new(Code::EpochGone, error.to_string()) };
            }
            WireError::Version { .. } => Code::UnsupportedVersion,
            WireError::TooManyQueries { .. } => Code::TooLarge,
            _ => Code::InvalidRequest,
        };
        Problem::new(code, error.to_string())
    }

    /// Returns the problem of query `index` of a request, whose keys cannot be used.
    pub(crate) fn query_keys(error: KeyError, index: usize) -> Problem {
        match error {
            KeyError::NotFound => Problem::new(
                Code::KeyNotFound,
                format!("query {index}: upload its keys with PUT /v1/keys/{{hash}}, then ask again"),
            ),
            KeyError::OtherPreset => {
                let detail =
                    format!("query {index}: its keys are for another parameter set than this table's");
                Problem::new(Code::KeyPreset, detail)
            }
            KeyError::NoPlace => Problem::overloaded("too many clients wait for this server"),
            error => Problem::stored_keys(error),
        }
    }

    /// Returns the problem of a store of keys that has failed.
    pub(crate) fn stored_keys(error: KeyError) -> Problem {
        match error {
            KeyError::Unavailable => {
                let problem = Problem::overloaded("the keys of clients cannot be read or written now");
                Problem { retry_after: Some(STORE_PAUSE.as_secs()), ..problem }
            }
            KeyError::DeviceLost => Problem::device_lost(),
            _ => Problem::internal(),
        }
    }

    /// Returns the problem of uploaded keys that were rejected. `complete` is whether no table is still loading.
    pub(crate) fn uploaded_keys(error: KeyError, complete: bool) -> Problem {
        let invalid = |detail| Problem::new(Code::InvalidRequest, detail);
        match error {
            KeyError::Mismatch => Problem::new(Code::KeyMismatch, "the body has another BLAKE3 hash"),
            KeyError::Wire(error @ WireError::Version { .. }) => {
                Problem::new(Code::UnsupportedVersion, error.to_string())
            }
            KeyError::Wire(error) => invalid(error.to_string()),
            KeyError::UnknownPreset { .. } if !complete => {
                Problem::warming("the keys may be for a table that is still loading")
            }
            KeyError::UnknownPreset { served } => {
                let detail = format!("the tables here need keys for {}", served.join(", "));
                Problem::new(Code::KeyPreset, detail)
            }
            KeyError::Length { expected, actual } => {
                invalid(format!("the body has {actual} bytes, expected {expected}"))
            }
            KeyError::Refused { reason } => invalid(reason),
            KeyError::TooLarge { max } => {
                Problem::new(Code::TooLarge, format!("this server keeps at most {max} bytes of keys"))
            }
            error => Problem::stored_keys(error),
        }
    }

    /// Returns the problem of query `index` of a request, which got no answer.
    pub(crate) fn answer(error: AnswerError, index: usize) -> Problem {
        match error {
            AnswerError::Query { reason } => {
                Problem::new(Code::InvalidRequest, format!("query {index}: {reason}"))
            }
            AnswerError::Internal => Problem::internal(),
            AnswerError::NoMemory => Problem::overloaded("there is no memory for a scan now"),
            AnswerError::PartUnavailable => {
                let detail = "a part of the table does not answer: it is being started again";
                Problem::new(Code::PartUnavailable, detail).retry_in(Duration::from_secs(1))
            }
            AnswerError::DeviceLost => Problem::device_lost(),
            AnswerError::TableFailed(table) => Problem::table_failed(&table, FILES_CHANGED),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.code.status().and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let document = Document {
            r#type: match self.code {
                // RFC 9458 sections 5.3 and 6.5.2 define these types.
                Code::OhttpKey => KEY_PROBLEM.to_owned(),
                Code::OhttpDate => DATE_PROBLEM.to_owned(),
                code => format!("urn:hushdb:problem:{}", code.word()),
            },
            title: self.code.title(),
            status: status.as_u16(),
            detail: &self.detail,
            code: self.code.word(),
            descriptor: self.descriptor.as_deref(),
        };
        let body = serde_json::to_vec(&document).expect("a struct of strings and numbers");
        let headers = [(CONTENT_TYPE, "application/problem+json"), (CACHE_CONTROL, "no-store")];
        let mut response = (status, headers, body).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        if let Some(bytes) = self.file_bytes {
            let range = format!("bytes */{bytes}").parse().expect("digits are a header value");
            response.headers_mut().insert(CONTENT_RANGE, range);
        }
        response
    }
}
