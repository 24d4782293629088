//! Tests of requests that are sealed for the gateway of Oblivious HTTP.

use std::{
    fs,
    io::Cursor,
    time::{Duration, SystemTime},
};

use bhttp::{Message, Mode};
use hush_protocol::ohttp::{DATE_PROBLEM, GATEWAY_PATH, KEY_PROBLEM, PADDING, padded};
use hush_protocol::wire::{Query, QueryResponse};
use hush_server::{
    Gateway, Scope, ServerConfig, Tables, Token, Tokens, rotate, text_of_gateway_keys, text_of_tokens,
};
use ohttp::{ClientRequest, ClientResponse};
use prost::Message as _;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    client::{Client, Response, request},
    engine::{MAX_BATCH, REFUSED, SumEngine, expected, query, special},
    harness::{EPOCH, EPOCH_BYTE, TestServer, config, name},
};

const QUERY_PATH: &str = "/v1/tables/t/query";

fn start(config: ServerConfig, engine: SumEngine, tokens: Option<Token>) -> (TestServer, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("gateway.json");
    let mut keys = Vec::new();
    rotate(&mut keys, &[9; 32]);
    fs::write(&path, text_of_gateway_keys(&keys).as_bytes()).unwrap();
    let gateway = Gateway::open(&path).unwrap();
    let tokens = tokens.map(|token| {
        let path = dir.path().join("tokens.json");
        fs::write(&path, text_of_tokens(vec![token])).unwrap();
        Tokens::open(&path).unwrap()
    });
    let tables = Tables::new();
    tables.insert(&name("t"), std::sync::Arc::new(engine)).unwrap();
    let server = TestServer::start_as(tables, config, true, move |listeners| {
        listeners.gateway = Some(gateway);
        listeners.tokens = tokens;
    });
    (server, dir)
}

/// A client behind a relay.
struct Behind {
    client: Client,
    keys: Vec<u8>,
}

impl Behind {
    fn of(server: &TestServer) -> Behind {
        let mut client = server.client();
        let keys = client.get(GATEWAY_PATH);
        assert_eq!(keys.header("content-type"), Some("application/ohttp-keys"));
        Behind { client, keys: keys.body }
    }

    fn post(&mut self, sealed: &[u8]) -> Response {
        let head = format!(
            "POST {GATEWAY_PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: message/ohttp-req\r\nContent-Length: {}\r\n\r\n",
            sealed.len()
        );
        self.client.send(&[head.as_bytes(), sealed].concat());
        self.client.receive()
    }

    fn seal(&self, message: &[u8]) -> (Vec<u8>, ClientResponse) {
        ClientRequest::from_encoded_config_list(&self.keys).unwrap().encapsulate(message).unwrap()
    }

    /// Sends a request through the relay. Returns the status, the body, and the bytes that the relay sees of the response.
    fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> (u16, Vec<u8>, usize) {
        let date = httpdate::fmt_http_date(SystemTime::now());
        let headers = [headers, &[("date", date.as_str())]].concat();
        let (sealed, opens) = self.sealed(method, path, &headers, body);
        let response = self.post(&sealed);
        assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
        assert_eq!(response.header("content-type"), Some("message/ohttp-res"));
        let (status, message) = opened(opens, &response);
        (status, message.content().to_vec(), response.body.len())
    }

