//! Tables over rings: evaluation keys that follow from a kept seed, and are uploaded when the server lacks them.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use hush_client::{
    Acceptance, ClientError, Table, Wanted,
    http::{HintCache, HttpClient, HttpError, HttpOptions, HttpTable},
};
use hush_protocol::client::Hint;
use tempfile::tempdir;

use super::{
    options,
    ring_sample::RingSample,
    sample,
    sample::Sample,
    server::{Reply, Server},
};

const QUERY: &str = "/query";
const KEYS: &str = "/v1/keys/";

fn open(url: &str, cache: &Path) -> Result<HttpTable, HttpError> {
    let options = HttpOptions { max_queries: 5, ..options(cache) };
    HttpClient::connect(url, options)?.open(None)
}

/// Returns a server of a table over rings.
fn server(mut sample: RingSample) -> Server {
    Server::start(move |request| sample.reply(request))
}

#[test]
fn keys_are_uploaded_once_for_all_tables_and_processes() {
    let cache = tempdir().unwrap();
    let server = server(RingSample::new(1));
    let mut table = open(&server.url(), cache.path()).unwrap();
    assert!(server.requests(KEYS).is_empty(), "not before they are needed");
    let wanted: Vec<_> = (0..16).rev().map(Wanted::Index).collect();
    let expected: Vec<_> = (0..16).rev().map(|index| Some(RingSample::value(1, index))).collect();
    assert_eq!(table.lookup(&wanted).unwrap(), expected);
    let bytes = table.table().facts().key_bytes as u64;
    assert_eq!((table.stats().key_bytes_up, table.stats().queries), (bytes, 16));
    let mut again = open(&server.url(), cache.path()).unwrap();
    assert_eq!(again.lookup(&[Wanted::Index(3)]).unwrap(), [Some(RingSample::value(1, 3))]);
    assert_eq!(again.stats().key_bytes_up, 0);
    assert_eq!(server.requests(KEYS).len(), 1);
    // Another client has other keys.
    let mut other = open(&server.url(), tempdir().unwrap().path()).unwrap();
    assert_eq!(other.lookup(&[Wanted::Index(4)]).unwrap(), [Some(RingSample::value(1, 4))]);
    let uploads = server.requests(KEYS);
    assert!(uploads.len() == 2 && uploads[0].path != uploads[1].path);
}

