//! Tests with bytes that no client of ours would send. The server refuses them and goes on.

use std::{sync::Arc, time::Duration};

use hush_protocol::wire::CONTENT_TYPE;
use hush_server::{ServerConfig, Tables};
use prost::Message;
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};

use crate::{
    client::{Client, post_bytes, request},
    engine::{ANSWER_BYTES, SumEngine, query},
    harness::{EPOCH, EPOCH_BYTE, TestServer, config, name},
};

/// Returns settings of two queries a request: a body has at most about 4 KiB.
fn small() -> ServerConfig {
    ServerConfig { max_queries: 2, ..config() }
}

fn head(extra: &str) -> Vec<u8> {
    let line = "POST /v1/tables/t/query HTTP/1.1\r\nHost: localhost\r\n";
    format!("{line}Content-Type: {CONTENT_TYPE}\r\n{extra}\r\n").into_bytes()
}

#[test]
fn random_and_damaged_bodies_are_refused() {
    let (server, engine) = TestServer::with_engine(config());
    let mut client = server.client();
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let valid = request(EPOCH, &[query(1), query(2)]).encode_to_vec();
    for round in 0..600 {
        let body = match round % 3 {
            0 => {
                let mut body = vec![0; rng.next_u32() as usize % 300];
                rng.fill_bytes(&mut body);
                body
            }
            // Field 4 is cut off or missing: the queries always end the message.
            1 => valid[..rng.next_u32() as usize % (valid.len() - 33)].to_vec(),
            _ => {
                let mut body = valid.clone();
                // The changed bit is inside the epoch, the protocol or a length: never inside a ciphertext.
                let at = rng.next_u32() as usize % 41;
                body[at] ^= 1 << (rng.next_u32() % 8);
                body
            }
        };
        let response = client.post_query(&body);
        let expected = [400, 410, 413, 415];
        assert!(expected.contains(&response.status), "round {round}: {}", response.status);
    }
    assert!(engine.batches().is_empty());
    client.ask(EPOCH, &[query(1)]);
}

#[test]
fn many_empty_queries_are_counted_not_built() {
    let (server, _engine) = TestServer::with_engine(small());
    let mut client = server.client();
    client.post_query(&[0x22, 0].repeat(2000)).problem(413, "too_large");
    client.ask(EPOCH, &[query(1)]);
}

#[test]
fn a_body_that_declares_too_much_is_refused_unread() {
    let (server, _engine) = TestServer::with_engine(small());
    for length in ["5000", "99999999999999", "9999999999999999999"] {
        let mut client = server.client();
        client.send(&head(&format!("Content-Length: {length}\r\n")));
        // The client has sent no byte of the body.
        client.receive().problem(413, "too_large");
    }
}

#[test]
fn the_refusal_reaches_a_client_that_keeps_sending() {
    let (server, _engine) = TestServer::with_engine(small());
    let mut client = server.client();
    client.post_query(&vec![0; 3 << 20]).problem(413, "too_large");
    assert!(client.is_closed_by_server());
}

#[test]
fn a_chunked_body_is_cut_off_at_the_limit() {
    let (server, _engine) = TestServer::with_engine(small());
    let mut client = server.client();
    client.send(&head("Transfer-Encoding: chunked\r\n"));
    for _ in 0..10 {
        client.send(format!("3e8\r\n{}\r\n", "x".repeat(1000)).as_bytes());
    }
    // The client has sent no last chunk.
    client.receive().problem(413, "too_large");
}

#[test]
fn a_chunked_body_within_the_limit_is_fine() {
    let (server, _engine) = TestServer::with_engine(small());
    let mut client = server.client();
    let body = request(EPOCH, &[query(1)]).encode_to_vec();
    client.send(&head("Transfer-Encoding: chunked\r\n"));
    for piece in body.chunks(10) {
        client.send(format!("{:x}\r\n", piece.len()).as_bytes());
        client.send(piece);
        client.send(b"\r\n");
    }
    client.send(b"0\r\n\r\n");
    client.receive_answers(EPOCH, &[query(1)]);
}

