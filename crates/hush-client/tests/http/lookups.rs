//! Look-ups, retries, new epochs, and servers that are none.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::Duration,
};

use hush_client::{
    Acceptance, ClientError, Wanted,
    http::{HttpClient, HttpError, HttpOptions},
};
use hush_he::params::SIMPLEPIR_N1024_STD6_4_SEC121;
use hush_protocol::{Code, ProtocolError};
use tempfile::tempdir;

use super::{
    open, options, sample,
    sample::{NAME, Sample},
    server::{Reply, Server},
};

const QUERY: &str = "/query";

/// Returns a server of `sample` that answers the first queries with `faults` in turn.
fn faulty(sample: &Sample, faults: Vec<Reply>) -> Server {
    let (sample, mut faults) = (sample.clone(), faults.into_iter());
    Server::start(move |request| {
        let fault = if request.path.ends_with(QUERY) { faults.next() } else { None };
        fault.unwrap_or_else(|| sample.reply(request))
    })
}

/// Returns the error of a look-up whose every attempt is answered with `reply`.
fn error_of(reply: fn() -> Reply) -> HttpError {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let server = faulty(&sample, vec![reply(), reply(), reply()]);
    open(&server.url(), cache.path()).unwrap().lookup(&[Wanted::Index(3)]).unwrap_err()
}

#[test]
fn every_record_is_found_in_requests_of_limited_length() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let server = faulty(&sample, vec![]);
    let options = HttpOptions { max_queries: 5, ..options(cache.path()) };
    let client = HttpClient::connect(&server.url(), options).unwrap();
    assert_eq!(client.tables()[0].records, Some(16));
    let mut table = client.open(Some(NAME)).unwrap();
    let wanted: Vec<_> = (0..16).rev().map(Wanted::Index).collect();
    let found = table.lookup(&wanted).unwrap();
    let expected: Vec<_> = (0..16).rev().map(|index| Some(Sample::value(1, index))).collect();
    assert_eq!(found, expected);
    let lengths: Vec<_> = server.requests(QUERY).iter().map(|request| request.body.len() as u64).collect();
    assert_eq!(lengths.len(), 4);
    assert!(lengths[..3].iter().all(|&length| length == lengths[0]) && lengths[3] < lengths[0]);
    let stats = table.stats();
    assert_eq!((stats.queries, stats.bytes_up), (16, lengths.iter().sum()));
    assert!(stats.bytes_down > 0 && stats.seconds.network > 0.0 && stats.seconds.encrypt > 0.0);
    assert_eq!(table.lookup(&[]).unwrap(), []);
    assert_eq!(server.requests(QUERY).len(), 4);
}

#[test]
fn a_program_that_ends_soon_closes_its_connection_with_the_last_response() {
    for closes in [false, true] {
        let (sample, cache) = (sample(1), tempdir().unwrap());
        let server = faulty(&sample, vec![]);
        let options = HttpOptions { max_queries: 2, closes, ..options(cache.path()) };
        let mut table = HttpClient::connect(&server.url(), options).unwrap().open(None).unwrap();
        table.lookup(&[1, 2, 3].map(Wanted::Index)).unwrap();
        let all = server.requests("");
        let closing: Vec<bool> =
            all.iter().map(|request| request.header("connection") == Some("close")).collect();
        let (last, others) = closing.split_last().unwrap();
        assert!(*last == closes && !others.contains(&true), "{closing:?}");
    }
}

#[test]
fn a_busy_server_is_asked_again_under_fresh_secrets() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let busy = |status| Reply::problem(status, "overloaded", "full").with("Retry-After", 0);
    let server = faulty(&sample, vec![busy(503), busy(429)]);
    let mut table = open(&server.url(), cache.path()).unwrap();
    assert_eq!(table.lookup(&[Wanted::Index(9)]).unwrap(), [Some(Sample::value(1, 9))]);
    let bodies: Vec<_> = server.requests(QUERY).into_iter().map(|request| request.body).collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies.iter().all(|body| body.len() == bodies[0].len()));
    assert!(bodies[0] != bodies[1] && bodies[1] != bodies[2] && bodies[0] != bodies[2]);
    assert_eq!(table.stats().queries, 3);
}

#[test]
fn a_lost_connection_is_made_again() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let cut = Reply { cut: Some(2), ..Reply::new(200, [0; 10]) };
    let server = faulty(&sample, vec![cut]);
    let mut table = open(&server.url(), cache.path()).unwrap();
    assert_eq!(table.lookup(&[Wanted::Index(0)]).unwrap(), [Some(Sample::value(1, 0))]);
}

#[test]
fn attempts_are_limited() {
    let error = error_of(|| Reply::problem(503, "overloaded", "full"));
    assert!(matches!(&error, HttpError::Refused(busy) if busy.detail == "full"), "{error}");
    assert_eq!(error.code(), Code::Overloaded);
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let server = faulty(&sample, (0..9).map(|_| Reply::problem(503, "overloaded", "full")).collect());
    open(&server.url(), cache.path()).unwrap().lookup(&[Wanted::Index(0)]).unwrap_err();
    assert_eq!(server.requests(QUERY).len(), 3);
}

