//! Epochs that were replaced: served for a while, then gone with their memory; tables that are removed.

use std::{
    io::Write,
    sync::{Arc, Weak},
    thread,
    time::{Duration, Instant},
};

use hush_protocol::wire::CONTENT_TYPE;
use hush_server::{ServerConfig, Tables};
use prost::Message;
use serde_json::json;
use tempfile::NamedTempFile;

use crate::{
    client::{Client, bytes_with_body, request},
    engine::{SumEngine, client_keys, key_id, keyed_query, query},
    harness::{EPOCH, EPOCH_BYTE, TestServer, config, name},
};

const NEW: [u8; 32] = [6; 32];
const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(300);

/// Starts a server of `tables` that keeps replaced epochs for `epoch_window`. The server answers already.
fn serve(tables: &Tables, epoch_window: Duration) -> TestServer {
    let server = TestServer::start(tables.clone(), ServerConfig { epoch_window, ..config() });
    assert_eq!(server.client().get("/livez").status, 200);
    server
}

fn tables_with(engine: SumEngine) -> (Tables, Arc<SumEngine>) {
    let (tables, engine) = (Tables::new(), Arc::new(engine));
    tables.insert(&name("t"), engine.clone()).unwrap();
    (tables, engine)
}

fn replace(tables: &Tables) {
    tables.insert(&name("t"), Arc::new(SumEngine::new(NEW[0]))).unwrap();
}

/// Drops an engine, and returns a handle that sees whether anybody else holds it.
fn let_go(engine: Arc<SumEngine>) -> Weak<SumEngine> {
    Arc::downgrade(&engine)
}

/// Waits until nobody holds an engine, without asking the server anything.
fn wait_until_dropped(engine: &Weak<SumEngine>) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while engine.strong_count() > 0 {
        assert!(Instant::now() < deadline, "the engine is still held");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the descriptor of the problem that a query of `epoch` gets.
fn is_gone(client: &mut Client, epoch: [u8; 32]) -> serde_json::Value {
    let body = request(epoch, &[query(1)]).encode_to_vec();
    client.post_query(&body).problem(410, "epoch_gone")["descriptor"].clone()
}

#[test]
fn a_replaced_epoch_still_answers_and_the_new_one_is_told() {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(b"a hint").unwrap();
    let old = SumEngine::new(EPOCH_BYTE).with_blob([1; 32], file.reopen().unwrap(), 6);
    let (tables, _) = tables_with(old);
    let server = serve(&tables, LONG);
    let mut client = server.client();
    replace(&tables);
    client.ask(EPOCH, &[query(1), query(2)]);
    client.ask(NEW, &[query(3)]);
    let descriptor = json!({"protocol": "sum", "records": 1000, "e": 6});
    assert_eq!(is_gone(&mut client, [9; 32]), descriptor);
    let current = client.get("/v1/tables/t");
    assert_eq!(current.json(), descriptor);
    assert_eq!(current.header("etag"), Some(format!("\"{}\"", hex::encode(NEW)).as_str()));
    let list = client.get("/v1/tables").json();
    assert_eq!(
        (list["tables"].as_array().unwrap().len(), &list["tables"][0]["epoch"]),
        (1, &json!(hex::encode(NEW)))
    );
    assert_eq!(client.get(&format!("/v1/blobs/{}", hex::encode([1; 32]))).body, b"a hint");
    assert_eq!(client.get("/readyz").status, 200);
    // Each replaced epoch has its own window.
    tables.insert(&name("t"), Arc::new(SumEngine::new(7))).unwrap();
    for epoch in [EPOCH, NEW, [7; 32]] {
        client.ask(epoch, &[query(4)]);
    }
    // A malformed query of a replaced epoch gets the error of that epoch.
    let mut wrong = request(EPOCH, &[query(1)]);
    wrong.queries[0].first = vec![0; 7].into();
    client.post_query(&wrong.encode_to_vec()).problem(400, "invalid_request");
}

#[test]
fn an_epoch_of_the_same_geometry_answers_the_queries_of_the_one_before() {
    const GEOMETRY: [u8; 32] = [8; 32];
    let (tables, engine) = tables_with(SumEngine::new(EPOCH_BYTE).asked_as(GEOMETRY));
    let server = serve(&tables, LONG);
    let engine = let_go(engine);
    let mut client = server.client();
    let ask = |client: &mut Client, answered_by: [u8; 32]| {
        client.send_queries(GEOMETRY, &[query(1), query(2)]);
        client.receive_answers(answered_by, &[query(1), query(2)]);
    };
    ask(&mut client, EPOCH);
    tables.insert(&name("t"), Arc::new(SumEngine::new(NEW[0]).asked_as(GEOMETRY))).unwrap();
    ask(&mut client, NEW);
    // The replaced engine takes no memory any more.
    wait_until_dropped(&engine);
    // Queries of such a table name the geometry, not the epoch.
    assert_eq!(is_gone(&mut client, NEW)["e"], 6);
    // A table of another geometry replaces it, and the old one answers as long as it is kept.
    tables.insert(&name("t"), Arc::new(SumEngine::new(7))).unwrap();
    ask(&mut client, NEW);
    client.ask([7; 32], &[query(4)]);
}

#[test]
fn a_replaced_epoch_goes_by_itself_when_its_time_is_over() {
    let file = NamedTempFile::new().unwrap();
    let old = SumEngine::new(EPOCH_BYTE).with_blob([1; 32], file.reopen().unwrap(), 0);
    let (tables, engine) = tables_with(old);
    let server = serve(&tables, SHORT);
    let engine = let_go(engine);
    let replaced = Instant::now();
    replace(&tables);
    assert!(engine.strong_count() > 0 || replaced.elapsed() > SHORT);
    wait_until_dropped(&engine);
    assert!(replaced.elapsed() >= SHORT);
    let mut client = server.client();
    assert_eq!(is_gone(&mut client, EPOCH)["e"], 6);
    client.get(&format!("/v1/blobs/{}", hex::encode([1; 32]))).problem(404, "not_found");
    client.ask(NEW, &[query(1)]);
}

#[test]
fn queries_under_way_outlast_the_window() {
    let (tables, old) = tables_with(SumEngine::new(EPOCH_BYTE));
    let server = serve(&tables, SHORT);
    replace(&tables);
    old.hold();
    let (mut early, mut late) = (server.client(), server.client());
    early.send_queries(EPOCH, &[query(1)]);
    old.wait_for_scans(1);
    thread::sleep(SHORT);
    is_gone(&mut late, EPOCH);
    old.release();
    early.receive_answers(EPOCH, &[query(1)]);
    let engine = let_go(old);
    wait_until_dropped(&engine);
}

#[test]
fn without_a_window_or_a_server_nothing_is_kept() {
    let (tables, first) = tables_with(SumEngine::new(4));
    let first = let_go(first);
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE))).unwrap();
    assert_eq!(first.strong_count(), 0, "nobody can have asked it");
    let server = serve(&tables, Duration::ZERO);
    replace(&tables);
    let mut client = server.client();
    is_gone(&mut client, EPOCH);
    client.ask(NEW, &[query(1)]);
    drop(client);
    server.join().unwrap();

    let (tables, old) = tables_with(SumEngine::new(EPOCH_BYTE));
    let old = let_go(old);
    let server = serve(&tables, Duration::MAX);
    replace(&tables);
    server.client().ask(EPOCH, &[query(1)]);
    server.join().unwrap();
    assert_eq!(old.strong_count(), 0, "the server has stopped");
}

