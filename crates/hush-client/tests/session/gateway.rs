//! A gateway of Oblivious HTTP before a scripted server.

use std::io::Cursor;

use bhttp::{Message, Mode, StatusCode};
use hush_client::session::{RelayOptions, SessionError};
use hush_protocol::ohttp::{DATE_PROBLEM, KEY_PROBLEM, KEYS_TYPE, RESPONSE_TYPE};
use ohttp::{
    KeyConfig, Server, SymmetricSuite,
    hpke::{Aead, Kdf, Kem},
};

use super::{
    driver::Driver,
    look_up,
    message::{Reply, Request},
    ring_sample::RingSample,
};

fn key(id: u8) -> KeyConfig {
    let ciphers =
        [Aead::Aes128Gcm, Aead::ChaCha20Poly1305].map(|aead| SymmetricSuite::new(Kdf::HkdfSha256, aead));
    KeyConfig::new(id, Kem::X25519Sha256, ciphers.to_vec()).unwrap()
}

/// Returns the relay of these tests.
pub(crate) fn relay(url: &str) -> Option<RelayOptions> {
    Some(RelayOptions { url: url.into(), keys: None })
}

/// Answers as `serve` does, and opens sealed requests for it, under a key that changes after `until` of them.
pub(crate) fn gateway(
    mut serve: impl FnMut(&Request) -> Reply + 'static,
    until: usize,
) -> impl FnMut(&Request) -> Reply {
    let mut keys = vec![key(2), key(1)];
    let mut opened = 0;
    move |request| {
        if !request.path.is_empty() {
            return serve(request);
        }
        let config = keys.last().unwrap().clone();
        if request.method == "GET" {
            let list = KeyConfig::encode_list(&[config]).unwrap();
            return Reply::new(200, list).with("content-type", KEYS_TYPE);
        }
        opened += 1;
        if opened == until {
            keys.pop();
        }
        let Ok((message, responder)) = Server::new(config).unwrap().decapsulate(&request.body) else {
            return Reply::new(400, format!("{{\"type\":\"{KEY_PROBLEM}\"}}"));
        };
        let message = Message::read_bhttp(&mut Cursor::new(message)).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let headers = message.header().fields().iter().map(|field| (text(field.name()), text(field.value())));
        let inner = Request {
            method: text(message.control().method().unwrap()),
            path: text(message.control().path().unwrap()),
            headers: headers.collect(),
            body: message.content().to_vec(),
        };
        assert_eq!(message.control().authority(), Some(&b"Localhost:7700"[..]));
        assert!(inner.header("date").is_some_and(|date| date.ends_with(" GMT")));
        let reply = serve(&inner);
        let mut message = Message::response(StatusCode::try_from(u64::from(reply.status)).unwrap());
        for (name, value) in &reply.headers {
            message.put_header(*name, value.as_str());
        }
        message.write_content(&reply.body);
        let mut bytes = Vec::new();
        message.write_bhttp(Mode::KnownLength, &mut bytes).unwrap();
        Reply::new(200, responder.encapsulate(&bytes).unwrap()).with("content-type", RESPONSE_TYPE)
    }
}

/// Returns a client of a table over rings behind a relay.
fn relayed(until: usize) -> Driver {
    let mut sample = RingSample::new(1);
    behind_relay(gateway(move |request| sample.reply(request), until))
}

/// Returns a client whose server behind a relay answers what `refuse` does not.
fn before(mut refuse: impl FnMut(&Request) -> Option<Reply> + 'static) -> Driver {
    let mut sample = RingSample::new(1);
    behind_relay(gateway(move |request| refuse(request).unwrap_or_else(|| sample.reply(request)), 0))
}

/// Returns a client whose relay answers what `fault` does not.
fn faulty(mut fault: impl FnMut(&Request) -> Option<Reply> + 'static) -> Driver {
    let mut sample = RingSample::new(1);
    let mut passed_on = gateway(move |request| sample.reply(request), 0);
    behind_relay(move |request| fault(request).unwrap_or_else(|| passed_on(request)))
}

/// Returns a client whose requests to the relay `serve` answers.
fn behind_relay(serve: impl FnMut(&Request) -> Reply + 'static) -> Driver {
    let mut driver = Driver::new(serve);
    driver.options.relay = relay("http://relay.example");
    driver
}

