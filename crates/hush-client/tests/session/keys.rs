//! Evaluation keys: uploaded when the server lacks them, the same until they are old.

use std::{sync::Arc, time::Duration};

use hush_client::session::{Session, SessionError};

use super::{
    QUERY,
    driver::{Driver, Memory},
    indices, look_up,
    message::{Reply, Request},
    open,
    ring_sample::RingSample,
};

const KEYS: &str = "/v1/keys/";

/// A server of a table over rings that answers what `fault` does not.
fn server(mut fault: impl FnMut(&Request) -> Option<Reply> + 'static) -> Driver {
    let mut sample = RingSample::new(1);
    Driver::new(move |request| fault(request).unwrap_or_else(|| sample.reply(request)))
}

fn lacking() -> Reply {
    Reply::problem(428, "key_not_found", "upload them")
}

fn find(driver: &mut Driver, session: &mut Session, index: u64) {
    let found = driver.drive(session.look_up(&indices(&[index])));
    assert_eq!(found.unwrap(), [Some(RingSample::value(1, index))]);
}

#[test]
fn keys_are_uploaded_once_when_they_are_missing() {
    let mut busy = vec![Reply::problem(503, "overloaded", "full")];
    let mut driver = server(move |request| if request.path.contains(KEYS) { busy.pop() } else { None });
    let mut session = open(&mut driver).unwrap();
    assert!(driver.asked(KEYS).is_empty(), "not before they are needed");
    find(&mut driver, &mut session, 3);
    let uploads = driver.asked(KEYS);
    assert_eq!(uploads.len(), 2, "a failed upload is made again");
    assert!(uploads[0].body == uploads[1].body && uploads[0].method == "PUT");
    assert_eq!(uploads[0].path, format!("{KEYS}{}", blake3::hash(&uploads[0].body).to_hex()));
    assert_eq!(session.stats().key_bytes_up, 2 * uploads[0].body.len() as u64);
    assert_eq!(driver.asked(QUERY).len(), 2, "asked again once");
    let event = format!("KeysUpload {{ bytes: {} }}", uploads[0].body.len());
    assert_eq!(driver.host.events().iter().filter(|&shown| *shown == event).count(), 1);
    find(&mut driver, &mut session, 4);
    assert_eq!(driver.asked(KEYS).len(), 2);
}

#[test]
fn a_host_that_has_to_look_for_a_seed_is_asked_again() {
    let mut driver = server(|_| None);
    driver.host = Arc::new(Memory::late(2));
    let mut session = open(&mut driver).unwrap();
    assert_eq!(driver.waits, [Duration::ZERO; 2]);
    assert_eq!(driver.host.events(), ["needs ONION_S at http://localhost:7700"; 2]);
    find(&mut driver, &mut session, 3);
}

#[test]
fn keys_belong_to_one_server_and_parameter_set_and_get_old() {
    let mut driver = server(|_| None);
    let mut session = open(&mut driver).unwrap();
    assert_eq!(driver.host.seeds(), [("http://localhost:7700".to_owned(), "ONION_S".to_owned())]);
    find(&mut driver, &mut session, 3);
    driver.host.forget_seeds();
    driver.host.pass(Duration::from_secs(23 * 3600));
    find(&mut driver, &mut session, 3);
    assert_eq!(driver.asked(KEYS).len(), 1, "looked for once a day");
    driver.host.pass(Duration::from_secs(2 * 3600));
    find(&mut driver, &mut session, 3);
    let uploads = driver.asked(KEYS);
    assert!(uploads.len() == 2 && uploads[0].path != uploads[1].path, "new ones");
}

#[test]
fn a_server_that_never_keeps_keys_is_an_error() {
    let mut driver = server(|request| request.path.ends_with(QUERY).then(lacking));
    let error = look_up(&mut driver, &[0]).unwrap_err();
    assert!(matches!(error, SessionError::KeysNotKept), "{error}");
    assert_eq!((driver.asked(KEYS).len(), driver.asked(QUERY).len()), (1, 2));
}

#[test]
fn only_missing_keys_are_uploaded() {
    for reply in [|| Reply::problem(428, "other", ""), || Reply::problem(404, "key_not_found", "")] {
        let mut driver = server(move |request| request.path.ends_with(QUERY).then(reply));
        let error = look_up(&mut driver, &[0]).unwrap_err();
        assert!(matches!(error, SessionError::Refused { .. }), "{error}");
        assert!(driver.asked(KEYS).is_empty());
    }
    let mut driver =
        server(|request| request.path.contains(KEYS).then(|| Reply::problem(413, "too_large", "")));
    let error = look_up(&mut driver, &[0]).unwrap_err();
    assert!(matches!(error, SessionError::Refused { status: 413, .. }), "{error}");
    assert_eq!(driver.asked(QUERY).len(), 1);
}

#[test]
fn after_an_upload_other_errors_are_told_as_they_are() {
    let mut replies = vec![Reply::problem(400, "invalid_request", "no"), lacking()];
    let mut driver = server(move |request| if request.path.ends_with(QUERY) { replies.pop() } else { None });
    let error = look_up(&mut driver, &[0]).unwrap_err();
    assert!(matches!(error, SessionError::Refused { status: 400, .. }), "{error}");
    assert_eq!((driver.asked(KEYS).len(), driver.asked(QUERY).len()), (1, 2));
}
