//! Tests of evaluation keys: uploaded, used, forgotten, on disk, and in every way that a client can get them wrong.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, sync::Arc, thread, time::Duration};

use hush_engine::Device;
use hush_protocol::wire::{CONTENT_TYPE, EvaluationKeys, Query, ResponseShape};
use hush_server::{ServerConfig, Tables, Throttle};
use prost::Message;
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use tempfile::tempdir;

use crate::{
    client::{Client, Response, bytes_with_body, request},
    engine::{ANSWER_BYTES, PANICS, REFUSED, SumEngine, client_keys, expected, key_id, keyed_query, query},
    harness::{EPOCH, EPOCH_BYTE, TestServer, config, name},
};

const PRESET: &str = "toy";
const WORDS: usize = 1000;

/// The bytes that the store counts beside each body.
const ENTRY_BYTES: u64 = 512;

fn server_with(engine: SumEngine, config: ServerConfig) -> (TestServer, Arc<SumEngine>) {
    let (engine, tables) = (Arc::new(engine), Tables::new());
    tables.insert(&name("t"), engine.clone()).unwrap();
    (TestServer::start(tables, config), engine)
}

/// Returns a server whose table `t` needs keys.
fn server(config: ServerConfig) -> (TestServer, Arc<SumEngine>) {
    server_with(SumEngine::new(EPOCH_BYTE).with_keys(PRESET, WORDS), config)
}

fn config_with_file(path: &Path) -> ServerConfig {
    ServerConfig { keys_path: Some(path.to_owned()), ..config() }
}

fn keys(seed: u32) -> Vec<u8> {
    client_keys(PRESET, WORDS, seed)
}

fn path(body: &[u8]) -> String {
    format!("/v1/keys/{}", hex::encode(key_id(body)))
}

fn upload(client: &mut Client, body: &[u8]) -> Response {
    client.put(&path(body), CONTENT_TYPE, body)
}

fn ask(client: &mut Client, queries: &[Query]) -> Response {
    client.post_query(&request(EPOCH, queries).encode_to_vec())
}

/// Checks the answers to queries whose keys have these seeds.
fn check(response: Response, queries: &[Query], seeds: &[u8]) {
    assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
    let shape = ResponseShape { epoch: Some(&EPOCH), answers: queries.len(), answer_bytes: ANSWER_BYTES };
    let (_, answers) = shape.decode(response.body.into()).unwrap();
    for ((query, answer), seed) in queries.iter().zip(answers).zip(seeds) {
        let shifted: Vec<u8> = expected(query).iter().map(|byte| byte.wrapping_add(*seed)).collect();
        assert_eq!(answer, shifted);
    }
}

#[test]
fn keys_are_uploaded_once_and_used_by_many_queries() {
    let (server, _engine) = server(config());
    let mut client = server.client();
    let (first, second) = (keys(1), keys(2));
    assert_eq!(client.head(&path(&first)).status, 404);
    assert_eq!(upload(&mut client, &first).status, 201);
    assert_eq!(upload(&mut client, &first).status, 204);
    assert_eq!(upload(&mut client, &second).status, 201);
    assert_eq!(client.head(&path(&first)).status, 204);
    let queries = [
        keyed_query(5, &first),
        keyed_query(6, &second),
        keyed_query(5, &first),
        keyed_query(7, &first),
        keyed_query(8, &second),
    ];
    check(ask(&mut client, &queries), &queries, &[1, 2, 1, 1, 2]);
    assert_eq!(server.metric("hush_keys"), Some(2.0));
    assert_eq!(server.metric("hush_key_bytes"), Some(2.0 * (first.len() as u64 + ENTRY_BYTES) as f64));
    assert_eq!(server.metric("hush_key_uploads_total"), Some(3.0));
    assert_eq!(server.metric("hush_key_misses_total"), Some(0.0));
}