    /// Returns a request as it goes to a relay.
    fn sealed(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> (Vec<u8>, ClientResponse) {
        let text = |text: &str| text.as_bytes().to_vec();
        let mut message = Message::request(text(method), text("https"), text("any.example"), text(path));
        for (name, value) in headers {
            message.put_header(*name, *value);
        }
        message.write_content(body);
        let mut bytes = Vec::new();
        message.write_bhttp(Mode::KnownLength, &mut bytes).unwrap();
        bytes.resize(padded(bytes.len()), 0);
        self.seal(&bytes)
    }

    fn query(
        &mut self,
        epoch: [u8; 32],
        queries: &[Query],
        headers: &[(&str, &str)],
    ) -> (u16, Vec<u8>, usize) {
        let headers = [&[("content-type", "application/x-protobuf")], headers].concat();
        self.ask("POST", QUERY_PATH, &headers, &request(epoch, queries).encode_to_vec())
    }
}

/// Returns the status of a sealed response, and the whole of it.
fn opened(opens: ClientResponse, response: &Response) -> (u16, Message) {
    let opened = opens.decapsulate(&response.body).unwrap();
    assert_eq!(opened.len() % PADDING, 0);
    let message = Message::read_bhttp(&mut Cursor::new(opened)).unwrap();
    (message.control().status().unwrap().code(), message)
}

fn code(body: &[u8]) -> String {
    serde_json::from_slice::<Value>(body).unwrap()["code"].as_str().unwrap().to_owned()
}

#[test]
fn a_relay_cannot_tell_an_answer_from_a_refusal() {
    let engine = || SumEngine::new(EPOCH_BYTE).with_answer_bytes(5000);
    let (server, _dir) = start(config(), engine(), None);
    let mut behind = Behind::of(&server);
    let (status, body, length) = behind.query(EPOCH, &[query(1)], &[]);
    assert_eq!(status, 200);
    let answers = QueryResponse::decode(&*body).unwrap().answers;
    assert_eq!(answers[0].words[..16], expected(&query(1)));
    let (status, body, refused) = behind.query(EPOCH, &[special(REFUSED)], &[]);
    assert_eq!((status, code(&body).as_str(), refused), (400, "invalid_request", length));
    let (status, body, gone) = behind.query([77; 32], &[query(1)], &[]);
    assert_eq!((status, code(&body).as_str(), gone), (410, "epoch_gone", length));

    let full = ServerConfig {
        throttle: Some(hush_server::Throttle { queries_per_second: 1, burst: 1 }),
        ..config()
    };
    let (server, _dir) = start(full, engine(), None);
    let mut behind = Behind::of(&server);
    assert_eq!(behind.query(EPOCH, &[query(1)], &[]).2, length);
    let (status, body, throttled) = behind.query(EPOCH, &[query(1)], &[]);
    assert_eq!((status, code(&body).as_str(), throttled), (429, "throttled", length));

    // A request of two queries has a response as long as two answers, whatever it says.
    let (server, _dir) = start(config(), engine(), None);
    let mut behind = Behind::of(&server);
    let (_, _, two) = behind.query(EPOCH, &[query(1), query(2)], &[]);
    assert!(two > length && two == behind.query(EPOCH, &[query(3), special(REFUSED)], &[]).2);
}

#[test]
fn what_is_sealed_is_answered_as_if_it_had_come_by_itself() {
    let (token, text) = Token::new("a", &[3; 40], vec![Scope::Query, Scope::Admin]);
    let (server, _dir) = start(config(), SumEngine::new(EPOCH_BYTE), Some(token));
    let mut behind = Behind::of(&server);
    let bearer = format!("Bearer {}", *text);
    let with_token = [("authorization", bearer.as_str())];
    assert_eq!(code(&behind.ask("GET", "/v1/tables", &[], &[]).1), "unauthorized");
    let (status, list, _) = behind.ask("GET", "/v1/tables", &with_token, &[]);
    assert_eq!(
        (status, serde_json::from_slice::<Value>(&list).unwrap()["tables"][0]["name"].as_str()),
        (200, Some("t"))
    );
    let many: Vec<Query> = (0..2 * MAX_BATCH as u8).map(query).collect();
    assert_eq!(behind.query(EPOCH, &many, &with_token).0, 200);
    // The endpoints of operators are not there, nor is another gateway.
    for path in [GATEWAY_PATH, "/metrics", "/livez", "/v1/admin/tables/t/reload"] {
        assert_eq!(code(&behind.ask("GET", path, &with_token, &[]).1), "not_found", "{path}");
    }
}

#[test]
fn a_sealed_request_is_answered_and_charged_once() {
    let (mut token, text) = Token::new("a", &[3; 40], vec![Scope::Query]);
    token.queries_per_second = Some(1);
    let (server, _dir) = start(config(), SumEngine::new(EPOCH_BYTE), Some(token));
    let mut behind = Behind::of(&server);
    let bearer = format!("Bearer {}", *text);
    let body = request(EPOCH, &[query(1)]).encode_to_vec();
    let headers = |date: &str| {
        let of_query =
            [("content-type", "application/x-protobuf"), ("authorization", bearer.as_str()), ("date", date)];
        of_query.map(|(name, value)| (name, value.to_owned()))
    };
    let seal = |behind: &Behind, date: &str| {
        let headers = headers(date);
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        behind.sealed("POST", QUERY_PATH, &headers, &body)
    };
    let now = httpdate::fmt_http_date(SystemTime::now());
    let (sealed, opens) = seal(&behind, &now);
    assert_eq!(opened(opens, &behind.post(&sealed)).0, 200);
    // The request is sent as often as its token allows, and more often.
    for _ in 0..20 {
        behind.post(&sealed).problem(409, "ohttp_replay");
    }
    assert_eq!(server.metric("hush_ohttp_replays_total"), Some(20.0));
    assert_eq!(server.metric("hush_queries_answered_total{table=\"t\"}"), Some(1.0));
    let (sealed, opens) = seal(&behind, &now);
    assert_eq!(opened(opens, &behind.post(&sealed)).0, 200, "replays are not charged");

    // A request with another date is refused. The response has a date that is accepted, and looks no different to the relay.
    let length = behind.post(&seal(&behind, &now).0).body.len();
    let old = httpdate::fmt_http_date(SystemTime::now() - Duration::from_secs(3600));
    let future = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3600));
    for date in [old.as_str(), future.as_str(), "yesterday", ""] {
        let (sealed, opens) = seal(&behind, date);
        let response = behind.post(&sealed);
        assert_eq!(response.body.len(), length);
        let (status, message) = opened(opens, &response);
        let problem: Value = serde_json::from_slice(message.content()).unwrap();
        assert_eq!((status, problem["type"].as_str()), (400, Some(DATE_PROBLEM)), "{date}");
        let field = message.header().get(b"date").unwrap();
        let taken = String::from_utf8(field.to_vec()).unwrap();
        assert!(httpdate::parse_http_date(&taken).is_ok());
        let response = behind.post(&seal(&behind, &taken).0);
        assert_eq!((response.status, response.body.len()), (200, length));
    }
    assert_eq!(server.metric("hush_ohttp_dates_refused_total"), Some(4.0));
}

