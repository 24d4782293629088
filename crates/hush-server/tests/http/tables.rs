//! Tests of served tables and their states: list, descriptor, health, metrics, loading, replacement.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use hush_protocol::wire;
use hush_server::{METRICS, ServerConfig, ServerError, Tables};
use prost::Message;
use serde_json::json;

use crate::{
    client::request,
    engine::{SumEngine, query},
    harness::{EPOCH, EPOCH_BYTE, TestServer, config, name},
};

#[test]
fn tables_are_listed_by_name() {
    let tables = Tables::new();
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE))).unwrap();
    tables.announce(&name("later"));
    let server = TestServer::start(tables, config());
    let response = server.client().get("/v1/tables");
    assert_eq!(response.status, 200);
    assert_eq!(
        response.json(),
        json!({"tables": [
            {"name": "later", "state": "loading", "epoch": null, "protocol": null, "records": null},
            {"name": "t", "state": "resident", "epoch": hex::encode(EPOCH), "protocol": "sum",
             "records": 1000},
        ]})
    );
}

#[test]
fn a_descriptor_is_served_byte_for_byte_with_its_epoch_as_tag() {
    let (server, _engine) = TestServer::with_engine(config());
    let mut client = server.client();
    let response = client.get("/v1/tables/t");
    assert_eq!(response.status, 200);
    assert_eq!(response.body, b" {\"protocol\":\"sum\",\"records\":1000,\"e\":5}\n");
    assert_eq!(response.header("content-type"), Some("application/json"));
    let etag = response.header("etag").unwrap().to_owned();
    assert_eq!(etag, format!("\"{}\"", hex::encode(EPOCH)));

    for matching in [etag.clone(), format!("W/{etag}"), format!("\"x\", {etag}"), "*".to_owned()] {
        let response = client.get_with("/v1/tables/t", &format!("If-None-Match: {matching}\r\n"));
        assert_eq!((response.status, response.body.len()), (304, 0), "{matching}");
        assert_eq!(response.header("etag"), Some(etag.as_str()));
    }
    let response = client.get_with("/v1/tables/t", "If-None-Match: \"x\"\r\n");
    assert_eq!(response.status, 200);
}

#[test]
fn head_gives_the_headers_of_a_descriptor() {
    let (server, _engine) = TestServer::with_engine(config());
    let mut client = server.client();
    let head = client.head("/v1/tables/t");
    assert_eq!(head.status, 200);
    let get = client.get("/v1/tables/t");
    for name in ["content-length", "content-type", "etag", "cache-control"] {
        assert!(head.header(name).is_some(), "{name}");
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
    assert_eq!(client.head("/v1/tables/other").status, 404);
    assert_eq!(client.get("/livez").status, 200);
}

#[test]
fn unknown_paths_and_methods_are_problems() {
    let (server, _engine) = TestServer::with_engine(config());
    let mut client = server.client();
    client.get("/v1/tables/other").problem(404, "unknown_table");
    client.get("/v1/tables/%ff").problem(404, "unknown_table");
    client.get("/v1/nothing").problem(404, "not_found");
    client.post("/v1/tables/other/query", "x", b"").problem(404, "unknown_table");
    let response = client.post("/v1/tables", "x", b"");
    response.problem(405, "method_not_allowed");
    assert_eq!(response.header("allow"), Some("GET,HEAD"));
    client.get("/v1/tables/t/query").problem(405, "method_not_allowed");
}

#[test]
fn what_runs_is_told() {
    let (server, _engine) = TestServer::with_engine(config());
    let info = server.client().get("/info").json();
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    let program = blake3::hash(&std::fs::read(std::env::current_exe().unwrap()).unwrap());
    assert_eq!(info["program"], program.to_hex().as_str());
    assert_eq!(info["tables"][0]["epoch"], hex::encode(EPOCH));
}

#[test]
fn a_table_that_is_loading_is_warming_until_it_is_inserted() {
    let tables = Tables::new();
    tables.announce(&name("t"));
    let server = TestServer::start(tables.clone(), config());
    let mut client = server.client();
    assert_eq!(client.get("/livez").status, 200);
    let ready = client.get("/readyz");
    ready.problem(503, "warming");
    assert!(ready.header("retry-after").is_some());
    client.get("/v1/tables/t").problem(503, "warming");
    client.get(&format!("/v1/blobs/{}", "00".repeat(32))).problem(503, "warming");
    let body = request(EPOCH, &[query(1)]).encode_to_vec();
    let refused = client.post_query(&body);
    refused.problem(503, "warming");
    assert!(refused.header("retry-after").is_some());

    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE))).unwrap();
    assert_eq!(client.get("/readyz").status, 200);
    client.ask(EPOCH, &[query(1)]);
}

