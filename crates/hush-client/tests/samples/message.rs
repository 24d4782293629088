//! Requests and replies, however they travel.

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

/// The reply of the server.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// The connection closes after so many bytes of the body.
    pub(crate) cut: Option<usize>,
    /// The length that the header states, if not the true one.
    pub(crate) stated_length: Option<u64>,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), cut: None, stated_length: None }
    }

    pub(crate) fn problem(status: u16, code: &str, detail: &str) -> Self {
        let document = serde_json::json!({ "status": status, "code": code, "detail": detail });
        Self::new(status, document.to_string())
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }
}