#[test]
fn bad_http_gets_an_error_or_a_close() {
    let (server, _engine) = TestServer::with_engine(small());
    for bytes in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(),
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        &head("Content-Length: -1\r\n"),
        &head("Content-Length: 1\r\nContent-Length: 2\r\n"),
        &head(&format!("X: {}\r\n", "x".repeat(100_000))),
    ] {
        let mut client = server.client();
        client.send(bytes);
        let status = client.receive().status;
        assert!([400, 431].contains(&status), "{status}");
    }
    // HTTP/2 cannot be refused in HTTP/1.1.
    let mut client = server.client();
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert!(client.is_closed_by_server());
    server.client().ask(EPOCH, &[query(1)]);
}

/// Asks until the answer is not 503: memory comes back just after the last byte that it was for.
fn status_when_free(client: &mut Client, body: &[u8]) -> u16 {
    let mut statuses = (0..10_000).map(|_| client.post_query(body).status);
    statuses.find(|&status| status != 503).expect("memory that was never given back")
}

#[test]
fn memory_for_bodies_is_bounded_and_given_back() {
    let body = request(EPOCH, &[query(1), query(2)]).encode_to_vec();
    let config = ServerConfig { max_body_memory: body.len() + 2 * ANSWER_BYTES, ..small() };
    let (server, engine) = TestServer::with_engine(config);
    engine.hold();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(1), query(2)]);
    engine.wait_for_scans(1);
    let mut second = server.client();
    second.post_query(&body).problem(503, "overloaded");
    engine.release();
    first.receive_answers(EPOCH, &[query(1), query(2)]);
    assert_eq!(status_when_free(&mut second, &body), 200);
}

/// The bytes of a large answer: more than the socket buffers of both ends hold.
const LARGE: usize = 48 << 20;

/// Returns a server whose answers are large, with memory for one of them but not for two.
fn with_large_answers() -> TestServer {
    let tables = Tables::new();
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE).with_answer_bytes(LARGE))).unwrap();
    TestServer::start(tables, ServerConfig { max_body_memory: LARGE + 8000, ..small() })
}

#[test]
fn a_response_that_nobody_reads_counts_until_it_is_written() {
    let server = with_large_answers();
    let body = request(EPOCH, &[query(1)]).encode_to_vec();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(1)]);
    // The connection has taken the body of its response, and written the first part of it.
    let mut response = first.receive_head();
    assert_eq!(response.status, 200);
    let mut second = server.client();
    for _ in 0..3 {
        second.post_query(&body).problem(503, "overloaded");
    }
    first.receive_body(&mut response);
    assert!(response.body.len() > LARGE);
    assert_eq!(status_when_free(&mut second, &body), 200);
}

/// Returns a request with `padding` bytes in an unknown field.
fn padded(mut body: Vec<u8>, padding: usize) -> Vec<u8> {
    // The tag of field 15, and a length of two bytes.
    body.extend([0x7a, padding as u8 | 0x80, (padding >> 7) as u8]);
    body.resize(body.len() + padding, 0);
    body
}

#[test]
fn a_body_gives_its_memory_back_when_its_queries_are_answered() {
    let body = padded(request(EPOCH, &[query(1)]).encode_to_vec(), 4000);
    let tables = Tables::new();
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE).with_answer_bytes(LARGE))).unwrap();
    // The memory is for two answers, but for one body only.
    let max_body_memory = 2 * LARGE + body.len() + body.len() / 2;
    let server = TestServer::start(tables, ServerConfig { max_body_memory, ..small() });
    let mut first = server.client();
    first.send(&post_bytes("/v1/tables/t/query", CONTENT_TYPE, &body));
    let mut response = first.receive_head();
    // The response of the first client is not read.
    assert_eq!(status_when_free(&mut server.client(), &body), 200);
    first.receive_body(&mut response);
}