#[test]
fn a_server_whose_gpu_has_failed_is_asked_once() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let server = faulty(&sample, vec![Reply::problem(503, "device_lost", "until it is started again")]);
    let error = open(&server.url(), cache.path()).unwrap().lookup(&[Wanted::Index(0)]).unwrap_err();
    assert_eq!(error.code(), Code::DeviceLost, "{error}");
    assert_eq!(server.requests(QUERY).len(), 1);
}

#[test]
fn a_wait_that_is_too_long_ends_the_call() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let server = faulty(&sample, vec![Reply::problem(429, "throttled", "slowly").with("Retry-After", 61)]);
    let error = open(&server.url(), cache.path()).unwrap().lookup(&[Wanted::Index(0)]).unwrap_err();
    assert_eq!(error.to_string(), "the server cannot answer now (slowly): try again in 61 s");
    assert_eq!(server.requests(QUERY).len(), 1);
}

#[test]
fn a_table_that_is_loading_is_waited_for() {
    let warming = || (0..9).map(|_| Reply::problem(503, "warming", "loading")).collect();
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let server = faulty(&sample, warming());
    let mut table = open(&server.url(), cache.path()).unwrap();
    assert_eq!(table.lookup(&[Wanted::Index(1)]).unwrap(), [Some(Sample::value(1, 1))]);
    assert_eq!(server.requests(QUERY).len(), 10, "more than the attempts");

    let server = faulty(&sample, warming());
    let mut options = options(cache.path());
    options.retry.max_warming = Duration::ZERO;
    let mut table = HttpClient::connect(&server.url(), options).unwrap().open(None).unwrap();
    let error = table.lookup(&[Wanted::Index(1)]).unwrap_err();
    assert_eq!(error.code(), Code::Warming, "{error}");
    assert_eq!(server.requests(QUERY).len(), 1);
}

#[test]
fn a_new_epoch_is_fetched_once() {
    let (old, new, cache) = (sample(1), sample(2), tempdir().unwrap());
    let mut queries = 0;
    let server = Server::start(move |request| {
        queries += usize::from(request.path.ends_with(QUERY));
        // The first request still meets the old epoch.
        if queries < 2 && !request.path.contains(&new.hint_name()) {
            old.reply(request)
        } else {
            new.reply(request)
        }
    });
    let options = HttpOptions { max_queries: 2, ..options(cache.path()) };
    let mut table = HttpClient::connect(&server.url(), options).unwrap().open(None).unwrap();
    let found = table.lookup(&[1, 2, 3].map(Wanted::Index)).unwrap();
    assert_eq!(found, [1, 2, 3].map(|index| Some(Sample::value(2, index))), "all of one epoch");
    assert_eq!(table.table().descriptor(), &sample(2).descriptor);
    assert_eq!(server.requests(QUERY).len(), 4, "one of the old epoch, one refused, two of the new one");
}

#[test]
fn epochs_that_keep_changing_are_an_error() {
    let (first, second, cache) = (sample(1), sample(2), tempdir().unwrap());
    let mut queries = 0;
    let server = Server::start(move |request| {
        queries += usize::from(request.path.ends_with(QUERY));
        // Always the other one.
        let other = if queries == 1 || request.path.contains(&second.hint_name()) { &second } else { &first };
        other.reply(request)
    });
    let error = open(&server.url(), cache.path()).unwrap().lookup(&[Wanted::Index(0)]).unwrap_err();
    assert!(matches!(error, HttpError::EpochGone { .. }), "{error}");
    assert_eq!(server.requests(QUERY).len(), 2);
}

