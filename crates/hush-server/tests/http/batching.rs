//! Tests of how queries share scans. No test depends on time: windows are very long, or scans are held.

use std::{thread, time::Duration};

use hush_engine::Device;
use hush_server::ServerConfig;
use prost::Message;

use crate::{
    client::{Client, request},
    engine::{MAX_BATCH, NO_MEMORY, PANICS, PART_GONE, REFUSED, SHORT_ANSWER, query, special},
    harness::{EPOCH, TestServer, config},
};

/// A window that no test outlives: a query that waits for it fails.
const FOREVER: Duration = Duration::from_secs(3600);

fn with_window(window: Duration) -> ServerConfig {
    ServerConfig { window, ..config() }
}

/// Returns `count` clients that have each sent one query, and are not answered yet.
fn waiting_clients(server: &TestServer, count: u8) -> Vec<Client> {
    let mut clients = Vec::new();
    for seed in 0..count {
        let mut client = server.client();
        client.send_queries(EPOCH, &[query(seed)]);
        clients.push(client);
    }
    server.wait_for_queue(count.into());
    clients
}

fn receive_all(clients: &mut [Client]) {
    for (seed, client) in clients.iter_mut().enumerate() {
        client.receive_answers(EPOCH, &[query(seed as u8)]);
    }
}

#[test]
fn a_lone_query_does_not_wait_for_the_window() {
    let (server, engine) = TestServer::with_engine(with_window(FOREVER));
    let mut client = server.client();
    for seed in 0..3 {
        client.ask(EPOCH, &[query(seed)]);
    }
    assert_eq!(engine.batches(), [1, 1, 1]);
}

#[test]
fn a_full_batch_does_not_wait_for_the_window() {
    let (server, engine) = TestServer::with_engine(with_window(FOREVER));
    engine.hold();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(9)]);
    engine.wait_for_scans(1);
    let mut others = waiting_clients(&server, MAX_BATCH as u8);
    engine.release();
    first.receive_answers(EPOCH, &[query(9)]);
    receive_all(&mut others);
    assert_eq!(engine.batches(), [1, MAX_BATCH]);
}

#[test]
fn a_batch_that_fills_during_the_window_closes_it() {
    let (server, engine) = TestServer::with_engine(with_window(FOREVER));
    engine.hold();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(9)]);
    engine.wait_for_scans(1);
    let mut early = waiting_clients(&server, MAX_BATCH as u8 - 1);
    engine.release();
    first.receive_answers(EPOCH, &[query(9)]);
    // The window is open now, with room for one more query.
    first.ask(EPOCH, &[query(10)]);
    receive_all(&mut early);
    assert_eq!(engine.batches(), [1, MAX_BATCH]);
}

#[test]
fn queries_that_arrive_during_a_scan_share_the_next() {
    let (server, engine) = TestServer::with_engine(with_window(Duration::from_millis(1)));
    engine.hold();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(9)]);
    engine.wait_for_scans(1);
    let mut others = waiting_clients(&server, 3);
    engine.release();
    first.receive_answers(EPOCH, &[query(9)]);
    receive_all(&mut others);
    assert_eq!(engine.batches(), [1, 3]);
}

#[test]
fn a_request_larger_than_a_batch_takes_several_scans() {
    let (server, engine) = TestServer::with_engine(with_window(Duration::ZERO));
    let queries: Vec<_> = (0..10).map(query).collect();
    server.client().ask(EPOCH, &queries);
    assert_eq!(engine.batches(), [4, 4, 2]);
}

#[test]
fn one_query_does_not_wait_behind_the_many_of_another_client() {
    let (server, engine) = TestServer::with_engine(with_window(Duration::ZERO));
    engine.hold();
    let (many, one) = ((0..20).map(query).collect::<Vec<_>>(), query(50));
    let mut greedy = server.client();
    greedy.send_queries(EPOCH, &many);
    engine.wait_for_scans(1);
    let mut other = Client::connect_from([127, 0, 0, 2], server.address);
    other.send_queries(EPOCH, std::slice::from_ref(&one));
    server.wait_for_queue(many.len() - MAX_BATCH + 1);
    engine.release();
    other.receive_answers(EPOCH, std::slice::from_ref(&one));
    greedy.receive_answers(EPOCH, &many);
    assert_eq!(engine.batch_of(&one), Some(1), "the next scan");
}