#[test]
fn without_a_cache_every_open_table_has_its_own_keys() {
    let (server, cache) = (server(RingSample::new(1)), tempdir().unwrap());
    for uploads in 1..3 {
        let options = HttpOptions { cache: HintCache::Off, ..options(cache.path()) };
        let mut table = HttpClient::connect(&server.url(), options).unwrap().open(None).unwrap();
        for index in [5, 6] {
            assert_eq!(table.lookup(&[Wanted::Index(index)]).unwrap(), [Some(RingSample::value(1, index))]);
        }
        assert_eq!(server.requests(KEYS).len(), uploads);
    }
    assert_eq!(cache.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_server_that_forgets_its_keys_gets_them_again() {
    let (mut sample, cache) = (RingSample::new(1), tempdir().unwrap());
    let forgetful = Arc::new(Mutex::new(false));
    let forgets = forgetful.clone();
    let server = Server::start(move |request| {
        if std::mem::take(&mut *forgets.lock().unwrap()) {
            sample = RingSample::new(1);
        }
        sample.reply(request)
    });
    let mut table = open(&server.url(), cache.path()).unwrap();
    for index in 0..3 {
        *forgetful.lock().unwrap() = true;
        assert_eq!(table.lookup(&[Wanted::Index(index)]).unwrap(), [Some(RingSample::value(1, index))]);
    }
    let uploads = server.requests(KEYS);
    assert!(uploads.len() == 3 && uploads.iter().all(|upload| upload.body == uploads[0].body));
}

#[test]
fn a_server_that_never_keeps_keys_is_an_error() {
    let (mut sample, cache) = (RingSample::new(1), tempdir().unwrap());
    let server = Server::start(move |request| {
        if request.path.contains(QUERY) {
            Reply::problem(428, "key_not_found", "upload them")
        } else {
            sample.reply(request)
        }
    });
    let error = open(&server.url(), cache.path()).unwrap().lookup(&[Wanted::Index(0)]).unwrap_err();
    assert!(matches!(error, HttpError::KeysNotKept), "{error}");
    assert_eq!((server.requests(KEYS).len(), server.requests(QUERY).len()), (2, 2));
}

#[test]
fn a_new_epoch_may_have_another_protocol() {
    // The new table is there from the first query on.
    let cache = tempdir().unwrap();
    let (old, mut new, mut changed) = (sample(1), RingSample::new(2), false);
    let server = Server::start(move |request| {
        changed |= request.path.ends_with(QUERY);
        if changed { new.reply(request) } else { old.reply(request) }
    });
    let mut table = open(&server.url(), cache.path()).unwrap();
    assert_eq!(table.lookup(&[Wanted::Index(9)]).unwrap(), [Some(RingSample::value(2, 9))]);
    assert_eq!(table.table().descriptor(), &RingSample::new(2).descriptor);
    assert_eq!(server.requests(KEYS).len(), 1);

    let (mut old, new, mut changed) = (RingSample::new(1), sample(2), false);
    let server = Server::start(move |request| {
        changed |= request.path.ends_with(QUERY);
        if changed { new.reply(request) } else { old.reply(request) }
    });
    let mut table = open(&server.url(), cache.path()).unwrap();
    assert_eq!(table.lookup(&[Wanted::Index(9)]).unwrap(), [Some(Sample::value(2, 9))]);
    assert_eq!(server.requests(KEYS).len(), 1, "for the table that was there before the look-up");
}

#[test]
fn a_table_without_keys_or_with_those_of_another_client_reads_nothing() {
    let descriptor = RingSample::new(1).descriptor;
    let mut table = Table::new(descriptor.clone(), None, &Acceptance::default()).unwrap();
    assert_eq!(table.key_preset(), Some("ONION_S"));
    assert!(table.key_upload().is_none());
    assert!(matches!(table.query(&Wanted::Index(0)), Err(ClientError::NoKeys)));
    table.use_keys(&[7; 32]).unwrap();
    let (id, body) = table.key_upload().unwrap();
    assert_eq!((id, body.len()), (*blake3::hash(&body).as_bytes(), table.facts().key_bytes));
    let (query, pending) = table.query(&Wanted::Index(0)).unwrap();
    assert_eq!((&query.key_id[..], query.packed.len()), (&id[..], table.facts().query.packed));
    let answer = vec![0; table.facts().answer_bytes];
    let keyless = Table::new(descriptor.clone(), None, &Acceptance::default()).unwrap();
    assert!(matches!(keyless.decode(&pending, &answer), Err(ClientError::NoKeys)));
    assert!(matches!(table.decode(&pending, &answer[1..]), Err(ClientError::Protocol(_))));
    assert!(table.decode(&pending, &answer).is_ok(), "an answer of noise is one like any other");
    // The same seed gives the same keys, another other ones.
    let mut same = Table::new(descriptor, None, &Acceptance::default()).unwrap();
    same.use_keys(&[7; 32]).unwrap();
    assert!(same.key_upload() == Some((id, body)));
    same.use_keys(&[8; 32]).unwrap();
    assert_ne!(same.key_upload().unwrap().0, id);

    let hint: Hint = Arc::new(sample(1).hint);
    let mut lwe = Table::new(sample(1).descriptor, [hint], &Acceptance::default()).unwrap();
    lwe.use_keys(&[7; 32]).unwrap();
    assert!(lwe.key_preset().is_none() && lwe.key_upload().is_none());
    let (_, other) = lwe.query(&Wanted::Index(0)).unwrap();
    assert!(matches!(
        table.decode(&other, &answer),
        Err(ClientError::Protocol(hush_protocol::ProtocolError::OtherTable))
    ));
}