#[test]
fn unknown_keys_are_asked_for_before_anything_is_scanned() {
    let (server, engine) = server(config());
    let mut client = server.client();
    let (known, unknown) = (keys(1), keys(2));
    upload(&mut client, &known);
    let queries = [keyed_query(1, &known), keyed_query(2, &unknown)];
    let problem = ask(&mut client, &queries).problem(428, "key_not_found");
    assert_eq!(problem["detail"], "query 1: upload its keys with PUT /v1/keys/{hash}, then ask again");
    assert!(engine.batches().is_empty());
    assert_eq!(server.metric("hush_key_misses_total"), Some(1.0));
    upload(&mut client, &unknown);
    check(ask(&mut client, &queries), &queries, &[1, 2]);
}

#[test]
fn queries_without_a_key_have_the_wrong_length() {
    let (server, _engine) = server(config());
    ask(&mut server.client(), &[query(1)]).problem(400, "invalid_request");
    let (plain, _engine) = TestServer::with_engine(config());
    ask(&mut plain.client(), &[keyed_query(1, &keys(1))]).problem(400, "invalid_request");
}

#[test]
fn uploads_that_are_no_keys_of_a_table_are_refused() {
    let (server, _engine) = server(config());
    let mut client = server.client();
    let mut refused = |body: &[u8], status, code: &str| {
        let problem = upload(&mut client, body).problem(status, code);
        assert_eq!(client.head(&path(body)).status, 404);
        problem["detail"].as_str().unwrap().to_owned()
    };
    let changed = |change: &dyn Fn(&mut EvaluationKeys)| {
        let mut keys = EvaluationKeys::decode(&*keys(1)).unwrap();
        change(&mut keys);
        keys.encode_to_vec()
    };
    assert_eq!(
        refused(&client_keys("boy", WORDS, 1), 400, "key_preset"),
        "the tables here need keys for toy"
    );
    refused(&client_keys(PRESET, WORDS - 1, 1), 400, "invalid_request");
    refused(&client_keys(PRESET, WORDS + 1, 1), 413, "too_large");
    refused(&changed(&|keys| keys.version = 2), 415, "unsupported_version");
    refused(&changed(&|keys| keys.preset.clear()), 400, "invalid_request");
    refused(&changed(&|keys| keys.preset = "x".repeat(100)), 413, "too_large");
    let detail = refused(&changed(&|keys| keys.words = vec![REFUSED; WORDS].into()), 400, "invalid_request");
    assert_eq!(detail, "a coefficient of the keys is too large");
    refused(&changed(&|keys| keys.words = vec![PANICS; WORDS].into()), 500, "internal");
    refused(b"", 415, "unsupported_version");
    refused(b"\xff\xff\xff", 400, "invalid_request");
    assert_eq!(server.metric("hush_keys"), Some(0.0));
    assert_eq!(upload(&mut server.client(), &keys(1)).status, 201);
}

#[test]
fn keys_for_a_lost_gpu_are_not_forgotten() {
    let file = tempfile::tempdir().unwrap();
    let config = config_with_file(&file.path().join("keys"));
    let (first, _engine) = server(config.clone());
    assert_eq!(upload(&mut first.client(), &keys(1)).status, 201);
    first.join().unwrap();
    // The keys are in the file only.
    let (server, engine) = server(config);
    engine.lose("it is gone");
    let mut client = server.client();
    let problem = ask(&mut client, &[keyed_query(1, &keys(1))]).problem(503, "device_lost");
    assert!(problem["detail"].as_str().unwrap().contains("until the server is started again"));
    upload(&mut client, &keys(2)).problem(503, "device_lost");
    assert_eq!(client.head(&path(&keys(1))).status, 204, "they are still there");
}

#[test]
fn keys_are_opened_by_a_table_whose_gpu_works() {
    let engines = [EPOCH_BYTE + 1, EPOCH_BYTE].map(|epoch| SumEngine::new(epoch).with_keys(PRESET, WORDS));
    let (engines, tables) = (engines.map(Arc::new), Tables::new());
    for (table, engine) in ["a", "t"].into_iter().zip(&engines) {
        tables.insert(&name(table), engine.clone()).unwrap();
    }
    let server = TestServer::start(tables, config());
    let mut client = server.client();
    engines[0].lose("it is gone");
    assert_eq!(upload(&mut client, &keys(1)).status, 201, "table t needs them too");
    let queries = [keyed_query(1, &keys(1))];
    check(ask(&mut client, &queries), &queries, &[1]);
    engines[1].lose("it is gone as well");
    upload(&mut client, &keys(2)).problem(503, "device_lost");
}