#[test]
fn an_epoch_that_comes_back_is_the_current_one() {
    let (tables, first) = tables_with(SumEngine::new(EPOCH_BYTE));
    let first = let_go(first);
    let server = serve(&tables, LONG);
    replace(&tables);
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE))).unwrap();
    assert_eq!(first.strong_count(), 0, "there is another of its epoch");
    let mut client = server.client();
    client.ask(EPOCH, &[query(1)]);
    client.ask(NEW, &[query(1)]);
    assert_eq!(is_gone(&mut client, [9; 32])["e"], EPOCH_BYTE);
}

#[test]
fn keys_of_a_replaced_epoch_are_taken() {
    let (tables, _) = tables_with(SumEngine::new(EPOCH_BYTE).with_keys("toy", 5));
    let server = serve(&tables, SHORT);
    let mut client = server.client();
    replace(&tables);
    let replaced = Instant::now();
    let keys = client_keys("toy", 5, 0);
    let path = format!("/v1/keys/{}", hex::encode(key_id(&keys)));
    let upload = |client: &mut Client| {
        client.send(&bytes_with_body("PUT", &path, CONTENT_TYPE, &keys));
        client.receive()
    };
    let taken = upload(&mut client);
    assert!(taken.status == 201 || replaced.elapsed() > SHORT);
    let body = request(EPOCH, &[keyed_query(1, &keys)]).encode_to_vec();
    let answered = client.post_query(&body).status;
    assert!(answered == 200 || replaced.elapsed() > SHORT);
    thread::sleep(SHORT);
    upload(&mut server.client()).problem(404, "not_found");
}

#[test]
fn a_table_is_removed_with_all_its_epochs() {
    let (tables, old) = tables_with(SumEngine::new(EPOCH_BYTE));
    tables.insert(&name("other"), Arc::new(SumEngine::new(8))).unwrap();
    let server = serve(&tables, LONG);
    replace(&tables);
    let mut client = server.client();
    client.ask(EPOCH, &[query(1)]);
    let engine = let_go(old);
    assert!(tables.remove(&name("t")) && !tables.remove(&name("t")));
    for epoch in [EPOCH, NEW] {
        let body = request(epoch, &[query(1)]).encode_to_vec();
        client.post_query(&body).problem(404, "unknown_table");
    }
    wait_until_dropped(&engine);
    assert_eq!(client.get("/v1/tables").json()["tables"].as_array().unwrap().len(), 1);
    assert_eq!(client.get("/readyz").status, 200);
    // A new table of that name has no replaced epochs.
    replace(&tables);
    is_gone(&mut client, EPOCH);
}