#[test]
fn many_concurrent_clients_all_get_their_own_answers() {
    let (server, engine) = TestServer::with_engine(config());
    thread::scope(|scope| {
        for worker in 0..8 {
            let mut client = server.client();
            scope.spawn(move || {
                for round in 0..25 {
                    let seed = worker * 25 + round;
                    client.ask(EPOCH, &[query(seed), query(seed.wrapping_add(100))]);
                }
            });
        }
    });
    let batches = engine.batches();
    assert_eq!(batches.iter().sum::<usize>(), 8 * 25 * 2);
    assert!(batches.iter().all(|&size| size <= MAX_BATCH));
}

#[test]
fn a_client_takes_its_share_of_the_queue_alone() {
    let shares =
        ServerConfig { max_queries: 2, max_queue: 8, client_share: 50, ..with_window(Duration::ZERO) };
    let (server, engine) = TestServer::with_engine(shares);
    engine.hold();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(9)]);
    engine.wait_for_scans(1);
    let _waiting = waiting_clients(&server, 4);
    server.client().post_query(&request(EPOCH, &[query(1)]).encode_to_vec()).problem(429, "throttled");
    let mut other = Client::connect_from([127, 0, 0, 2], server.address);
    other.send_queries(EPOCH, &[query(2), query(3)]);
    server.wait_for_queue(6);
    engine.release();
    other.receive_answers(EPOCH, &[query(2), query(3)]);
}

#[test]
fn a_full_queue_is_overloaded_and_recovers() {
    let config = ServerConfig { max_queries: 2, max_queue: 3, ..with_window(Duration::ZERO) };
    let (server, engine) = TestServer::with_engine(config);
    engine.hold();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(9)]);
    engine.wait_for_scans(1);
    let mut others = waiting_clients(&server, 2);

    // A request is queued whole or not at all: there is room for one of two queries.
    let mut late = server.client();
    let two = request(EPOCH, &[query(1), query(2)]).encode_to_vec();
    let response = late.post_query(&two);
    response.problem(503, "overloaded");
    // A scan is taken to last a second while no scan was measured: one for the queries that wait, and the rest of the running
    // one.
    assert!(matches!(response.header("retry-after"), Some("1" | "2")));
    server.wait_for_queue(2);

    // Clients that gave up make room.
    others.pop().unwrap().close();
    server.wait_for_connections(3);
    late.send_queries(EPOCH, &[query(1), query(2)]);
    server.wait_for_queue(3);
    engine.release();
    first.receive_answers(EPOCH, &[query(9)]);
    late.receive_answers(EPOCH, &[query(1), query(2)]);
    receive_all(&mut others);
    assert_eq!(engine.batches(), [1, 3]);
}

#[test]
fn a_query_that_would_wait_too_long_is_refused_and_told_when_to_come() {
    let limits = ServerConfig { max_wait: Duration::ZERO, ..with_window(Duration::ZERO) };
    let (server, engine) = TestServer::with_engine(limits);
    engine.hold();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(9)]);
    engine.wait_for_scans(1);
    // No scan was measured: the running one is taken to be over soon.
    thread::sleep(Duration::from_millis(1100));
    let mut others = waiting_clients(&server, 2 * MAX_BATCH as u8);
    let response = server.client().post_query(&request(EPOCH, &[query(1)]).encode_to_vec());
    response.problem(503, "overloaded");
    // Two batches that wait take two scans, and the query itself one.
    assert_eq!(response.header("retry-after"), Some("3"));
    // A client that waits for nothing yet has its turn after one query of theirs.
    let mut other = Client::connect_from([127, 0, 0, 2], server.address);
    other.send_queries(EPOCH, &[query(2)]);
    server.wait_for_queue(2 * MAX_BATCH + 1);
    engine.release();
    other.receive_answers(EPOCH, &[query(2)]);
    first.receive_answers(EPOCH, &[query(9)]);
    receive_all(&mut others);
    assert_eq!(engine.batch_of(&query(2)), Some(1), "the next scan");
}

#[test]
fn a_query_whose_client_has_gone_is_not_scanned() {
    let (server, engine) = TestServer::with_engine(with_window(Duration::ZERO));
    engine.hold();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(9)]);
    engine.wait_for_scans(1);
    for client in waiting_clients(&server, 3) {
        client.close();
    }
    server.wait_for_connections(1);
    engine.release();
    first.receive_answers(EPOCH, &[query(9)]);
    first.ask(EPOCH, &[query(1)]);
    assert_eq!(engine.batches(), [1, 1]);
}

