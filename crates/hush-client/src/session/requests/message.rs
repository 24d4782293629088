//! Requests and responses, independent of a transport.

use std::time::Duration;

/// A request that a driver sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method of the request.
    pub method: Method,
    /// The path after the server's base URL. It begins with a slash.
    pub path: String,
    /// The headers, except those that every transport sets itself. Names are in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body. Empty for [`Method::Get`].
    pub body: Vec<u8>,
    /// The most bytes of the response's body that are read, for any status.
    pub max_response_bytes: u64,
    /// Whether this is the last request of the call, unless a failure causes more.
    pub is_last: bool,
    /// The time after which the driver must cancel the request, as after a silence of the server.
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
    /// The headers, with names in any case. Bytes that are not UTF-8 may be replaced.
    pub headers: Vec<(String, String)>,
    /// The length of the body in bytes, if the transport knows it.
    pub body_bytes: Option<u64>,
}

impl Head {
    /// Returns the first header with this name, which must be in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(in crate::session) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}
