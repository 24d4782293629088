//! Tests of `GET /v1/blobs/{hash}`.

use std::{fs, io::Write, sync::Arc};

use hush_server::Tables;
use tempfile::NamedTempFile;

use crate::{
    engine::SumEngine,
    harness::{EPOCH_BYTE, TestServer, config, name},
};

const HASH: [u8; 32] = [0xab; 32];
/// The bytes of the file: more than two chunks of the server, and not a multiple of one.
const BYTES: usize = 700_001;

fn content() -> Vec<u8> {
    (0..BYTES).map(|i| (i % 251) as u8).collect()
}

fn serve(file: &NamedTempFile, bytes: u64) -> TestServer {
    let engine = SumEngine::new(EPOCH_BYTE).with_blob(HASH, file.reopen().unwrap(), bytes);
    let tables = Tables::new();
    tables.insert(&name("t"), Arc::new(engine)).unwrap();
    TestServer::start(tables, config())
}

fn served() -> (TestServer, NamedTempFile, String) {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(&content()).unwrap();
    (serve(&file, BYTES as u64), file, format!("/v1/blobs/{}", hex::encode(HASH)))
}

#[test]
fn a_whole_file_is_immutable_and_cacheable() {
    let (server, _file, path) = served();
    let mut client = server.client();
    let response = client.get(&path);
    assert_eq!(response.status, 200);
    assert!(response.body == content());
    assert_eq!(response.header("content-type"), Some("application/octet-stream"));
    assert_eq!(response.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(response.header("accept-ranges"), Some("bytes"));
    let etag = format!("\"{}\"", hex::encode(HASH));
    assert_eq!(response.header("etag"), Some(etag.as_str()));
    let response = client.get_with(&path, &format!("If-None-Match: {etag}\r\n"));
    assert_eq!((response.status, response.body.len()), (304, 0));
}

#[test]
fn head_gives_the_headers_of_a_file() {
    let (server, _file, path) = served();
    let mut client = server.client();
    let head = client.head(&path);
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-length"), Some("700001"));
    assert_eq!(head.header("accept-ranges"), Some("bytes"));
    assert_eq!(head.header("etag"), Some(format!("\"{}\"", hex::encode(HASH)).as_str()));
    // No body came before this response.
    assert!(client.get(&path).body == content());
}

#[test]
fn ranges_give_parts() {
    let (server, _file, path) = served();
    let mut client = server.client();
    let cases = [
        ("0-0", 0..1),
        ("1000-300000", 1000..300_001),
        ("262144-", 262_144..BYTES),
        ("-5", BYTES - 5..BYTES),
        ("-9999999", 0..BYTES),
        ("700000-800000", 700_000..BYTES),
    ];
    for (text, range) in cases {
        let response = client.get_with(&path, &format!("Range: bytes={text}\r\n"));
        assert_eq!(response.status, 206, "{text}");
        let expected = format!("bytes {}-{}/{BYTES}", range.start, range.end - 1);
        assert_eq!(response.header("content-range"), Some(expected.as_str()));
        assert!(response.body == content()[range], "{text}");
    }
}

#[test]
fn bad_ranges_are_416_with_the_length() {
    let (server, _file, path) = served();
    let mut client = server.client();
    for text in ["bytes=700001-", "bytes=9-3", "bytes=-0", "bytes=x-y", "bytes=", "bytes", "bytes=-"] {
        let response = client.get_with(&path, &format!("Range: {text}\r\n"));
        response.problem(416, "range_not_satisfiable");
        assert_eq!(response.header("content-range"), Some("bytes */700001"), "{text}");
    }
}

#[test]
fn ranges_that_do_not_apply_give_the_whole() {
    let (server, _file, path) = served();
    let mut client = server.client();
    let etag = hex::encode(HASH);
    for headers in
        ["Range: lines=1-2\r\n", "Range: bytes=0-1,5-6\r\n", "Range: bytes=0-1\r\nIf-Range: \"x\"\r\n"]
    {
        let response = client.get_with(&path, headers);
        assert_eq!((response.status, response.body.len()), (200, BYTES), "{headers}");
    }
    let matching = format!("Range: bytes=0-1\r\nIf-Range: \"{etag}\"\r\n");
    assert_eq!(client.get_with(&path, &matching).status, 206);
}

#[test]
fn unknown_files_are_not_found() {
    let (server, _file, _path) = served();
    let mut client = server.client();
    for hash in ["00".repeat(32), "ab".repeat(31), "ab".repeat(33), "zz".repeat(32)] {
        client.get(&format!("/v1/blobs/{hash}")).problem(404, "not_found");
    }
    client.get("/v1/blobs/..%2f..%2fetc%2fpasswd").problem(404, "not_found");
}

#[test]
fn a_file_that_is_replaced_on_disk_is_still_served_as_it_was() {
    let (server, file, path) = served();
    let mut client = server.client();
    let replacement = NamedTempFile::new().unwrap();
    fs::write(replacement.path(), vec![0xee; BYTES]).unwrap();
    fs::rename(replacement.path(), file.path()).unwrap();
    assert!(client.get(&path).body == content());
    file.close().unwrap();
    assert!(client.get(&path).body == content());
}

#[test]
fn a_file_that_was_cut_off_never_looks_complete() {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(b"short").unwrap();
    let server = serve(&file, 6);
    let mut client = server.client();
    client
        .send(format!("GET /v1/blobs/{} HTTP/1.1\r\nHost: localhost\r\n\r\n", hex::encode(HASH)).as_bytes());
    let received = String::from_utf8(client.rest()).unwrap();
    // If reading fails early enough, not even the headers are sent.
    if let Some((head, body)) = received.split_once("\r\n\r\n") {
        assert!(head.contains("200") && head.contains("content-length: 6") && body.len() < 6, "{received}");
    }
}