#[test]
fn a_relay_sees_requests_of_one_size() {
    let sizes = |wanted: [u64; 2]| {
        let mut driver = relayed(0);
        let found = look_up(&mut driver, &wanted).unwrap();
        assert_eq!(found, wanted.map(|index| Some(RingSample::value(1, index))));
        driver.requests.iter().map(|request| request.body.len()).collect::<Vec<_>>()
    };
    let expected = sizes([0, 1]);
    assert_eq!((expected.len(), expected[0]), (5, 0), "keys of the gateway, list, descriptor, keys, query");
    assert_eq!(sizes([15, 7]), expected);
}

#[test]
fn a_key_that_the_gateway_has_no_more_is_fetched_anew() {
    let mut driver = relayed(2);
    assert_eq!(look_up(&mut driver, &[3]).unwrap(), [Some(RingSample::value(1, 3))]);
    assert_eq!(driver.requests.iter().filter(|request| request.method == "GET").count(), 2);
}

#[test]
fn a_relay_that_is_busy_is_asked_again() {
    for (status, method) in [(429, "GET"), (502, "POST"), (503, "GET"), (504, "POST")] {
        let mut busy = 2;
        let mut driver = faulty(move |request| {
            let is_busy = request.method == method && busy > 0;
            busy -= usize::from(is_busy);
            is_busy.then(|| Reply::new(status, ""))
        });
        assert_eq!(look_up(&mut driver, &[3]).unwrap(), [Some(RingSample::value(1, 3))]);
        assert_eq!(driver.waits.len(), 2, "{status} {method}");
    }
}

#[test]
fn what_a_relay_says_itself_is_its_own_error() {
    for (status, kind, body, said) in [
        (308, "text/html", "", "it has moved, so use the URL to which it has (status 308)"),
        (403, RESPONSE_TYPE, "", "does not let this client in (status 403)"),
        (413, "", "", "takes no request of this length"),
        (500, RESPONSE_TYPE, r#"{"detail":"out of ink"}"#, "out of ink (status 500)"),
        (200, "text/html", "<html>", "(status 200)"),
        (400, "", "an answer about another date and another key", "it says no reason (status 400)"),
    ] {
        let mut driver = faulty(move |request| {
            (request.method == "POST").then(|| Reply::new(status, body).with("content-type", kind))
        });
        let error = look_up(&mut driver, &[3]).unwrap_err();
        assert!(matches!(error, SessionError::Relay { .. }), "{status}: {error:?}");
        assert!(error.to_string().contains(said), "{status}: {error}");
        assert_eq!((driver.requests.len(), driver.waits.len()), (2, 0), "{status}");
    }
    for status in [429, 503] {
        let mut driver =
            faulty(move |request| (request.method == "POST").then(|| Reply::new(status, "<html>")));
        let error = look_up(&mut driver, &[3]).unwrap_err().to_string();
        let said =
            if status == 429 { "this client asks too often" } else { "does not reach what is behind it" };
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_response_of_a_relay_has_a_limit() {
    let mut driver = faulty(|request| {
        (request.method == "GET").then(|| Reply::new(200, vec![0; 1 << 20]).with("content-type", KEYS_TYPE))
    });
    let error = look_up(&mut driver, &[3]).unwrap_err().to_string();
    assert!(error.contains("the relay's response has more than"), "{error}");
    assert!(driver.bytes_read < 1 << 18, "{}", driver.bytes_read);
}

#[test]
fn a_server_that_asks_for_another_date_is_told_it_once_a_request() {
    const DATE: &str = "Tue, 01 Jan 2030 00:00:00 GMT";
    let refusal = |status: u16, date: &'static str| {
        Reply::new(status, format!(r#"{{"code":"bad_request","detail":"d","type":"{DATE_PROBLEM}"}}"#))
            .with("date", date)
    };
    let date = |request: &Request| request.header("date").unwrap().to_owned();
    let mut driver = before(move |request| (date(request) != DATE).then(|| refusal(400, DATE)));
    assert_eq!(look_up(&mut driver, &[3]).unwrap(), [Some(RingSample::value(1, 3))]);
    assert_eq!(driver.requests.len(), 1 + 2 * 4, "each of list, descriptor, keys and query, twice");
    // A refusal is told to the caller if its date is not readable, if its status is another one, or if it comes a second time.
    for (status, said, requests) in [(400, "no date", 2), (403, DATE, 2), (400, DATE, 3)] {
        let mut driver = before(move |_| Some(refusal(status, said)));
        look_up(&mut driver, &[3]).unwrap_err();
        assert_eq!(driver.requests.len(), requests, "{status} {said}");
    }
}