#[test]
fn a_table_that_failed_is_told_and_other_tables_go_on() {
    let tables = Tables::new();
    tables.announce(&name("bad"));
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE))).unwrap();
    let server = TestServer::start(tables.clone(), config());
    let mut client = server.client();
    tables.fail(&name("bad"), "its files are damaged");
    assert_eq!(
        client.get("/v1/tables").json()["tables"][0],
        json!({"name": "bad", "state": "failed", "epoch": null, "protocol": null, "records": null,
               "reason": "its files are damaged"})
    );
    assert_eq!(client.get("/v1/tables").json()["tables"][1]["state"], "resident");
    let body = request([6; 32], &[query(1)]).encode_to_vec();
    // The other table answers, so that the server is ready, and says what is wrong.
    let ready = client.get("/readyz");
    assert_eq!(ready.status, 200);
    assert_eq!(ready.body, b"ok\ndegraded: table bad is not served: its files are damaged\n");
    assert_eq!(server.metric("hush_table_ready{table=\"bad\"}"), Some(0.0));
    assert_eq!(server.metric("hush_table_ready{table=\"t\"}"), Some(1.0));
    for refused in
        [client.get("/v1/tables/bad"), client.post("/v1/tables/bad/query", wire::CONTENT_TYPE, &body)]
    {
        let problem = refused.problem(503, "table_failed");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("table bad ") && detail.ends_with(": its files are damaged"), "{detail}");
        assert_eq!(refused.header("retry-after"), None, "waiting does not help");
    }
    // No table is still to come.
    client.get(&format!("/v1/blobs/{}", "00".repeat(32))).problem(404, "not_found");
    assert_eq!(client.get("/livez").status, 200);
    client.ask(EPOCH, &[query(1)]);

    tables.insert(&name("bad"), Arc::new(SumEngine::new(6))).unwrap();
    assert_eq!(client.get("/readyz").body, b"ok\n");
    assert_eq!(client.post("/v1/tables/bad/query", wire::CONTENT_TYPE, &body).status, 200);
    tables.fail(&name("bad"), "again");
    // A server without a table that answers is not ready.
    tables.remove(&name("t"));
    client.get("/readyz").problem(503, "table_failed");
    assert!(tables.remove(&name("bad")));
    assert_eq!(client.get("/readyz").status, 200);
}

#[test]
fn all_tables_can_be_required() {
    let tables = Tables::new();
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE))).unwrap();
    tables.fail(&name("bad"), "its files are damaged");
    let server = TestServer::start(tables.clone(), ServerConfig { require_tables: true, ..config() });
    let mut client = server.client();
    let refused = client.get("/readyz");
    let detail = refused.problem(503, "table_failed")["detail"].to_string();
    assert!(detail.contains("table bad ") && detail.contains(": its files are damaged"), "{detail}");
    assert_eq!(refused.header("retry-after"), None, "waiting does not help");
    client.ask(EPOCH, &[query(1)]);
    tables.insert(&name("bad"), Arc::new(SumEngine::new(6))).unwrap();
    assert_eq!(client.get("/readyz").body, b"ok\n");
}

#[test]
fn a_lost_copy_is_told_while_the_others_answer() {
    let engine = Arc::new(SumEngine::new(6));
    let tables = Tables::new();
    tables.insert(&name("copies"), engine.clone()).unwrap();
    let server = TestServer::start(tables, config());
    let mut client = server.client();
    assert_eq!(client.get("/readyz").body, b"ok\n");
    engine.degrade("1 of 2 GPUs with a copy have failed: it was told to");
    let degraded = "ok\ndegraded: table copies: 1 of 2 GPUs with a copy have failed: it was told to\n";
    assert_eq!(client.get("/readyz").body, degraded.as_bytes());
    assert_eq!(server.metric("hush_table_degraded{table=\"copies\"}"), Some(1.0));
    assert_eq!(server.metric("hush_table_ready{table=\"copies\"}"), Some(1.0));
}

#[test]
fn a_lost_gpu_is_told_and_other_tables_go_on() {
    let (lost, other) = (Arc::new(SumEngine::new(6)), Arc::new(SumEngine::new(EPOCH_BYTE)));
    let tables = Tables::new();
    tables.insert(&name("gpu"), lost.clone()).unwrap();
    tables.insert(&name("t"), other).unwrap();
    let server = TestServer::start(tables.clone(), config());
    let mut client = server.client();
    assert_eq!(client.get("/readyz").status, 200);
    lost.lose("launch of fold failed: CUDA_ERROR_ILLEGAL_ADDRESS");

    let ready = client.get("/readyz").problem(503, "device_lost");
    let expected = "the GPU of table gpu has failed; start the server again: launch of fold failed: CUDA_ERROR_ILLEGAL_ADDRESS";
    assert_eq!(ready["detail"], expected);
    let body = request([6; 32], &[query(1)]).encode_to_vec();
    for _ in 0..2 {
        let refused = client.post("/v1/tables/gpu/query", wire::CONTENT_TYPE, &body);
        let problem = refused.problem(503, "device_lost");
        assert!(problem["detail"].as_str().unwrap().contains("until the server is started again"));
        assert_eq!(refused.header("retry-after"), None, "waiting does not help");
    }
    assert_eq!(client.get("/livez").status, 200);
    client.ask(EPOCH, &[query(1)]);

    tables.insert(&name("gpu"), Arc::new(SumEngine::new(7))).unwrap();
    assert_eq!(client.get("/readyz").status, 200);
}