#[test]
fn unusable_answers_are_errors() {
    let error = error_of(|| Reply::new(200, "this is not protobuf"));
    assert!(matches!(error, HttpError::Wire(_)), "{error}");
    let error = error_of(|| Reply::new(200, ""));
    assert!(matches!(error, HttpError::Wire(_)), "{error}");
    let error = error_of(|| Reply::new(200, vec![0; 1 << 16]));
    assert!(matches!(error, HttpError::TooLong { .. }), "{error}");
    let error = error_of(|| Reply { stated_length: Some(1 << 40), ..Reply::new(200, "") });
    assert!(matches!(error, HttpError::TooLong { .. }), "{error}");
    let error = error_of(|| Reply::new(302, "").with("Location", "https://elsewhere.example/"));
    assert!(matches!(error, HttpError::Moved { .. }), "{error}");
    let error =
        error_of(|| Reply::new(410, r#"{"code":"epoch_gone","detail":"","descriptor":{"version":1}}"#));
    assert!(matches!(error, HttpError::Client(_)), "{error}");
    let error = error_of(|| Reply::problem(400, "invalid_request", "no \x1b[31mgood\nat all"));
    assert!(error.to_string().contains("no  [31mgood at all (invalid_request, status 400)"), "{error}");
}

#[test]
fn what_no_such_table_can_be_asked_for_is_never_sent() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let server = faulty(&sample, vec![]);
    let options = HttpOptions { max_queries: 1, ..options(cache.path()) };
    let mut table = HttpClient::connect(&server.url(), options).unwrap().open(None).unwrap();
    let error = table.lookup(&[Wanted::Index(0), Wanted::Key(b"key".to_vec())]).unwrap_err();
    assert!(error.to_string().contains("looked up by index"), "{error}");
    let error = table.lookup(&[Wanted::Index(0), Wanted::Key(vec![7; 4097])]).unwrap_err();
    assert!(error.to_string().contains("a key is 4097 bytes"), "{error}");
    assert!(server.requests(QUERY).is_empty());
}

#[test]
fn the_server_does_not_learn_that_an_index_is_out_of_range() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let requests = |first: u64| {
        let server = faulty(&sample, vec![]);
        let options = HttpOptions { max_queries: 1, ..options(cache.path()) };
        let mut table = HttpClient::connect(&server.url(), options).unwrap().open(None).unwrap();
        let outcome = table.lookup(&[first, 3, 99].map(Wanted::Index));
        let lengths: Vec<_> = server.requests(QUERY).iter().map(|request| request.body.len()).collect();
        (outcome.unwrap_err(), lengths)
    };
    let (in_range, lengths) = requests(15);
    assert_eq!(lengths.len(), 3);
    for index in [16, u64::MAX] {
        let (out_of_range, other) = requests(index);
        assert_eq!(other, lengths);
        let expected = ProtocolError::IndexOutOfRange { index, last: 15 };
        assert_eq!(out_of_range.to_string(), expected.to_string(), "the first error is reported");
    }
    assert_eq!(in_range.to_string(), ProtocolError::IndexOutOfRange { index: 99, last: 15 }.to_string());
}

#[test]
fn weak_tables_need_consent() {
    let (sample, cache) = (Sample::new(1, SIMPLEPIR_N1024_STD6_4_SEC121), tempdir().unwrap());
    let server = faulty(&sample, vec![]);
    let error = open(&server.url(), cache.path()).err().unwrap();
    assert!(matches!(error, HttpError::Client(ClientError::Weak { .. })), "{error}");
    assert!(server.requests("/v1/blobs/").is_empty(), "refused before the hint is downloaded");
    let acceptance = Acceptance::of_weak(SIMPLEPIR_N1024_STD6_4_SEC121.name());
    let options = HttpOptions { acceptance, ..options(cache.path()) };
    let mut table = HttpClient::connect(&server.url(), options).unwrap().open(None).unwrap();
    assert_eq!(table.lookup(&[Wanted::Index(5)]).unwrap(), [Some(Sample::value(1, 5))]);
}

#[test]
fn a_table_is_chosen_by_name_or_is_the_only_one() {
    let list = |names: &[&str]| {
        let tables: Vec<_> =
            names.iter().map(|name| serde_json::json!({ "name": name, "state": "loading" })).collect();
        serde_json::json!({ "tables": tables }).to_string()
    };
    let error = |names: &[&str], name: Option<&str>| {
        let (list, cache) = (list(names), tempdir().unwrap());
        let server = Server::start(move |_| Reply::new(200, list.as_str()));
        let opened =
            HttpClient::connect(&server.url(), options(cache.path())).and_then(|client| client.open(name));
        opened.err().unwrap()
    };
    assert!(matches!(error(&[], None), HttpError::NoTables));
    assert!(error(&["a", "b"], None).to_string().contains("'table': a, b"));
    assert_eq!(error(&["a", "b"], Some("c")).to_string(), "the server has no table 'c': it has a, b");
    assert!(matches!(error(&["a/../b"], None), HttpError::NotHushDb { .. }));
}

#[test]
fn other_servers_are_told_apart() {
    let cache = tempdir().unwrap();
    for (status, body) in [(200, "<html>hello</html>"), (404, "<html>no</html>"), (500, "{}")] {
        let server = Server::start(move |_| Reply::new(status, body));
        let error = open(&server.url(), cache.path()).err().unwrap();
        assert!(matches!(error, HttpError::NotHushDb { .. }), "{error}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = open(&gone, cache.path()).err().unwrap();
    assert!(matches!(error, HttpError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("is the server running"), "{error}");
    for url in
        ["localhost:7700", "ftp://localhost", "http://localhost/?x", "http://localhost/#x", "not a url", ""]
    {
        let error = open(url, cache.path()).err().unwrap();
        assert!(matches!(error, HttpError::Url { .. }), "{url}: {error}");
    }
}

#[test]
fn a_plain_server_behind_an_https_url_is_a_tls_error() {
    let (cache, listener) = (tempdir().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let url = format!("https://{}", listener.local_addr().unwrap());
    let plain = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 100]).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let error = open(&url, cache.path()).err().unwrap();
    assert!(matches!(error, HttpError::Tls { .. }), "{error}");
    plain.join().unwrap();
}

#[test]
fn a_server_that_asks_for_keys_without_need_is_an_error() {
    let error = error_of(|| Reply::problem(428, "key_not_found", "upload them"));
    assert!(matches!(error, HttpError::NotHushDb { .. }), "{error}");
}
