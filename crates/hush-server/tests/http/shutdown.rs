//! Stopping: what is in flight is answered, nothing new is taken.

use std::{net::TcpStream, time::Duration};

use hush_server::{ServerConfig, ServerError};

use crate::{
    engine::query,
    harness::{EPOCH, TestServer},
};

#[test]
fn an_idle_server_stops_and_closes_its_connections() {
    let (server, _engine) = TestServer::with_engine(ServerConfig::default());
    let mut client = server.client();
    client.ask(EPOCH, &[query(1)]);
    let address = server.address;
    server.join().unwrap();
    assert!(client.is_closed_by_server());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn queries_in_flight_and_in_the_queue_are_answered_before_it_returns() {
    let (mut server, engine) = TestServer::with_engine(ServerConfig::default());
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
    let config = ServerConfig { drain_timeout: Duration::from_millis(50), ..ServerConfig::default() };
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