#[test]
fn what_cannot_be_opened_or_read_is_refused() {
    let (server, _dir) = start(config(), SumEngine::new(EPOCH_BYTE), None);
    let mut behind = Behind::of(&server);
    let (sealed, _) = behind.seal(b"");
    let mut other = sealed.clone();
    other[0] ^= 1;
    let response = behind.post(&other);
    let problem = response.json();
    assert_eq!((response.status, problem["type"].as_str()), (400, Some(KEY_PROBLEM)));
    for at in [1, 7, sealed.len() - 1] {
        let mut other = sealed.clone();
        other[at] ^= 1;
        behind.post(&other).problem(400, "invalid_request");
    }
    behind.post(b"").problem(400, "invalid_request");
    for message in [
        &b""[..],
        b"\x01\x40\xc8\x00\x00\x00",
        b"\x00\x03G T\x05https\x00\x01/\x00",
        b"\x00\x03GET\x05https\x00\x03://\x00",
        b"\x00\x03GET\x05https\x00\x01/\x04\x01\x0a\x01a",
        b"\x00\x03GET\x05https\x00\x01/\x00\x05ab",
        b"\x03\x03GET\x05https\x00\x01/",
    ] {
        let (sealed, _) = behind.seal(message);
        behind.post(&sealed).problem(400, "invalid_request");
    }
    // A request that is refused before it is read ends its connection.
    let length = 1 << 30;
    behind.client.send(
        format!("POST {GATEWAY_PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: message/ohttp-req\r\nContent-Length: {length}\r\n\r\n")
            .as_bytes(),
    );
    behind.client.receive().problem(413, "too_large");
}

#[test]
fn a_file_that_is_too_long_is_to_be_asked_for_in_ranges() {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &[5; 100_000]).unwrap();
    let small = ServerConfig { max_body_memory: 250_000, ..config() };
    let (server, _dir) = start(small, SumEngine::new(EPOCH_BYTE).with_blob([6; 32], file, 100_000), None);
    let mut behind = Behind::of(&server);
    let path = format!("/v1/blobs/{}", hex::encode([6; 32]));
    assert_eq!(code(&behind.ask("GET", &path, &[], &[]).1), "too_large");
    let (status, part, _) = behind.ask("GET", &path, &[("range", "bytes=10-50009")], &[]);
    assert_eq!((status, part), (206, vec![5; 50_000]));
}
