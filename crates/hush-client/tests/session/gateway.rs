//! A gateway of Oblivious HTTP before a scripted server.

use std::io::Cursor;

use bhttp::{Message, Mode, StatusCode};
use hush_client::session::RelayOptions;
use hush_protocol::ohttp::{KEY_PROBLEM, KEYS_TYPE, RESPONSE_TYPE};
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
    let mut driver = Driver::new(gateway(move |request| sample.reply(request), until));
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