#[test]
fn answers_give_their_memory_back_one_by_one() {
    let tables = Tables::new();
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE).with_answer_bytes(LARGE))).unwrap();
    // The memory is for two answers.
    let config = ServerConfig { max_body_memory: 2 * LARGE + 8000, ..small() };
    let server = TestServer::start(tables, config);
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(1), query(2)]);
    let mut response = first.receive_head();
    let mut second = server.client();
    let body = request(EPOCH, &[query(3)]).encode_to_vec();
    second.post_query(&body).problem(503, "overloaded");
    // The first client reads one of its answers, and a little of the other.
    first.receive_some(&mut response, LARGE + (1 << 20));
    assert_eq!(status_when_free(&mut second, &body), 200);
    first.receive_body(&mut response);
    assert!(response.body.len() > 2 * LARGE);
}

#[test]
fn a_client_that_reads_nothing_takes_its_share_of_memory_alone() {
    let tables = Tables::new();
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE).with_answer_bytes(LARGE))).unwrap();
    // The memory is for two answers, one of each client.
    let config = ServerConfig { max_body_memory: 2 * LARGE + 8000, client_share: 50, ..small() };
    let server = TestServer::start(tables, config);
    let body = request(EPOCH, &[query(1)]).encode_to_vec();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(1)]);
    let _response = first.receive_head();
    let refused = server.client().post_query(&body);
    refused.problem(429, "throttled");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(Client::connect_from([127, 0, 0, 2], server.address).post_query(&body).status, 200);
}

#[test]
fn a_client_that_leaves_its_response_unread_gives_its_memory_back() {
    let server = with_large_answers();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(1)]);
    server.wait_for_metric("hush_queries_answered_total{table=\"t\"}", 1.0);
    first.close();
    server.wait_for_connections(0);
    let body = request(EPOCH, &[query(1)]).encode_to_vec();
    assert_eq!(status_when_free(&mut server.client(), &body), 200);
}

#[test]
fn answers_that_never_fit_are_too_large() {
    let server = with_large_answers();
    let body = request(EPOCH, &[query(1), query(2)]).encode_to_vec();
    server.client().post_query(&body).problem(413, "too_large");
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_body_leaves_nothing_behind() {
    let body = request(EPOCH, &[query(1), query(2)]).encode_to_vec();
    let config = ServerConfig { max_body_memory: body.len() + 2 * ANSWER_BYTES, ..small() };
    let (server, engine) = TestServer::with_engine(config);
    for cut in [0, 1, body.len() / 2, body.len() - 1] {
        let mut client = server.client();
        client.send(&head(&format!("Content-Length: {}\r\n", body.len())));
        client.send(&body[..cut]);
        client.close();
    }
    server.wait_for_connections(0);
    server.client().ask(EPOCH, &[query(1), query(2)]);
    assert_eq!(engine.batches(), [2]);
}

#[test]
fn slow_bodies_and_headers_time_out() {
    let limit = Duration::from_millis(100);
    let config = ServerConfig { header_timeout: limit, body_timeout: limit, ..small() };
    let (server, _engine) = TestServer::with_engine(config);
    let mut slow_body = server.client();
    slow_body.send(&head("Content-Length: 10\r\n"));
    slow_body.send(b"12345");
    slow_body.receive().problem(408, "timeout");
    assert!(slow_body.is_closed_by_server());

    let mut slow_header = server.client();
    slow_header.send(b"GET /livez HTTP/1.1\r\nHost: t");
    assert!(slow_header.is_closed_by_server());
    let mut silent = server.client();
    assert!(silent.is_closed_by_server());
}

#[test]
fn a_client_that_reads_nothing_is_cut_off() {
    let file = tempfile::tempfile().unwrap();
    // The file has more bytes than the socket buffers of both ends hold.
    file.set_len(64 << 20).unwrap();
    let tables = Tables::new();
    tables.insert(&name("t"), Arc::new(SumEngine::new(1).with_blob([1; 32], file, 64 << 20))).unwrap();
    let config = ServerConfig { write_timeout: Duration::from_millis(100), ..small() };
    let server = TestServer::start(tables, config);
    let mut client = server.client();
    client.send(format!("GET /v1/blobs/{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "01".repeat(32)).as_bytes());
    server.wait_for_connections(0);
    assert!(client.rest().len() < 64 << 20);
}