#[test]
fn a_panic_costs_its_batch_only() {
    let (server, engine) = TestServer::with_engine(config());
    let mut client = server.client();
    let body = request(EPOCH, &[query(1), special(PANICS)]).encode_to_vec();
    client.post_query(&body).problem(500, "internal");
    client.ask(EPOCH, &[query(1)]);
    assert_eq!(engine.batches(), [2, 1]);
}

#[test]
fn a_batch_without_memory_fails_alone() {
    let (server, _engine) = TestServer::with_engine(config());
    let mut client = server.client();
    let body = request(EPOCH, &[query(1), special(NO_MEMORY)]).encode_to_vec();
    let problem = client.post_query(&body).problem(500, "internal");
    assert_eq!(problem["detail"], "the server's log has the cause");
    assert_eq!(client.get("/readyz").status, 200);
    client.ask(EPOCH, &[query(1)]);
}

#[test]
fn a_part_that_does_not_answer_may_again() {
    let (server, _engine) = TestServer::with_engine(config());
    let mut client = server.client();
    let body = request(EPOCH, &[query(1), special(PART_GONE)]).encode_to_vec();
    let response = client.post_query(&body);
    assert_eq!(response.header("retry-after"), Some("1"));
    let problem = response.problem(503, "part_unavailable");
    assert!(!problem["detail"].as_str().unwrap().contains("process"), "{problem}");
    assert_eq!(client.get("/readyz").status, 200);
    client.ask(EPOCH, &[query(1)]);
}

#[test]
fn an_answer_of_the_wrong_length_is_never_sent() {
    let (server, _engine) = TestServer::with_engine(config());
    let mut client = server.client();
    let body = request(EPOCH, &[special(SHORT_ANSWER)]).encode_to_vec();
    client.post_query(&body).problem(500, "internal");
    client.ask(EPOCH, &[query(1)]);
}

#[test]
fn a_refused_query_does_not_spoil_its_batch() {
    let (server, engine) = TestServer::with_engine(with_window(Duration::from_millis(1)));
    engine.hold();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(9)]);
    engine.wait_for_scans(1);
    let mut bad = server.client();
    bad.send_queries(EPOCH, &[special(REFUSED)]);
    server.wait_for_queue(1);
    let mut good = server.client();
    good.send_queries(EPOCH, &[query(1)]);
    server.wait_for_queue(2);
    engine.release();
    first.receive_answers(EPOCH, &[query(9)]);
    bad.receive().problem(400, "invalid_request");
    good.receive_answers(EPOCH, &[query(1)]);
    assert_eq!(engine.batches(), [1, 1]);
}

#[test]
fn on_a_gpu_full_batches_go_beside_others() {
    let (server, engine) = TestServer::with_engine_on(Device::Gpu(0), with_window(FOREVER));
    engine.hold();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(9)]);
    engine.wait_for_scans(1);
    // A batch that is not full waits. One more query, and it is scanned.
    let mut others = waiting_clients(&server, MAX_BATCH as u8 - 1);
    assert_eq!(engine.batches(), [1]);
    let mut last = server.client();
    last.send_queries(EPOCH, &[query(8)]);
    engine.wait_for_scans(2);
    assert_eq!(engine.batches(), [1, MAX_BATCH]);
    // A third batch waits, even if it is full.
    let mut more = waiting_clients(&server, MAX_BATCH as u8);
    assert_eq!(engine.batches(), [1, MAX_BATCH]);
    engine.release();
    first.receive_answers(EPOCH, &[query(9)]);
    last.receive_answers(EPOCH, &[query(8)]);
    receive_all(&mut others);
    receive_all(&mut more);
    assert_eq!(engine.batches(), [1, MAX_BATCH, MAX_BATCH]);
}

#[test]
fn on_a_gpu_a_batch_whose_clients_have_gone_is_not_scanned() {
    let (server, engine) = TestServer::with_engine_on(Device::Gpu(0), with_window(Duration::ZERO));
    engine.hold();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(9)]);
    engine.wait_for_scans(1);
    for client in waiting_clients(&server, MAX_BATCH as u8 - 1) {
        client.close();
    }
    server.wait_for_connections(1);
    // With the queries of the clients that have gone, this would be a full batch.
    let mut last = server.client();
    last.send_queries(EPOCH, &[query(8)]);
    server.wait_for_queue(1);
    assert_eq!(engine.batches(), [1]);
    engine.release();
    first.receive_answers(EPOCH, &[query(9)]);
    last.receive_answers(EPOCH, &[query(8)]);
    assert_eq!(engine.batches(), [1, 1]);
}
