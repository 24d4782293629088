//! Tests of requests from pages of other origins.

use std::{fs, sync::Arc};

use hush_protocol::{Name, ohttp::GATEWAY_PATH};
use hush_server::{
    Gateway, Listeners, Operator, OperatorError, Relayed, Scope, Tables, Token, Tokens, Uplink, rotate,
    text_of_gateway_keys, text_of_tokens,
};
use tempfile::TempDir;

use crate::{
    client::{Client, Response},
    engine::SumEngine,
    harness::{EPOCH_BYTE, TestServer, config, name},
};

const PAGE: &str = "https://app.example";
const ALLOWED: &str = "access-control-allow-origin";

/// Returns a server of the table `t` for pages of these origins, with a gateway, and with tokens if it `has_tokens`.
fn start(origins: &[&str], has_tokens: bool) -> (TestServer, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let (sealed, granted) = (dir.path().join("gateway.json"), dir.path().join("tokens.json"));
    let mut keys = Vec::new();
    rotate(&mut keys, &[9; 32]);
    fs::write(&sealed, text_of_gateway_keys(&keys).as_bytes()).unwrap();
    let (token, _) = Token::new("a", &[3; 40], vec![Scope::Query]);
    fs::write(&granted, text_of_tokens(vec![token])).unwrap();
    let gateway = Gateway::open(&sealed).unwrap();
    let tokens = has_tokens.then(|| Tokens::open(&granted).unwrap());
    let tables = Tables::new();
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE))).unwrap();
    let origins = origins.iter().map(|origin| hush_server::origin(origin).unwrap()).collect();
    let server = TestServer::start_as(tables, config(), false, move |listeners: &mut Listeners| {
        listeners.gateway = Some(gateway);
        listeners.tokens = tokens;
        listeners.allowed_origins = origins;
    });
    (server, dir)
}

fn ask(client: &mut Client, method: &str, path: &str, fields: &str) -> Response {
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").as_bytes());
    if method == "HEAD" { client.receive_head() } else { client.receive() }
}

fn preflight(client: &mut Client, path: &str, origin: &str) -> Response {
    let fields = format!(
        "Origin: {origin}\r\nAccess-Control-Request-Method: PUT\r\n\
         Access-Control-Request-Headers: authorization,content-type\r\n\
         Access-Control-Request-Private-Network: true\r\n"
    );
    ask(client, "OPTIONS", path, &fields)
}

/// Returns the endpoints that clients ask.
fn paths() -> [String; 6] {
    let hash = "0".repeat(64);
    [
        "/v1/tables".into(),
        "/v1/tables/t".into(),
        "/v1/tables/t/query".into(),
        format!("/v1/blobs/{hash}"),
        format!("/v1/keys/{hash}"),
        GATEWAY_PATH.into(),
    ]
}

#[test]
fn a_page_of_a_listed_origin_may_ask() {
    let (server, _dir) = start(&[PAGE, "http://localhost:5173"], true);
    let mut client = server.client();
    for path in paths() {
        // A preflight carries no token.
        let response = preflight(&mut client, &path, PAGE);
        assert_eq!((response.status, response.header(ALLOWED)), (204, Some(PAGE)), "{path}");
        let listed = |name, word: &str| {
            let words = response.header(name).unwrap().split(", ");
            words.collect::<Vec<_>>().contains(&word)
        };
        for word in ["authorization", "content-type", "range", "if-range", "if-none-match"] {
            assert!(listed("access-control-allow-headers", word), "{word}");
        }
        assert!(
            ["GET", "HEAD", "POST", "PUT"].iter().all(|word| listed("access-control-allow-methods", word))
        );
        assert_eq!(response.header("access-control-allow-private-network"), Some("true"));
        assert_eq!(response.header("access-control-allow-credentials"), None);
        assert_eq!(response.header("vary"), Some("origin"));
        // A refusal is for the page to read.
        let response = ask(&mut client, "GET", &path, "Origin: http://localhost:5173\r\n");
        assert_eq!(response.header(ALLOWED), Some("http://localhost:5173"), "{path}");
        let exposed = response.header("access-control-expose-headers").unwrap();
        for word in ["retry-after", "content-range", "content-encoding", "date", "etag"] {
            assert!(exposed.split(", ").any(|exposed| exposed == word), "{word}");
        }
        assert_eq!(response.header("vary"), Some("origin"));
    }
}

