//! Evaluation keys: uploaded before they are needed, the same until they are old, have served enough or are suspect.

use std::{collections::HashMap, sync::Arc, time::Duration};

use hush_client::session::{KeptKeys, KeyNote, KeyRequest, Session, SessionError, kept_keys::record_name};
use hush_protocol::{
    Code,
    schema::Schema,
    wire::{self, QueryRequest},
};
use prost::Message;

use super::{
    QUERY,
    driver::{Driver, Memory},
    gateway::{gateway, relay},
    indices, look_up,
    message::{Reply, Request},
    open,
    ring_sample::RingSample,
};

const KEYS: &str = "/v1/keys/";

/// Returns a server of a table over rings that answers what `fault` does not.
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

/// Returns the paths of requests from the first upload or query on, without the names of keys.
fn order(driver: &Driver) -> Vec<&str> {
    let paths = driver.requests.iter().map(|request| request.path.as_str());
    let named = paths.map(|path| if path.contains(KEYS) { "keys" } else { path.rsplit('/').next().unwrap() });
    named.filter(|name| ["keys", "query"].contains(name)).collect()
}

/// Returns how many look-ups there were under each keys.
fn counts(driver: &Driver) -> HashMap<Vec<u8>, usize> {
    let mut counts = HashMap::new();
    for request in driver.asked(QUERY) {
        for query in QueryRequest::decode(request.body.as_slice()).unwrap().queries {
            *counts.entry(query.key_id.to_vec()).or_default() += 1;
        }
    }
    counts
}

#[test]
fn new_keys_are_uploaded_once_before_the_first_look_up() {
    let mut busy = vec![Reply::problem(503, "overloaded", "full")];
    let mut driver = server(move |request| if request.path.contains(KEYS) { busy.pop() } else { None });
    let mut session = open(&mut driver).unwrap();
    assert!(driver.asked(KEYS).is_empty(), "not before they are needed");
    find(&mut driver, &mut session, 3);
    assert_eq!(order(&driver), ["keys", "keys", "query"], "the look-up is sent once");
    assert_eq!(session.stats().queries, 1);
    let uploads = driver.asked(KEYS);
    assert_eq!(uploads.len(), 2, "a failed upload is made again");
    assert!(uploads[0].body == uploads[1].body && uploads[0].method == "PUT");
    assert_eq!(uploads[0].path, format!("{KEYS}{}", blake3::hash(&uploads[0].body).to_hex()));
    assert_eq!(session.stats().key_bytes_up, 2 * uploads[0].body.len() as u64);
    let event = format!("KeysUpload {{ bytes: {} }}", uploads[0].body.len());
    assert_eq!(driver.host.events().iter().filter(|&shown| *shown == event).count(), 1);
    find(&mut driver, &mut session, 4);
    let mut next = open(&mut driver).unwrap();
    find(&mut driver, &mut next, 5);
    assert_eq!(
        order(&driver),
        ["keys", "keys", "query", "query", "query"],
        "known keys go straight to the look-up"
    );
}

#[test]
fn keys_that_the_server_has_lost_are_uploaded_again() {
    let mut faults = vec![None, Some(lacking()), None];
    let mut driver = server(move |request| if request.path.ends_with(QUERY) { faults.pop()? } else { None });
    let mut session = open(&mut driver).unwrap();
    find(&mut driver, &mut session, 3);
    find(&mut driver, &mut session, 4);
    assert_eq!(order(&driver), ["keys", "query", "query", "keys", "query"]);
    let uploads = driver.asked(KEYS);
    assert_eq!((&uploads[0].path, &uploads[0].body), (&uploads[1].path, &uploads[1].body));
}

#[test]
fn keys_serve_so_many_look_ups_and_no_more() {
    let mut busy = vec![Reply::problem(503, "overloaded", "full")];
    let mut driver = server(move |request| if request.path.ends_with(QUERY) { busy.pop() } else { None });
    driver.options.lookups_per_key = 4;
    let mut session = open(&mut driver).unwrap();
    // One that is sent twice, and in a request of two.
    find(&mut driver, &mut session, 1);
    let found = driver.drive(session.look_up(&indices(&[2, 3]))).unwrap();
    assert_eq!(found, [2, 3].map(|index| Some(RingSample::value(1, index))));
    assert_eq!(order(&driver), ["keys", "query", "query", "query"]);
    // Requests are no longer than that; keys change between them, and all answers are read.
    let wanted: Vec<u64> = (0..9).collect();
    let found = driver.drive(session.look_up(&indices(&wanted))).unwrap();
    assert_eq!(found, wanted.iter().map(|&index| Some(RingSample::value(1, index))).collect::<Vec<_>>());
    assert_eq!(order(&driver)[4..], ["keys", "query", "keys", "query", "keys", "query"]);
    // Another session goes on with the count.
    let mut next = open(&mut driver).unwrap();
    let found = driver.drive(next.look_up(&indices(&[4, 5, 6]))).unwrap();
    assert_eq!(found, [4, 5, 6].map(|index| Some(RingSample::value(1, index))));
    find(&mut driver, &mut next, 7);
    assert_eq!(order(&driver)[10..], ["query", "keys", "query"]);
    let counts = counts(&driver);
    assert_eq!((counts.len(), counts.values().max()), (5, Some(&4)));
}

