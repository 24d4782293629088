//! Tests of stopping: requests in flight are answered, and nothing new is accepted.

use std::{fs, future, net::TcpStream, path::Path, time::Duration};

use hush_server::{ServerConfig, ServerError, Tables, run};
use tokio::net::TcpListener;

use crate::{
    engine::query,
    harness::{EPOCH, TestServer, config},
};

#[test]
fn an_idle_server_stops_and_closes_its_connections() {
    let (server, _engine) = TestServer::with_engine(config());
    let mut client = server.client();
    client.ask(EPOCH, &[query(1)]);
    let address = server.address;
    server.join().unwrap();
    assert!(client.is_closed_by_server());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn queries_in_flight_and_in_the_queue_are_answered_before_it_returns() {
    let (mut server, engine) = TestServer::with_engine(config());
    engine.hold();
    let mut scanned = server.client();
    scanned.send_queries(EPOCH, &[query(1)]);
    engine.wait_for_scans(1);
    let mut queued = server.client();
    queued.send_queries(EPOCH, &[query(2)]);
    server.wait_for_queue(1);
    let mut idle = server.client();
    assert_eq!(idle.get("/livez").status, 200);

    server.stop();
    // An idle connection closes at once: from here on the server is draining.
    assert!(idle.is_closed_by_server());
    engine.release();
    scanned.receive_answers(EPOCH, &[query(1)]);
    queued.receive_answers(EPOCH, &[query(2)]);
    server.join().unwrap();
    assert!(scanned.is_closed_by_server());
}

#[test]
fn a_drain_that_takes_too_long_is_cut_off() {
    let config = ServerConfig { drain_timeout: Duration::from_millis(50), ..config() };
    let (mut server, engine) = TestServer::with_engine(config);
    engine.hold();
    let mut client = server.client();
    client.send_queries(EPOCH, &[query(1)]);
    engine.wait_for_scans(1);
    server.stop();
    assert!(client.is_closed_by_server());
    // The runtime waits for the scan, so it has to end before the server's thread does.
    engine.release();
    assert!(matches!(server.join(), Err(ServerError::Drain { unfinished: 1 })));
}

/// Runs a server that is told to stop before it starts, and returns its result.
fn stopped_at_once(keys: &Path) -> Result<(), ServerError> {
    let config = ServerConfig { keys_path: Some(keys.to_owned()), ..config() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        run(listener, Tables::new(), config, future::ready(())).await
    });
    runtime.shutdown_background();
    outcome
}

#[test]
fn a_server_stops_while_it_checks_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.redb");
    fs::write(&file, "no keys at all ".repeat(1000)).unwrap();
    // The server does not wait to learn that the file is damaged.
    stopped_at_once(&file).unwrap();
}

#[test]
fn a_server_that_stops_leaves_no_half_of_a_file_of_keys() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.redb");
    stopped_at_once(&file).unwrap();
    assert!(fs::read(&file).unwrap().starts_with(b"redb"));
}
