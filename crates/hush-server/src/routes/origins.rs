//! Cross-origin requests (CORS): which pages may look records up from a browser.
//!
//! A browser sends the request of a page, and hands the response over only if the server names the page's origin. Health,
//! metrics, the admin endpoints and the server's own page never name one.

use std::sync::Arc;

use axum::{
    extract::{MatchedPath, Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{
            ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
            ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
            VARY,
        },
        uri::Authority,
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use hush_protocol::ohttp::GATEWAY_PATH;

use super::{Endpoints, host::host_of};
use crate::problem::{Code, Problem};

/// The text for every origin.
const ANY: &str = "*";
const METHODS: &str = "GET, HEAD, POST, PUT";
/// The headers of requests that clients set and a browser does not allow by itself.
const REQUEST_HEADERS: &str = "authorization, content-type, if-none-match, if-range, range";
/// The headers of responses that clients read and a browser does not show by itself.
const RESPONSE_HEADERS: &str = "content-encoding, content-range, date, etag, retry-after";
/// The seconds for which a browser need not ask again: the most that Chromium takes.
const MAX_AGE: &str = "7200";
/// The header of a request from a page of a public address to a server of a private one (Private Network Access).
const PRIVATE_ASKED: &str = "access-control-request-private-network";
const PRIVATE_ALLOWED: &str = "access-control-allow-private-network";

/// The origins whose pages may look records up.
pub(crate) struct Origins(Vec<String>);

impl Origins {
    /// Creates the origins of a list of [`origin`]s; `None` if the list is empty.
    pub(crate) fn new(origins: Vec<String>) -> Option<Arc<Self>> {
        (!origins.is_empty()).then(|| Arc::new(Self(origins)))
    }

    fn are_any(&self) -> bool {
        self.0.iter().any(|origin| origin == ANY)
    }

    /// Returns the origin that a response to these headers names: `*`, or the origin of the page if it is listed.
    fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        if self.are_any() {
            return Some(HeaderValue::from_static(ANY));
        }
        let mut pages = headers.get_all(ORIGIN).iter();
        let page = pages.next().filter(|_| pages.next().is_none())?;
        self.0.iter().any(|origin| origin.as_bytes() == page.as_bytes()).then(|| page.clone())
    }

    /// Adds the headers that a browser needs in every response, refusals included: their reasons are for the page, too.
    fn name(&self, asked: &HeaderMap, response: &mut Response) {
        let headers = response.headers_mut();
        if let Some(origin) = self.allowed(asked) {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(RESPONSE_HEADERS));
        }
        if !self.are_any() {
            headers.append(VARY, HeaderValue::from_name(ORIGIN));
        }
    }

    /// Answers a browser that asks whether a page may send a request. Credentials are never allowed: a token is a
    /// header that the page sets itself.
    fn preflight(&self, asked: &HeaderMap) -> Response {
        if self.allowed(asked).is_none() {
            let detail =
                "pages of this origin may not ask here: who runs the server allows them (allow-origin)";
            return Problem::new(Code::Forbidden, detail).into_response();
        }
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(REQUEST_HEADERS));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
        // `*` is for servers of the public: it opens no server of a private network to every page of the web.
        if asked.contains_key(PRIVATE_ASKED) && !self.are_any() {
            headers.insert(PRIVATE_ALLOWED, HeaderValue::from_static("true"));
        }
        response
    }
}

/// Reads an origin as a browser writes it, such as `https://app.example` or `http://localhost:5173`; or `*`, every origin.
/// Returns the same text.
///
/// # Errors
/// Advice, if a browser would never send the text, with the text that it would send where that is clear.
pub fn origin(text: &str) -> Result<String, String> {
    if text == ANY {
        return Ok(ANY.into());
    }
    let refused = || {
        "an origin is a scheme and a host, as https://app.example or http://localhost:5173, or * for every origin"
            .to_owned()
    };
    let lower = text.to_ascii_lowercase();
    let (scheme, rest) = lower.split_once("://").ok_or_else(refused)?;
    let authority: Authority = rest.trim_end_matches('/').parse().map_err(|_| refused())?;
    let host = host_of(&authority).ok_or_else(refused)?;
    if scheme.is_empty()
        || !scheme.bytes().all(|byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        || !host.bytes().all(|byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte))
    {
        return Err(refused());
    }
    let port = authority.port_u16().filter(|port| !matches!((scheme, *port), ("http", 80) | ("https", 443)));
    let written = format!("{scheme}://{host}{}", port.map(|port| format!(":{port}")).unwrap_or_default());
    if written == text { Ok(written) } else { Err(format!("a browser writes this origin {written}")) }
}

/// Answers preflights, and names the origin of a page in responses, at the endpoints for clients. Without `origins`, passes every
/// request on.
pub(super) async fn check(
    State((origins, endpoints)): State<(Option<Arc<Origins>>, Endpoints)>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let Some(origins) = origins.filter(|_| is_for_clients(endpoints, route)) else {
        return next.run(request).await;
    };
    let asked = request.headers().clone();
    let is_preflight =
        request.method() == Method::OPTIONS && asked.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if is_preflight { origins.preflight(&asked) } else { next.run(request).await };
    origins.name(&asked, &mut response);
    response
}

/// Returns whether the endpoint at this route is for clients, and not for operators or for the server's own page.
fn is_for_clients(endpoints: Endpoints, route: &str) -> bool {
    match endpoints {
        Endpoints::Relay => true,
        Endpoints::Health | Endpoints::Admin => false,
        Endpoints::All | Endpoints::Tables => matches!(
            route,
            "/v1/tables"
                | "/v1/tables/{table}"
                | "/v1/tables/{table}/query"
                | "/v1/blobs/{hash}"
                | "/v1/keys/{hash}"
                | GATEWAY_PATH
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_written_as_a_browser_writes_it() {
        for good in [
            "*",
            "https://app.example",
            "https://app.example:8443",
            "http://localhost:5173",
            "http://127.0.0.1:8080",
            "http://[::1]:8080",
            "chrome-extension://abcdefgh",
        ] {
            assert_eq!(origin(good).as_deref(), Ok(good));
        }
        for (text, written) in [
            ("https://app.example/", "https://app.example"),
            ("HTTPS://App.Example", "https://app.example"),
            ("https://app.example:443", "https://app.example"),
            ("http://app.example.:80", "http://app.example"),
        ] {
            assert_eq!(origin(text), Err(format!("a browser writes this origin {written}")));
        }
        for bad in [
            "",
            "null",
            "app.example",
            "https://",
            "://app.example",
            "https://*.app.example",
            "https://app.example/path",
            "https://me@app.example",
            "https://a.example,https://b.example",
            "https://bücher.example",
        ] {
            assert!(origin(bad).unwrap_err().starts_with("an origin is"), "{bad}");
        }
    }
}