#[test]
fn a_table_whose_files_change_fails_and_others_answer() {
    let (changed, other) = (Arc::new(SumEngine::new(6)), Arc::new(SumEngine::new(EPOCH_BYTE)));
    let tables = Tables::new();
    tables.insert(&name("changed"), changed.clone()).unwrap();
    tables.insert(&name("t"), other).unwrap();
    let server = TestServer::start(tables.clone(), config());
    let mut client = server.client();
    let body = request([6; 32], &[query(1)]).encode_to_vec();
    changed.damage("/somewhere/db.bin was changed");
    // The answer is the same before and after the server has looked at the files.
    for _ in 0..2 {
        let refused = client.post("/v1/tables/changed/query", wire::CONTENT_TYPE, &body);
        let detail = refused.problem(503, "table_failed")["detail"].to_string();
        assert!(detail.contains("its files were changed while they were served"), "{detail}");
        assert!(!detail.contains("db.bin"), "{detail}");
    }
    let line = "degraded: table changed is not served: its files were changed while they were served\n";
    assert_eq!(client.get("/readyz").body, format!("ok\n{line}").as_bytes());
    assert!(!tables.is_resident(&name("changed")) && tables.is_resident(&name("t")));
    client.ask(EPOCH, &[query(1)]);

    // The next epoch replaces the failed one. A replaced epoch fails alone.
    tables.insert(&name("changed"), Arc::new(SumEngine::new(7))).unwrap();
    assert_eq!(client.get("/readyz").status, 200);
    let old = Arc::new(SumEngine::new(8));
    tables.insert(&name("changed"), old.clone()).unwrap();
    tables.insert(&name("changed"), Arc::new(SumEngine::new(9))).unwrap();
    old.damage("/somewhere/db.bin was changed");
    tables.fail_damaged();
    let body = request([8; 32], &[query(1)]).encode_to_vec();
    client.post("/v1/tables/changed/query", wire::CONTENT_TYPE, &body).problem(410, "epoch_gone");
    assert_eq!(client.get("/readyz").status, 200);
}

#[test]
fn a_new_epoch_takes_over_while_the_old_one_finishes() {
    let old = Arc::new(SumEngine::new(EPOCH_BYTE));
    let tables = Tables::new();
    tables.insert(&name("t"), old.clone()).unwrap();
    let config = ServerConfig { epoch_window: Duration::ZERO, ..config() };
    let server = TestServer::start(tables.clone(), config);
    let mut early = server.client();
    old.hold();
    early.send_queries(EPOCH, &[query(1)]);
    old.wait_for_scans(1);

    tables.insert(&name("t"), Arc::new(SumEngine::new(6))).unwrap();
    let mut late = server.client();
    let body = request(EPOCH, &[query(2)]).encode_to_vec();
    let problem = late.post_query(&body).problem(410, "epoch_gone");
    assert_eq!(problem["descriptor"], json!({"protocol": "sum", "records": 1000, "e": 6}));
    late.ask([6; 32], &[query(2)]);
    old.release();
    early.receive_answers(EPOCH, &[query(1)]);
}

#[test]
fn metrics_count_what_happened() {
    let (server, _engine) = TestServer::with_engine(config());
    let mut client = server.client();
    client.ask(EPOCH, &[query(1), query(2), query(3)]);
    client.ask(EPOCH, &[query(4)]);
    client.get("/v1/nothing").problem(404, "not_found");
    let value = |name: &str| server.metric(name);
    let query_route = "hush_http_requests_total{route=\"/v1/tables/{table}/query\",status=\"200\"}";
    assert_eq!(value(query_route), Some(2.0));
    assert_eq!(value("hush_http_requests_total{route=\"other\",status=\"404\"}"), Some(1.0));
    assert_eq!(value("hush_queries_answered_total{table=\"t\"}"), Some(4.0));
    assert_eq!(value("hush_batch_size_sum{table=\"t\"}"), Some(4.0));
    assert_eq!(value("hush_batch_size_count{table=\"t\"}"), Some(2.0));
    assert_eq!(value("hush_scan_seconds_count{table=\"t\"}"), Some(2.0));
    server.wait_for_queue(0);
    assert!(value("hush_received_bytes_total") >= Some(300.0));
    assert!(value("hush_sent_bytes_total") >= Some(300.0));
}