#[test]
fn keys_that_met_an_answer_which_does_not_decode_end_with_their_session() {
    let mut sample = RingSample::new(1);
    // Records that are no such fields, as a server makes them that forges answers.
    let columns = r#"{"key":[],"value":[["a","any"],["b","any"]]}"#;
    sample.descriptor.schema = Some(serde_json::from_str::<Schema>(columns).unwrap());
    sample.descriptor.seal();
    let mut driver = Driver::new(move |request| sample.reply(request));
    let mut session = open(&mut driver).unwrap();
    for index in [3, 4] {
        assert!(driver.drive(session.look_up(&indices(&[index]))).is_err());
    }
    let wanted = indices(&[5]);
    // Nobody decodes what was given.
    driver.drive(session.look_up_each(&wanted, None, drop)).unwrap();
    assert_eq!(order(&driver), ["keys", "query", "query", "query"], "never sooner");
    let suspect = KeyNote::Suspect;
    assert_eq!(driver.host.notes(), [KeyNote::Uploaded, suspect, suspect, suspect]);
    let mut next = open(&mut driver).unwrap();
    assert!(driver.drive(next.look_up(&indices(&[3]))).is_err());
    assert_eq!(order(&driver)[4..], ["keys", "query"]);
    let uploads = driver.asked(KEYS);
    assert_ne!(uploads[0].path, uploads[1].path);
}

#[test]
fn every_route_has_its_own_keys() {
    let mut sample = RingSample::new(1);
    let mut driver = Driver::new(gateway(move |request| sample.reply(request), 0));
    let [first, second] = ["http://a.example", "http://b.example"].map(relay);
    for (relay, uploads) in [(&None, 1), (&first, 2), (&second, 3), (&None, 3), (&first, 3), (&second, 3)] {
        driver.options.relay = relay.clone();
        let mut session = open(&mut driver).unwrap();
        find(&mut driver, &mut session, 3);
        assert_eq!(driver.host.notes(), vec![KeyNote::Uploaded; uploads]);
    }
}

#[test]
fn keys_that_no_table_needs_any_more_are_no_error() {
    for (status, code) in [(404, "not_found"), (400, "key_preset"), (413, "too_large")] {
        let mut sample = RingSample::new(1);
        let mut driver = Driver::new(move |request| {
            if request.path.contains(KEYS) {
                return Reply::problem(status, code, "no table here needs them");
            }
            if request.path.ends_with(QUERY) {
                let key_id =
                    QueryRequest::decode(request.body.as_slice()).unwrap().queries[0].key_id.to_vec();
                assert_eq!(key_id.len(), wire::KEY_ID_BYTES);
                return Reply::problem(410, "epoch_gone", "gone");
            }
            sample.reply(request)
        });
        let error = look_up(&mut driver, &[0]).unwrap_err();
        assert!(error.to_string().contains("gone (epoch_gone"), "what the look-up is told counts: {error}");
    }
}

#[test]
fn a_host_that_has_to_look_for_a_seed_is_asked_again() {
    let mut driver = server(|_| None);
    driver.host = Arc::new(Memory::late(2));
    let mut session = open(&mut driver).unwrap();
    find(&mut driver, &mut session, 3);
    assert_eq!(driver.waits, [Duration::ZERO; 2]);
    let needed = format!("needs {}", record_name("http://localhost:7700", "", "ONION_S"));
    assert_eq!(driver.host.events()[..2], [&needed[..]; 2]);
}

#[test]
fn keys_belong_to_one_server_and_parameter_set_and_get_old() {
    let mut driver = server(|_| None);
    let mut session = open(&mut driver).unwrap();
    find(&mut driver, &mut session, 3);
    assert_eq!(driver.host.key_names(), [record_name("http://localhost:7700", "", "ONION_S")]);
    driver.host.pass(Duration::from_secs(30 * 24 * 3600));
    find(&mut driver, &mut session, 3);
    assert_eq!(driver.asked(KEYS).len(), 1, "for 30 days");
    driver.host.pass(Duration::from_secs(1));
    find(&mut driver, &mut session, 3);
    let uploads = driver.asked(KEYS);
    assert!(uploads.len() == 2 && uploads[0].path != uploads[1].path, "new ones");
}

