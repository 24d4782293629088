//! Calls that end before their time, or with it.

use std::{
    sync::mpsc::{Sender, channel},
    thread,
    time::{Duration, Instant},
};

use hush_client::{
    Wanted,
    http::{CallOptions, Cancel, HttpClient, HttpError, HttpOptions, RetryPolicy},
};
use hush_protocol::Code;
use tempfile::tempdir;

use super::{
    options, sample,
    sample::Sample,
    server::{Reply, Server},
};

const SOON: Duration = Duration::from_secs(2);

/// Returns a server whose first query is answered once the sender is dropped.
fn silent() -> (Server, Sender<()>) {
    let (sender, receiver) = channel();
    let (sample, mut receiver) = (sample(1), Some(receiver));
    let server = Server::start(move |request| {
        if request.path.ends_with("/query")
            && let Some(receiver) = receiver.take()
        {
            let _ = receiver.recv();
        }
        sample.reply(request)
    });
    (server, sender)
}

#[test]
fn a_call_that_is_given_up_leaves_its_connection() {
    let ((server, answers), cache) = (silent(), tempdir().unwrap());
    let mut table = HttpClient::connect(&server.url(), options(cache.path())).unwrap().open(None).unwrap();
    let cancel = Cancel::default();
    let call = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
    let begun = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            cancel.cancel();
        });
        let error = table.lookup_with(&[Wanted::Index(3)], &call).unwrap_err();
        assert!(matches!(error, HttpError::Cancelled), "{error}");
    });
    assert!(begun.elapsed() < SOON);
    assert_eq!(server.requests("/query").len(), 1, "it is not tried again");
    drop(answers);
    assert!(matches!(table.lookup_with(&[Wanted::Index(3)], &call), Err(HttpError::Cancelled)));
    assert_eq!(table.lookup(&[Wanted::Index(3)]).unwrap(), [Some(Sample::value(1, 3))]);
    assert_eq!(server.requests("/query").len(), 2);
}

#[test]
fn a_call_ends_with_its_time() {
    let ((server, answers), cache) = (silent(), tempdir().unwrap());
    let options = HttpOptions { timeout: Some(Duration::from_millis(400)), ..options(cache.path()) };
    let mut table = HttpClient::connect(&server.url(), options).unwrap().open(None).unwrap();
    let begun = Instant::now();
    let error = table.lookup(&[Wanted::Index(3)]).unwrap_err();
    assert!(matches!(error, HttpError::Timeout { .. }), "{error}");
    assert!(begun.elapsed() < SOON);
    drop(answers);
    assert_eq!(table.lookup(&[Wanted::Index(3)]).unwrap(), [Some(Sample::value(1, 3))]);
}

#[test]
fn retries_are_within_the_time_of_a_call() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let server = Server::start(move |request| match request.path.ends_with("/query") {
        true => Reply::problem(503, "overloaded", "not now"),
        false => sample.reply(request),
    });
    let wait = Duration::from_millis(100);
    let options = HttpOptions {
        timeout: Some(Duration::from_millis(500)),
        retry: RetryPolicy { attempts: 1000, first_wait: wait, max_wait: wait, ..RetryPolicy::default() },
        ..options(cache.path())
    };
    let mut table = HttpClient::connect(&server.url(), options).unwrap().open(None).unwrap();
    let begun = Instant::now();
    let error = table.lookup(&[Wanted::Index(3)]).unwrap_err();
    assert!(matches!(error.code(), Code::Overloaded | Code::Timeout), "{error}");
    assert!(begun.elapsed() < Duration::from_millis(600), "{:?}", begun.elapsed());
    assert!((2..=6).contains(&server.requests("/query").len()));
}

#[test]
fn a_call_has_its_own_number_of_look_ups_under_way() {
    let ((server, answers), cache) = (silent(), tempdir().unwrap());
    drop(answers);
    let mut table = HttpClient::connect(&server.url(), options(cache.path())).unwrap().open(None).unwrap();
    let wanted: Vec<_> = (0..16).map(Wanted::Index).collect();
    let call = CallOptions { max_queries: Some(5), ..CallOptions::default() };
    assert_eq!(table.lookup_with(&wanted, &call).unwrap(), table.lookup(&wanted).unwrap());
    assert_eq!(server.requests("/query").len(), 4 + 1);
}