#[test]
fn metrics_tell_epochs_and_the_process() {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let begun = now();
    let tables = Tables::new();
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE))).unwrap();
    let server = TestServer::start(tables.clone(), config());
    let value = |name: &str| server.metric(name);
    let info = |byte: u8| {
        value(&format!("hush_table_epoch_info{{table=\"t\",epoch=\"{}\"}}", hex::encode([byte; 32])))
    };
    assert_eq!((info(EPOCH_BYTE), value("hush_table_epochs{table=\"t\"}")), (Some(1.0), Some(1.0)));
    tables.insert(&name("t"), Arc::new(SumEngine::new(6))).unwrap();
    assert_eq!((info(EPOCH_BYTE), info(6)), (None, Some(1.0)));
    assert_eq!(value("hush_table_epochs{table=\"t\"}"), Some(2.0), "the one before still answers");
    let since = value("hush_table_epoch_timestamp_seconds{table=\"t\"}").unwrap();
    assert!((begun..=now()).contains(&since), "{begun} {since}");

    let program = blake3::hash(&std::fs::read(std::env::current_exe().unwrap()).unwrap());
    let build = format!(
        "hush_build_info{{version=\"{}\",program=\"{}\"}}",
        env!("CARGO_PKG_VERSION"),
        program.to_hex()
    );
    assert_eq!(value(&build), Some(1.0));
    assert!(value("process_resident_memory_bytes") > Some(1e6));
    let started = value("process_start_time_seconds").unwrap();
    assert!(started > begun - 3600.0 && started <= now() + 1.0, "{started}");
    assert!(value("process_cpu_seconds_total").is_some());
    assert!(value("process_open_fds") > Some(3.0) && value("process_max_fds") > value("process_open_fds"));

    tables.upkeep().looked("t");
    assert_eq!(value("hush_reload_failures_total{table=\"t\"}"), Some(0.0));
    tables.upkeep().took_up("t", false);
    assert_eq!(value("hush_reload_failures_total{table=\"t\"}"), Some(1.0));
}

/// Returns names, kinds and labels of all metrics in the text of `/metrics`.
fn described(text: &str) -> BTreeSet<(String, String, Vec<String>)> {
    let mut labels = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap());
        let list = rest.strip_prefix('{').and_then(|rest| rest.rsplit_once("\"} "));
        let pairs = list.map_or("", |(list, _)| list).split("\",");
        let names: Vec<_> = pairs.filter_map(|pair| Some(pair.split_once('=')?.0.to_owned())).collect();
        labels.insert(name.to_owned(), names);
    }
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let metrics = kinds.map(|(name, kind)| {
        let suffix = match kind {
            "counter" => "_total",
            "histogram" => "_count",
            "info" => "_info",
            _ => "",
        };
        (name.to_owned(), kind.to_owned(), labels[&format!("{name}{suffix}")].clone())
    });
    metrics.collect()
}

#[test]
fn the_list_of_metrics_has_what_a_server_shows() {
    let tables = Tables::new();
    let table = name("t");
    tables.insert(&table, Arc::new(SumEngine::new(EPOCH_BYTE))).unwrap();
    tables.parts().expect(&table, 1, Duration::ZERO);
    tables.parts().seen(&table, 0, 1, 1);
    tables.parts().replied(&table, 0, Duration::ZERO);
    tables.upkeep().looked("t");
    let server = TestServer::start(tables, config());
    let mut client = server.client();
    client.ask(EPOCH, &[query(1)]);
    let text = String::from_utf8(client.get("/metrics").body).unwrap();
    let listed = METRICS.iter().map(|metric| {
        let labels = metric.labels.iter().map(|&label| label.to_owned()).collect();
        (metric.name.to_owned(), format!("{:?}", metric.kind).to_lowercase(), labels)
    });
    assert_eq!(described(&text), listed.collect());
}

#[test]
fn bad_descriptors_and_settings_are_refused() {
    let tables = Tables::new();
    for json in [b"[1]".as_slice(), b"", b"{\"records\":1", b"\xff"] {
        let refused = tables.insert(&name("t"), Arc::new(SumEngine::new(1).with_descriptor(json)));
        assert!(matches!(refused, Err(ServerError::Descriptor { .. })));
    }

    let config = ServerConfig { max_queries: 10, max_queue: 9, ..config() };
    let refused = TestServer::start(tables, config).join();
    assert!(matches!(refused, Err(ServerError::Config { setting: "max-queue", min: 10, actual: 9 })));
}
