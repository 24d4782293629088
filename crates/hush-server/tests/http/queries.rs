//! Tests of `POST /v1/tables/{table}/query`: right answers, and each way to ask wrongly.

use hush_protocol::wire::{CONTENT_TYPE, Query, QueryRequest};
use hush_server::{ServerConfig, Throttle};
use prost::Message;

use crate::{
    client::{Client, Response, request},
    engine::{query, special},
    harness::{EPOCH, TestServer, config},
};

const PATH: &str = "/v1/tables/t/query";

fn server() -> TestServer {
    TestServer::with_engine(ServerConfig { max_queries: 6, ..config() }).0
}

/// Posts a valid request after `change`.
fn post(client: &mut Client, change: impl FnOnce(&mut QueryRequest)) -> Response {
    let mut request = request(EPOCH, &[query(1), query(2)]);
    change(&mut request);
    client.post_query(&request.encode_to_vec())
}

#[test]
fn answers_come_in_order_and_responses_have_one_size() {
    let server = server();
    let mut client = server.client();
    let queries: Vec<Query> = (0..6).map(query).collect();
    client.ask(EPOCH, &queries);
    let size = |response: Response| (response.body.len(), response.headers.len());
    let body = |seed| request(EPOCH, &[query(seed)]).encode_to_vec();
    let first = size(client.post_query(&body(1)));
    for seed in 2..20 {
        assert_eq!(size(client.post_query(&body(seed))), first);
    }
}

#[test]
fn requests_that_do_not_fit_the_table_are_refused() {
    let server = server();
    let mut client = server.client();
    let invalid = "invalid_request";
    post(&mut client, |r| r.version = 0).problem(415, "unsupported_version");
    post(&mut client, |r| r.version = 2).problem(415, "unsupported_version");
    post(&mut client, |r| r.epoch = vec![5; 31].into()).problem(400, invalid);
    post(&mut client, |r| r.epoch = vec![].into()).problem(400, invalid);
    post(&mut client, |r| r.protocol = "other".into()).problem(400, invalid);
    post(&mut client, |r| r.queries.clear()).problem(400, invalid);
    post(&mut client, |r| r.queries[1].first = vec![0; 7].into()).problem(400, invalid);
    post(&mut client, |r| r.queries[1].first = vec![0; 9].into()).problem(400, invalid);
    post(&mut client, |r| r.queries[0].second = vec![].into()).problem(400, invalid);
    post(&mut client, |r| r.queries = vec![query(1); 7]).problem(413, "too_large");
    let gone = post(&mut client, |r| r.epoch = vec![4; 32].into()).problem(410, "epoch_gone");
    assert_eq!(gone["descriptor"]["records"], 1000);
    client.post_query(b"\xff\xff\xff").problem(400, invalid);
    client.post_query(b"").problem(415, "unsupported_version");
    client.ask(EPOCH, &[query(1)]);
}

#[test]
fn details_never_echo_what_was_sent() {
    let server = server();
    let mut client = server.client();
    let secret = "c2VjcmV0";
    let response = post(&mut client, |r| r.protocol = secret.into());
    assert!(!String::from_utf8(response.body).unwrap().contains(secret));
}

#[test]
fn the_content_type_must_be_protobuf() {
    let server = server();
    let body = request(EPOCH, &[query(1)]).encode_to_vec();
    for wrong in ["application/json", "", "application/x-protobufs", "text/plain; application/x-protobuf"] {
        server.client().post(PATH, wrong, &body).problem(415, "unsupported_media_type");
    }
    let right = [CONTENT_TYPE, "Application/X-Protobuf", "application/x-protobuf; charset=binary"];
    for right in right {
        assert_eq!(server.client().post(PATH, right, &body).status, 200, "{right}");
    }
}

#[test]
fn responses_are_never_compressed() {
    let server = server();
    let mut client = server.client();
    let response = client.get_with("/v1/tables/t", "Accept-Encoding: gzip, br, zstd\r\n");
    assert_eq!(response.header("content-encoding"), None);
}

#[test]
fn a_client_that_asks_too_much_is_throttled() {
    let throttle = Some(Throttle { queries_per_second: 1, burst: 3 });
    let config = ServerConfig { throttle, ..config() };
    let (server, _engine) = TestServer::with_engine(config);
    let mut client = server.client();
    // The burst falls to 3 - 100: however slow the test, no token comes back in time.
    client.ask(EPOCH, &vec![query(1); 100]);
    let response = post(&mut client, |_| ());
    response.problem(429, "throttled");
    let seconds: u64 = response.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=98).contains(&seconds));
    assert_eq!(client.get("/v1/tables/t").status, 200);
}

#[test]
fn the_engine_can_refuse_a_query() {
    let server = server();
    let mut client = server.client();
    let body = request(EPOCH, &[query(1), special(crate::engine::REFUSED)]).encode_to_vec();
    let problem = client.post_query(&body).problem(400, "invalid_request");
    assert_eq!(problem["detail"], "query 1: a coefficient is too large");
}