#[test]
fn random_and_damaged_uploads_stop_nobody() {
    let (server, _engine) = server(config());
    let mut client = server.client();
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let valid = keys(1);
    for round in 0..300 {
        let mut body = valid.clone();
        match round % 3 {
            0 => rng.fill_bytes(&mut body),
            1 => body.truncate(rng.next_u32() as usize % valid.len()),
            // The changed bit is inside a tag, a length, the version, the name or the seed.
            _ => body[rng.next_u32() as usize % 16] ^= 1 << (rng.next_u32() % 8),
        }
        let status = upload(&mut client, &body).status;
        // A seed with a changed bit is as valid.
        let expected: &[u16] = if round % 3 == 2 { &[201, 204, 400, 415] } else { &[400, 415] };
        assert!(expected.contains(&status), "round {round}: {status}");
    }
    assert_eq!(upload(&mut client, &valid).status, 201);
}

#[test]
fn one_request_names_a_bounded_number_of_keys() {
    let (server, _engine) = server(ServerConfig { open_keys: 2, ..config() });
    let mut client = server.client();
    let bodies = [keys(1), keys(2), keys(3)];
    bodies.iter().for_each(|body| assert_eq!(upload(&mut client, body).status, 201));
    let queries: Vec<Query> = bodies.iter().map(|body| keyed_query(1, body)).collect();
    ask(&mut client, &queries).problem(413, "too_large");
    check(ask(&mut client, &queries[1..]), &queries[1..], &[2, 3]);
}

#[test]
fn the_name_of_keys_is_their_hash() {
    let (server, _engine) = server(config());
    let mut client = server.client();
    let body = keys(1);
    client.put(&path(&keys(2)), CONTENT_TYPE, &body).problem(400, "key_mismatch");
    for name in ["", "00", &"g".repeat(64), &"0".repeat(63), &"0".repeat(66), "%ff"] {
        let response = client.put(&format!("/v1/keys/{name}"), CONTENT_TYPE, &body);
        assert!([400, 404].contains(&response.status), "{name}: {}", response.status);
    }
    client.put(&path(&body), "application/octet-stream", &body).problem(415, "unsupported_media_type");
    client.get(&path(&body)).problem(405, "method_not_allowed");
    assert_eq!(server.metric("hush_keys"), Some(0.0));
}

#[test]
fn keys_of_another_table_do_not_fit() {
    let tables = Tables::new();
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE).with_keys(PRESET, WORDS))).unwrap();
    tables.insert(&name("other"), Arc::new(SumEngine::new(6).with_keys("other", 5))).unwrap();
    let server = TestServer::start(tables, ServerConfig { open_keys: 1, ..config() });
    let mut client = server.client();
    let (other, own) = (client_keys("other", 5, 1), keys(1));
    // The keys are in memory, and then only in the store.
    assert_eq!(upload(&mut client, &other).status, 201);
    ask(&mut client, &[keyed_query(1, &other)]).problem(400, "key_preset");
    assert_eq!(upload(&mut client, &own).status, 201);
    ask(&mut client, &[keyed_query(1, &other)]).problem(400, "key_preset");
    assert_eq!(ask(&mut client, &[keyed_query(1, &own)]).status, 200);
}

#[test]
fn tables_on_two_backends_take_the_same_keys() {
    let tables = Tables::new();
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE).with_keys(PRESET, WORDS))).unwrap();
    let on_gpu = SumEngine::new(EPOCH_BYTE).with_keys(PRESET, WORDS).on(Device::Gpu(0));
    tables.insert(&name("gpu"), Arc::new(on_gpu)).unwrap();
    // The server has slots for the keys of one client: keys that one backend opened make room for keys of the other.
    for open_keys in [1, 2] {
        let config = ServerConfig { open_keys, ..config() };
        let server = TestServer::start(tables.clone(), config);
        let (mut client, body) = (server.client(), keys(7));
        assert_eq!(upload(&mut client, &body).status, 201);
        for table in ["t", "gpu", "gpu", "t"] {
            let queries = [keyed_query(3, &body), keyed_query(4, &body)];
            let request = request(EPOCH, &queries).encode_to_vec();
            let path = format!("/v1/tables/{table}/query");
            check(client.post(&path, CONTENT_TYPE, &request), &queries, &[7, 7]);
        }
    }
}

