//! Tests of admission: which connection gets a slot when there are more connections than slots.

use std::sync::Arc;

use hush_server::{ServerConfig, Tables};

use crate::{
    client::Client,
    engine::{SumEngine, query},
    harness::{EPOCH, EPOCH_BYTE, TestServer, config, name},
};

/// Another address of the loopback network.
const OTHER: [u8; 4] = [127, 0, 0, 2];

/// Returns a server with another listener for metrics, since asking for them takes a connection.
fn with_health(config: ServerConfig) -> (TestServer, Arc<SumEngine>) {
    let (engine, tables) = (Arc::new(SumEngine::new(EPOCH_BYTE)), Tables::new());
    tables.insert(&name("t"), engine.clone()).unwrap();
    (TestServer::start_with(tables, config, true), engine)
}

#[test]
fn connections_beyond_the_limit_wait_while_all_are_busy() {
    let (server, engine) = TestServer::with_engine(ServerConfig { max_connections: 1, ..config() });
    engine.hold();
    let mut first = server.client();
    first.send_queries(EPOCH, &[query(1)]);
    engine.wait_for_scans(1);
    let mut second = server.client();
    second.send_queries(EPOCH, &[query(2)]);
    engine.release();
    first.receive_answers(EPOCH, &[query(1)]);
    second.receive_answers(EPOCH, &[query(2)]);
    // The first connection was idle when the second needed its slot.
    assert!(first.is_closed_by_server());
    assert_eq!(engine.batches(), [1, 1]);
}

#[test]
fn idle_connections_keep_nobody_out() {
    let (server, _engine) = TestServer::with_engine(ServerConfig { max_connections: 8, ..config() });
    let mut used = server.client();
    used.ask(EPOCH, &[query(1)]);
    // Half of the clients are silent, and half never end their headers.
    let idle: Vec<_> = (0..40)
        .map(|number| {
            let mut client = Client::connect_from(OTHER, server.address);
            // The connection may be closed before the client has sent all of this.
            if number % 2 == 0 {
                client.try_send(b"GET /livez HTTP/1.1\r\nHost: t");
            }
            client
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(server.client().get("/livez").status, 200);
        server.client().ask(EPOCH, &[query(2)]);
    }
    assert!(idle.into_iter().take(32).all(|client| client.rest().is_empty()));
}

#[test]
fn a_client_closes_its_own_idle_connections_first() {
    let config = ServerConfig { max_connections: 8, client_share: 25, ..config() };
    let (server, engine) = with_health(config);
    let mut quiet = server.client();
    quiet.ask(EPOCH, &[query(1)]);
    let idle: Vec<_> = (0..10).map(|_| Client::connect_from(OTHER, server.address)).collect();
    let mut last = Client::connect_from(OTHER, server.address);
    last.ask(EPOCH, &[query(2)]);
    // The last connection but one made room for the last.
    assert!(idle.into_iter().take(9).all(|client| client.rest().is_empty()));

    // Two connections are busy: the whole share of their client.
    engine.hold();
    let mut busy = Client::connect_from(OTHER, server.address);
    last.send_queries(EPOCH, &[query(3)]);
    engine.wait_for_scans(3);
    busy.send_queries(EPOCH, &[query(3)]);
    server.wait_for_queue(1);
    let mut refused = Client::connect_from(OTHER, server.address);
    let response = refused.receive();
    assert_eq!((response.status, response.header("retry-after")), (429, Some("1")));
    assert!(refused.is_closed_by_server());
    engine.release();
    last.receive_answers(EPOCH, &[query(3)]);
    quiet.ask(EPOCH, &[query(4)]);
}

#[test]
fn health_has_a_listener_of_its_own() {
    let (server, engine) = with_health(ServerConfig { max_connections: 2, ..config() });
    engine.hold();
    let (mut first, mut second) = (server.client(), server.client());
    first.send_queries(EPOCH, &[query(1)]);
    engine.wait_for_scans(1);
    second.send_queries(EPOCH, &[query(1)]);
    server.wait_for_queue(1);
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(server.health_client().get(path).status, 200, "{path}");
    }
    server.health_client().get("/v1/tables").problem(404, "not_found");
    engine.release();
    first.receive_answers(EPOCH, &[query(1)]);
    first.get("/metrics").problem(404, "not_found");
}