#[test]
fn a_page_of_another_origin_may_not() {
    let (server, _dir) = start(&[PAGE], false);
    let mut client = server.client();
    let port = format!("{PAGE}:8443");
    for origin in
        ["https://evil.example", "https://app.example.evil.example", "http://app.example", "null", &port]
    {
        let response = preflight(&mut client, "/v1/tables", origin);
        response.problem(403, "forbidden");
        assert_eq!((response.header(ALLOWED), response.header("vary")), (None, Some("origin")), "{origin}");
        assert_eq!(response.header("access-control-allow-private-network"), None);
    }
    // A cache that has this response gives it to no page.
    for fields in ["", "Origin: https://evil.example\r\n", "Origin: https://app.example\r\nOrigin: x\r\n"] {
        let response = ask(&mut client, "GET", "/v1/tables", fields);
        assert_eq!((response.status, response.header(ALLOWED)), (200, None), "{fields}");
        assert_eq!(response.header("vary"), Some("origin"));
    }
}

#[test]
fn every_origin_may_ask_a_server_of_the_public() {
    let (server, _dir) = start(&["*"], false);
    let mut client = server.client();
    let response = preflight(&mut client, "/v1/tables/t/query", "https://any.example");
    assert_eq!((response.status, response.header(ALLOWED)), (204, Some("*")));
    // The header is missing for `*`: such a server may be reached from a private network only.
    assert_eq!(response.header("access-control-allow-private-network"), None);
    let response = ask(&mut client, "GET", "/v1/tables", "");
    assert_eq!((response.header(ALLOWED), response.header("vary")), (Some("*"), None));
}

struct NoOperator;

impl Operator for NoOperator {
    fn reload(&self, _: &Name) -> Result<[u8; 32], OperatorError> {
        Err(OperatorError::UnknownTable)
    }

    fn compact(&self, _: &Name) -> Result<(), OperatorError> {
        Err(OperatorError::UnknownTable)
    }
}

#[test]
fn what_is_for_operators_is_for_no_page() {
    let tables = Tables::new();
    let (to, from) = std::sync::mpsc::channel();
    let server = TestServer::start_as(tables, config(), false, move |listeners: &mut Listeners| {
        let admin = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        admin.set_nonblocking(true).unwrap();
        to.send(admin.local_addr().unwrap()).unwrap();
        listeners.admin = Some((tokio::net::TcpListener::from_std(admin).unwrap(), Arc::new(NoOperator)));
        listeners.allowed_origins = vec![PAGE.into()];
    });
    let origin = format!("Origin: {PAGE}\r\n");
    let mut client = server.client();
    for path in ["/metrics", "/info", "/livez", "/readyz", "/", "/nothing"] {
        assert_eq!(ask(&mut client, "GET", path, &origin).header(ALLOWED), None, "{path}");
        let response = preflight(&mut client, path, PAGE);
        assert!(response.status >= 400 && response.header(ALLOWED).is_none(), "{path}");
    }
    let mut admin = Client::connect(from.recv().unwrap());
    for response in
        [preflight(&mut admin, "/v1/admin/tables", PAGE), ask(&mut admin, "GET", "/v1/admin/tables", &origin)]
    {
        assert_eq!((response.status, response.header(ALLOWED)), (403, None));
    }
}

#[test]
fn without_origins_nothing_is_said_of_them() {
    let (server, _dir) = start(&[], false);
    let mut client = server.client();
    preflight(&mut client, "/v1/tables", PAGE).problem(405, "method_not_allowed");
    let response = ask(&mut client, "GET", "/v1/tables", &format!("Origin: {PAGE}\r\n"));
    assert_eq!((response.status, response.header(ALLOWED), response.header("vary")), (200, None, None));
}

struct Silent;

impl Uplink for Silent {
    fn keys(&self) -> Result<Relayed, String> {
        Err("no gateway".into())
    }

    fn pass_on(&self, _: &[u8]) -> Result<Relayed, String> {
        Err("no gateway".into())
    }
}

#[test]
fn a_relay_is_for_pages_too() {
    let server = TestServer::start_as(Tables::new(), config(), false, |listeners: &mut Listeners| {
        listeners.uplink = Some(Arc::new(Silent));
        listeners.allowed_origins = vec![PAGE.into()];
    });
    let mut client = server.client();
    assert_eq!(preflight(&mut client, "/", PAGE).status, 204);
    let response = ask(&mut client, "GET", "/", &format!("Origin: {PAGE}\r\n"));
    assert_eq!((response.status, response.header(ALLOWED)), (502, Some(PAGE)));
}