#[test]
fn a_server_that_never_keeps_keys_is_an_error() {
    let mut driver = server(|request| request.path.ends_with(QUERY).then(lacking));
    let error = look_up(&mut driver, &[0]).unwrap_err();
    assert!(matches!(error, SessionError::KeysNotKept), "{error}");
    assert_eq!(order(&driver), ["keys", "query", "keys", "query"]);
}

#[test]
fn only_missing_keys_are_uploaded_again() {
    for reply in [|| Reply::problem(428, "other", ""), || Reply::problem(404, "key_not_found", "")] {
        let mut driver = server(move |request| request.path.ends_with(QUERY).then(reply));
        let error = look_up(&mut driver, &[0]).unwrap_err();
        assert_eq!(error.code(), Code::Refused, "{error}");
        assert_eq!(order(&driver), ["keys", "query"]);
    }
    let mut driver =
        server(|request| request.path.contains(KEYS).then(|| Reply::problem(400, "invalid_request", "")));
    let error = look_up(&mut driver, &[0]).unwrap_err();
    assert_eq!(error.code(), Code::InvalidRequest, "{error}");
    assert!(driver.asked(QUERY).is_empty());
    // Keys that are too long for the tables that are here, or for a server that has room for no keys of this length.
    let mut driver = server(|request| match request.path.contains(KEYS) {
        true => Some(Reply::problem(413, "too_large", "")),
        false => request.path.ends_with(QUERY).then(lacking),
    });
    let error = look_up(&mut driver, &[0]).unwrap_err();
    assert_eq!(error.code(), Code::TooLarge, "{error}");
    // Each look-up uploads keys that are not known to be there, and an answer that they are lacking has them uploaded.
    assert_eq!(order(&driver), ["keys", "query", "keys", "keys", "query"]);
}

#[test]
fn after_an_upload_other_errors_are_told_as_they_are() {
    let mut replies = vec![Reply::problem(400, "invalid_request", "no"), lacking()];
    let mut driver = server(move |request| if request.path.ends_with(QUERY) { replies.pop() } else { None });
    let error = look_up(&mut driver, &[0]).unwrap_err();
    assert_eq!(error.code(), Code::InvalidRequest, "{error}");
    assert_eq!(order(&driver), ["keys", "query", "keys", "query"]);
}

#[test]
fn a_new_epoch_is_asked_with_the_keys_of_the_old_one() {
    let mut epochs = [RingSample::new(1), RingSample::new(2)];
    let mut queries = 0;
    let mut driver = Driver::new(move |request| {
        queries += usize::from(request.path.ends_with(QUERY));
        if request.path.contains(KEYS) {
            epochs[1].reply(request); // A server has keys for all of its tables.
        }
        epochs[usize::from(queries > 1)].reply(request)
    });
    let mut session = open(&mut driver).unwrap();
    for version in [1, 2, 2] {
        let found = driver.drive(session.look_up(&indices(&[5]))).unwrap();
        assert_eq!(found, [Some(RingSample::value(version, 5))]);
    }
    assert_eq!((counts(&driver).len(), driver.asked(KEYS).len()), (1, 1));
}

#[test]
fn a_count_is_durable_16_times_within_its_limit() {
    let marks = |limit: u32, lookups: u32| {
        let request = KeyRequest { name: "name".into(), held: None, lookups, limit };
        let mut keys = KeptKeys::draw(None, &request, 0);
        let mut marks = Vec::new();
        for count in (lookups..=limit).step_by(lookups as usize) {
            if keys.passes_mark(&request) {
                marks.push(count);
            }
            keys = KeptKeys::draw(Some(keys), &request, 0);
        }
        marks
    };
    assert_eq!(marks(160, 3)[..4], [12, 21, 30, 42]);
    assert_eq!(marks(160, 1), (10..=160).step_by(10).collect::<Vec<_>>());
    assert_eq!(marks(8, 1), (1..=8).collect::<Vec<_>>(), "fewer than 16: each");
}

#[test]
fn requests_that_are_alike_get_the_same_keys() {
    let request = KeyRequest { name: "name".into(), held: None, lookups: 1, limit: 9 };
    let with = |keys| KeyRequest { held: Some(keys), ..request.clone() };
    let [one, other] = [0, 0].map(|now| KeptKeys::draw(None, &request, now));
    assert!(request.is_like(&request) && with(one.clone()).is_like(&with(one.clone())));
    assert!(!request.is_like(&with(one.clone())) && !with(one.clone()).is_like(&request));
    assert!(!with(one).is_like(&with(other)));
    assert!(!request.is_like(&KeyRequest { name: "other".into(), ..request.clone() }));
    assert!(!request.is_like(&KeyRequest { lookups: 2, ..request.clone() }));
    assert!(!request.is_like(&KeyRequest { limit: 8, ..request.clone() }));
}