#[test]
fn a_server_without_such_tables_takes_no_keys() {
    let (plain, _engine) = TestServer::with_engine(config());
    upload(&mut plain.client(), &keys(1)).problem(404, "not_found");
    let tables = Tables::new();
    tables.announce(&name("t"));
    let loading = TestServer::start(tables.clone(), config());
    upload(&mut loading.client(), &keys(1)).problem(503, "warming");
    for words in [5000, 5] {
        tables.insert(&name("u"), Arc::new(SumEngine::new(6).with_keys("other", words))).unwrap();
        upload(&mut loading.client(), &keys(1)).problem(503, "warming");
    }
    // The keys are longer than those of any table.
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE))).unwrap();
    upload(&mut loading.client(), &keys(1)).problem(413, "too_large");
}

#[test]
fn an_upload_that_is_cut_leaves_nothing_behind() {
    let (server, _engine) = server(config());
    let body = keys(1);
    let bytes = bytes_with_body("PUT", &path(&body), CONTENT_TYPE, &body);
    for left in [1, 10, body.len()] {
        let mut client = server.client();
        client.send(&bytes[..bytes.len() - left]);
        client.close();
    }
    server.wait_for_connections(0);
    assert_eq!(server.metric("hush_keys"), Some(0.0));
    assert_eq!(server.client().head(&path(&body)).status, 404);
}

#[test]
fn uploads_too_long_slow_or_frequent_are_refused_like_queries() {
    let config = ServerConfig {
        body_timeout: Duration::from_millis(300),
        throttle: Some(Throttle { queries_per_second: 1, burst: 100 }),
        ..config()
    };
    let (server, _engine) = server(config);
    let body = keys(1);
    let head = |length: usize| {
        let mut bytes = bytes_with_body("PUT", &path(&body), CONTENT_TYPE, &vec![0; length]);
        bytes.truncate(bytes.len() - length);
        bytes
    };
    let mut client = server.client();
    client.send(&head(body.len() + 1));
    client.receive().problem(413, "too_large");
    let mut slow = server.client();
    slow.send(&head(body.len()));
    slow.receive().problem(408, "timeout");
    let mut client = server.client();
    assert_eq!(upload(&mut client, &body).status, 201);
    // The client is far in debt after these queries.
    let queries = vec![keyed_query(1, &body); 200];
    assert_eq!(ask(&mut client, &queries).status, 200);
    upload(&mut client, &body).problem(429, "throttled");
    assert_eq!(server.client().head(&path(&body)).status, 429);
}

#[test]
fn keys_expire() {
    let lifetime = Duration::from_millis(200);
    let (server, _engine) = server(ServerConfig { key_lifetime: lifetime, ..config() });
    let mut client = server.client();
    let body = keys(1);
    assert_eq!(upload(&mut client, &body).status, 201);
    thread::sleep(2 * lifetime);
    ask(&mut client, &[keyed_query(1, &body)]).problem(428, "key_not_found");
    assert_eq!(client.head(&path(&body)).status, 404);
}

#[test]
fn keys_survive_a_restart() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("keys.redb");
    let (first, _engine) = server(config_with_file(&file));
    let body = keys(3);
    assert_eq!(upload(&mut first.client(), &body).status, 201);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    first.join().unwrap();
    let (second, _engine) = server(config_with_file(&file));
    second.wait_for_metric("hush_keys", 1.0);
    let mut client = second.client();
    check(ask(&mut client, &[keyed_query(1, &body)]), &[keyed_query(1, &body)], &[3]);
    assert_eq!(upload(&mut client, &body).status, 204);
}

