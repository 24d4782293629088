//! The negative vectors of what servers send, and of what callers give: each is met by a whole session.

use std::sync::Arc;

use hush_client::{
    Wanted,
    session::{RelayOptions, ServerUrl, SessionError},
};
use hush_protocol::Code;

use super::{
    QUERY,
    driver::{Driver, lost},
    message::Reply,
    negative_vectors::{Negative, negatives},
};

const LIST_PATH: &str = "/v1/tables";
/// A path that no request has.
const NOWHERE: &str = "/nowhere";
const LIST: &str = r#"{"tables":[{"name":"t","state":"resident"}]}"#;

/// Looks `wanted` up at a server that answers as each vector of the format says. The input is the answer to requests whose path
/// ends with `place`, and otherwise the file that the vectors do not have.
fn check(format: &str, place: &'static str, wanted: impl Fn(&Negative) -> Vec<Wanted>) {
    for negative in negatives(format).into_iter().map(Arc::new) {
        let own = negative.clone();
        let status = own.number("status").unwrap_or(200) as u16;
        let mut driver = Driver::new(move |request| {
            let mut reply = match request.path.strip_prefix("/v1/blobs/") {
                Some(hash) => Reply::new(200, own.blobs.get(hash).unwrap_or(&own.input).clone()),
                None if request.path.ends_with(place) => Reply::new(status, own.input.clone()),
                None if request.path.ends_with(LIST_PATH) => Reply::new(200, LIST),
                None => Reply::new(200, own.descriptor.clone()),
            };
            reply.stated_length = Some(reply.body.len() as u64);
            reply
        });
        driver.options.retry.attempts = 1;
        let refused = look_up(&mut driver, &wanted(&negative)).err();
        // A problem document is an error of the look-up whether or not the client can read it: its code is the verdict.
        let is_valid = if format == "problem" { negative.is_valid } else { refused.is_none() };
        negative.check(is_valid, code(&refused), &said(&refused));
    }
}

fn code(refused: &Option<SessionError>) -> Option<&'static str> {
    refused.as_ref().map(|error| error.code().word())
}

fn said(refused: &Option<SessionError>) -> String {
    refused.as_ref().map(SessionError::to_string).unwrap_or_default()
}

fn look_up(driver: &mut Driver, wanted: &[Wanted]) -> Result<(), SessionError> {
    let connecting = driver.connect();
    let server = driver.drive(connecting)?;
    let mut session = driver.drive(server.open(Some("t")))?;
    driver.drive(session.look_up(wanted)).map(drop)
}

fn records(count: usize) -> Vec<Wanted> {
    vec![Wanted::Index(0); count]
}

#[test]
fn lists_of_tables_get_the_verdicts_of_the_documents() {
    check("tables", LIST_PATH, |_| Vec::new());
}

#[test]
fn problems_get_the_verdicts_of_the_documents() {
    check("problem", QUERY, |_| records(1));
}

#[test]
fn responses_get_the_verdicts_of_the_documents() {
    check("query_response", QUERY, |negative| records(negative.number("queries").unwrap()));
}

#[test]
fn files_and_values_get_the_verdicts_of_the_documents() {
    for format in ["files", "values"] {
        check(format, NOWHERE, |negative| match negative.text("key") {
            Some(key) => vec![Wanted::Key(key.into())],
            None => records(1),
        });
    }
}

#[test]
fn keys_get_the_verdicts_of_the_documents() {
    check("key", NOWHERE, |negative| vec![Wanted::Key(negative.input.clone())]);
}

#[test]
fn urls_get_the_verdicts_of_the_documents() {
    for negative in negatives("url") {
        let refused = ServerUrl::parse(str::from_utf8(&negative.input).unwrap()).err();
        negative.check(refused.is_none(), code(&refused), &said(&refused));
    }
}

/// A client that takes the keys seals a request with them, which nobody answers here.
#[test]
fn keys_of_gateways_get_the_verdicts_of_the_documents() {
    for negative in negatives("ohttp_keys") {
        let mut driver = Driver::failing(|_| Err(lost()));
        let keys = Some(negative.input.clone());
        driver.options.relay = Some(RelayOptions { url: "http://relay.example".into(), keys });
        driver.options.retry.attempts = 1;
        let refused = look_up(&mut driver, &[]).err();
        let is_sealed = refused.as_ref().is_some_and(|error| error.code() == Code::Unreachable);
        negative.check(is_sealed, code(&refused), &said(&refused));
    }
}
