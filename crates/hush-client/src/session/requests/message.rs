//! Requests and what comes back, without a transport.

use std::time::Duration;

/// A request to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method of the request.
    pub method: Method,
    /// The path behind the server's base URL; begins with a slash.
    pub path: String,
    /// Headers beside those that every transport sets itself; names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body; empty for [`Method::Get`].
    pub body: Vec<u8>,
    /// The most bytes of the response's body that are read, whatever its status.
    pub max_response_bytes: u64,
    /// Whether the call makes no request after this one, if all goes well.
    pub is_last: bool,
    /// How much longer the call may take: a driver gives the request up then, as after a silence.
    pub time_left: Option<Duration>,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
}

impl Method {
    /// Returns the name of the method in HTTP.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }
}

/// A response without its body. A driver follows no redirects and decodes no content codings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// The headers, names in any case; bytes that are not UTF-8 may be replaced.
    pub headers: Vec<(String, String)>,
    /// Bytes of the body, if the transport knows.
    pub body_bytes: Option<u64>,
}

impl Head {
    /// Returns the first header of this name, which is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(in crate::session) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}