#[test]
fn keys_that_no_longer_fit_are_forgotten() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("keys.redb");
    let (first, _engine) = server(config_with_file(&file));
    let body = keys(3);
    upload(&mut first.client(), &body);
    first.join().unwrap();
    let changed = SumEngine::new(EPOCH_BYTE).with_keys(PRESET, WORDS + 1);
    let (second, _engine) = server_with(changed, config_with_file(&file));
    let mut client = second.client();
    ask(&mut client, &[keyed_query(1, &body)]).problem(428, "key_not_found");
    assert_eq!(client.head(&path(&body)).status, 404);
    assert_eq!(second.metric("hush_keys"), Some(0.0));
}

/// Returns the error of a server that cannot start with this file.
fn start_error(file: &Path) -> String {
    server(config_with_file(file)).0.start_error().to_string()
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("keys.redb");
    fs::write(&file, "no keys at all ".repeat(1000)).unwrap();
    let error = start_error(&file);
    assert!(error.contains(file.to_str().unwrap()) && error.contains("move it away"), "{error}");

    fs::remove_file(&file).unwrap();
    let (first, _engine) = server(config_with_file(&file));
    upload(&mut first.client(), &keys(1));
    let error = start_error(&file);
    assert!(error.contains("another server uses it"), "{error}");
    first.join().unwrap();

    let mut bytes = fs::read(&file).unwrap();
    let page = bytes.len() / 4096 / 2 * 4096;
    bytes[4096..page].fill(0x5a);
    fs::write(&file, bytes).unwrap();
    let error = start_error(&file);
    assert!(error.contains("move it away"), "{error}");

    let error = start_error(&folder.path().join("nowhere").join("keys.redb"));
    assert!(error.contains("nowhere") && !error.contains("move it away"), "{error}");
}

#[test]
fn the_store_is_bounded_and_the_oldest_keys_go() {
    const WORDS: usize = 8;
    const ROOM: u64 = 100;
    let keys = |seed| client_keys(PRESET, WORDS, seed);
    let max_key_bytes = ROOM * (keys(0).len() as u64 + ENTRY_BYTES);
    let engine = SumEngine::new(EPOCH_BYTE).with_keys(PRESET, WORDS);
    let (server, _engine) = server_with(engine, ServerConfig { max_key_bytes, ..config() });
    let mut client = server.client();
    for seed in 0..1000 {
        assert_eq!(upload(&mut client, &keys(seed)).status, 201);
    }
    assert_eq!(server.metric("hush_keys"), Some(ROOM as f64));
    assert_eq!(server.metric("hush_key_bytes"), Some(max_key_bytes as f64));
    assert_eq!(server.metric("hush_keys_evicted_total"), Some(900.0));
    for seed in [0, 1, 500, 800] {
        ask(&mut client, &[keyed_query(1, &keys(seed))]).problem(428, "key_not_found");
    }
    for seed in [999, 950, 990] {
        let queries = [keyed_query(1, &keys(seed))];
        check(ask(&mut client, &queries), &queries, &[seed as u8]);
    }
    // Clients that come back push out others.
    assert_eq!(upload(&mut client, &keys(0)).status, 201);
    assert_eq!(server.metric("hush_keys"), Some(ROOM as f64));
}

/// Returns a server with room for eight keys, two of each client.
fn server_with_shares() -> (TestServer, Arc<SumEngine>) {
    let max_key_bytes = 8 * (keys(0).len() as u64 + ENTRY_BYTES);
    server(ServerConfig { max_key_bytes, client_share: 25, ..config() })
}

#[test]
fn a_client_that_uploads_much_evicts_its_own_keys() {
    let (server, _engine) = server_with_shares();
    let mut client = server.client();
    // No query uses these keys.
    assert_eq!(upload(&mut client, &keys(0)).status, 201);
    let mut other = Client::connect_from([127, 0, 0, 2], server.address);
    for seed in 100..200 {
        assert_eq!(upload(&mut other, &keys(seed)).status, 201);
    }
    assert_eq!(server.metric("hush_keys"), Some(3.0));
    let queries = [keyed_query(1, &keys(0))];
    check(ask(&mut client, &queries), &queries, &[0]);
}

#[test]
fn keys_in_use_outlive_uploads_of_many_addresses() {
    let (server, _engine) = server_with_shares();
    let mut client = server.client();
    let queries = [keyed_query(1, &keys(0))];
    // The query after a second upload counts as a use all the same.
    assert_eq!([201, 204], [(); 2].map(|()| upload(&mut client, &keys(0)).status));
    check(ask(&mut client, &queries), &queries, &[0]);
    for address in 2..100 {
        let mut other = Client::connect_from([127, 0, 0, address], server.address);
        for number in 0..2 {
            assert_eq!(upload(&mut other, &keys(1000 * u32::from(address) + number)).status, 201);
        }
    }
    assert_eq!(server.metric("hush_keys"), Some(8.0));
    check(ask(&mut client, &queries), &queries, &[0]);
    // Used keys are evicted in the order of their use, even if it is less than an hour ago.
    let mut newest = Client::connect_from([127, 0, 0, 99], server.address);
    let own = [keyed_query(2, &keys(99_000))];
    check(ask(&mut newest, &own), &own, &[99_000_u32 as u8]);
}

#[test]
fn keys_that_never_fit_are_refused() {
    let (server, _engine) = server(ServerConfig { max_key_bytes: 100, ..config() });
    let problem = upload(&mut server.client(), &keys(1)).problem(413, "too_large");
    assert_eq!(problem["detail"], "this server keeps at most 100 bytes of keys");
}

#[test]
fn concurrent_uploads_are_all_kept() {
    let folder = tempdir().unwrap();
    let (server, _engine) = server(config_with_file(&folder.path().join("keys.redb")));
    let new: usize = thread::scope(|scope| {
        let uploads: Vec<_> = (0..8)
            .map(|number| {
                let mut client = server.client();
                scope.spawn(move || {
                    let own = 1 + number * 5..6 + number * 5;
                    let statuses = own.chain([0]).map(|seed| upload(&mut client, &keys(seed)).status);
                    statuses.filter(|&status| status == 201).count()
                })
            })
            .collect();
        uploads.into_iter().map(|upload| upload.join().unwrap()).sum()
    });
    assert_eq!(new, 41);
    assert_eq!(server.metric("hush_key_uploads_total"), Some(48.0));
    let mut client = server.client();
    for seed in 0..=40 {
        let queries = [keyed_query(1, &keys(seed))];
        check(ask(&mut client, &queries), &queries, &[seed as u8]);
    }
}

#[test]
fn the_number_of_keys_is_that_of_the_last_upload() {
    let (server, _engine) = server(config());
    let mut clients: Vec<_> = (0..4).map(|_| server.client()).collect();
    for round in 0..200 {
        thread::scope(|scope| {
            for (number, client) in clients.iter_mut().enumerate() {
                let body = keys(4 * round + number as u32);
                scope.spawn(move || assert_eq!(upload(client, &body).status, 201));
            }
        });
        assert_eq!(server.metric("hush_keys"), Some(f64::from(4 * (round + 1))));
    }
}

#[test]
fn waiting_queries_hold_a_bounded_number_of_keys() {
    let (server, engine) = server(ServerConfig { open_keys: 1, ..config() });
    let (mut first, mut second) = (server.client(), server.client());
    let (one, two) = (keys(1), keys(2));
    upload(&mut first, &one);
    upload(&mut second, &two);
    engine.hold();
    first.send_queries(EPOCH, &[keyed_query(1, &one)]);
    engine.wait_for_scans(1);
    ask(&mut second, &[keyed_query(2, &two)]).problem(503, "overloaded");
    // Queries under the same keys need no other slot.
    let mut third = server.client();
    third.send_queries(EPOCH, &[keyed_query(3, &one)]);
    server.wait_for_queue(1);
    engine.release();
    check(first.receive(), &[keyed_query(1, &one)], &[1]);
    check(third.receive(), &[keyed_query(3, &one)], &[1]);
    let mut statuses = (0..10_000).map(|_| ask(&mut second, &[keyed_query(2, &two)]).status);
    assert_eq!(statuses.find(|&status| status != 503), Some(200));
}
