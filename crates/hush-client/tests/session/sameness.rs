//! Tests that messages depend on the table and the number of look-ups alone.

use std::{collections::HashSet, sync::Arc, time::Duration};

use hush_client::{
    Found, Wanted,
    session::{Action, Head, Host, SessionError},
};
use hush_he::params::DEFAULT_LWE;
use hush_math::csprng::Csprng;
use hush_protocol::{
    ProtocolError,
    descriptor::{Descriptor, KeyLookup, Lookup},
    keyword::FilterKind,
    lwe_page::LwePage,
    lwe_table::LweTable,
    simple::Simple,
    slot::SlotFormat,
    table::TableShape,
    wire::{self, Answer, QueryRequest, QueryResponse},
};
use prost::Message;

use super::{
    QUERY,
    driver::{Driver, Memory},
    indices,
    message::{Reply, Request},
    open,
    ring_sample::RingSample,
    sample,
    sample::Sample,
};

/// Method, path, headers and length of every request.
type Seen = Vec<(String, String, Vec<(String, String)>, usize)>;

/// Returns what a server sees when `wanted` are looked up, and the result.
fn seen(mut driver: Driver, wanted: &[Wanted]) -> (Seen, Result<Vec<Found>, SessionError>) {
    driver.options.max_queries = 2;
    let mut session = open(&mut driver).unwrap();
    let outcome = driver.drive(session.look_up(wanted));
    let mut requests = Seen::new();
    for request in driver.requests {
        // The name of keys is a hash of them, and every host has its own.
        let path = if request.path.starts_with("/v1/keys/") { "/v1/keys/".into() } else { request.path };
        requests.push((request.method, path, request.headers, request.body.len()));
    }
    (requests, outcome)
}

/// Returns a table by key whose answers are noise: no key is found in it, but by chance.
fn noise_by_key() -> Driver {
    noise_with(None)
}

/// Returns a driver whose answers are noise, with the columns that the server names.
fn noise_with(schema: Option<&str>) -> Driver {
    const VALUE_BYTES: usize = 5;
    let slot = SlotFormat::for_values(4, VALUE_BYTES, VALUE_BYTES);
    let shape = TableShape { columns: 64, blocks: 3, slot_bytes: slot.slot_bytes() };
    let params = LweTable::new(Simple::SPEC, DEFAULT_LWE, shape).unwrap();
    let widths = params.widths();
    let mut descriptor = Descriptor {
        lookup: Lookup::Key(KeyLookup {
            filter: FilterKind::Fuse3,
            seed: [1; 32],
            thresholds: vec![128; 3],
            block_seeds: vec![0; 3],
        }),
        columns: shape.columns,
        blocks: shape.blocks,
        word_bits: Some([widths.query, widths.hint, widths.answer]),
        form: Default::default(),
        slot,
        schema: schema.map(|json| serde_json::from_str(json).unwrap()),
        ..sample(1).descriptor
    };
    let hint = Arc::new(vec![0; params.hint_bytes() as usize]);
    let blob = descriptor.hint.as_mut().unwrap();
    (blob.blake3, blob.bytes) = (blake3::hash(&hint).into(), hint.len() as u64);
    descriptor.seal();
    let list = sample(1);
    Driver::new(move |request| match request.path.as_str() {
        "/v1/tables/sample" => Reply::new(200, descriptor.to_json()),
        path if path.starts_with("/v1/blobs/") => Reply::new(200, hint.as_slice()),
        path if path.ends_with(QUERY) => noise(&descriptor, request),
        _ => list.reply(request),
    })
}

/// Answers of the right lengths that hold nothing.
fn noise(descriptor: &Descriptor, request: &Request) -> Reply {
    let queries = QueryRequest::decode(request.body.as_slice()).unwrap().queries.len();
    let params = descriptor.params().unwrap();
    let (bytes, shape) = (params.facts().answer_bytes, params.facts().shape);
    // Answers of other protocols have whole bytes.
    let words = if descriptor.hint.is_some() { shape.blocks * shape.slot_bytes } else { 0 };
    let padding = (8 - words * descriptor.word_bits.map_or(0, |bits| bits[2] as usize) % 8) % 8;
    let mut answers = Vec::with_capacity(queries);
    for _ in 0..queries {
        let mut words = vec![0; bytes];
        Csprng::from_os().fill_bytes(&mut words);
        // The bits behind the last word are zero.
        *words.last_mut().unwrap() &= u8::MAX >> padding;
        answers.push(Answer { words: words.into() });
    }
    let epoch = descriptor.epoch.to_vec().into();
    Reply::new(200, QueryResponse { version: wire::VERSION, epoch, answers }.encode_to_vec())
}

#[test]
fn requests_do_not_tell_keys_apart() {
    let keys = |keys: [&[u8]; 5]| keys.map(|key| Wanted::Key(key.to_vec()));
    let long = [7; 4096];
    let (expected, found) = seen(noise_by_key(), &keys([b"a", b"b", b"c", b"d", b"e"]));
    assert_eq!(found.unwrap(), vec![None; 5]);
    assert_eq!(expected.iter().filter(|(_, path, ..)| path.ends_with(QUERY)).count(), 3);
    for other in [keys([b"same"; 5]), keys([b"", &long, b"\xff\x00", &long[..100], b"x"])] {
        assert_eq!(seen(noise_by_key(), &other).0, expected);
    }
    // But how many there are.
    assert_ne!(seen(noise_by_key(), &keys([b"a"; 5])[..4]).0, expected);
}

#[test]
fn columns_that_a_server_names_do_not_tell_keys_apart() {
    let wanted = [b"a", b"7", b"c"].map(|key| Wanted::Key(key.to_vec()));
    let (expected, _) = seen(noise_by_key(), &wanted);
    for (columns, said) in [
        (r#"[["id","uint8"]]"#, "the key column id is of type uint8"),
        (r#"[["hash","fixed_size_binary[5]"]]"#, "5 bytes"),
        (
            r#"[["a","string"],["b","int8"]]"#,
            "a key of 1 column was given, and the table's key is a (string), b (int8)",
        ),
    ] {
        let columns = format!(r#"{{"key":{columns},"value":[["v","binary"]]}}"#);
        let (requests, found) = seen(noise_with(Some(&columns)), &wanted);
        assert_eq!(requests, expected);
        let message = found.unwrap_err().to_string();
        assert!(message.contains(said) && !message.contains("'a'"), "{message}");
    }
    let columns = r#"{"key":[["id","uint8"]],"value":[["v","binary"]]}"#;
    let numbers = [Wanted::Key(b"7".to_vec()), Wanted::Columns(vec![b"300".to_vec()])];
    assert_eq!(seen(noise_with(Some(columns)), &numbers).1.unwrap(), [None, None]);
}

#[test]
fn answers_are_read_after_the_last_one_has_come() {
    let tick = Duration::from_secs(1);
    let mut driver = noise_by_key();
    driver.host = Arc::new(Memory::ticking(tick));
    driver.options.max_queries = 2;
    let mut session = open(&mut driver).unwrap();
    let wanted = [b"a", b"b", b"c", b"d", b"e"].map(|key| Wanted::Key(key.to_vec()));
    assert_eq!(driver.drive(session.look_up(&wanted)).unwrap(), vec![None; 5]);
    assert_eq!(driver.asked(QUERY).len(), 3);
    // Once, and not between the requests.
    assert_eq!(session.stats().seconds.decode, tick.as_secs_f64());
}

#[test]
fn a_connection_can_go_before_answers_are_read() {
    let tick = Duration::from_secs(1);
    let server = sample(1);
    let mut driver = Driver::new(move |request| server.reply(request));
    driver.host = Arc::new(Memory::ticking(tick));
    driver.options.max_queries = 1;
    let mut session = open(&mut driver).unwrap();
    let (wanted, host) = (indices(&[3, 4]), driver.host.clone());
    let mut task = session.look_up(&wanted);
    for is_last in [false, true] {
        let Action::Send(request) = task.advance() else { panic!("two requests") };
        assert_eq!(request.is_last, is_last);
        let headers = request.headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let (method, path) = (request.method.name().into(), request.path);
        let reply = sample(1).reply(&Request { method, path, headers, body: request.body });
        assert!(task.begin(Head { status: reply.status, ..Head::default() }) && task.body(&reply.body));
        let before = host.now();
        task.end();
        assert_eq!(host.now() - before, tick, "what is left to do waits for the driver");
    }
    let before = host.now();
    let Action::Done(found) = task.advance() else { panic!("all answers are there") };
    assert_eq!(found.unwrap(), [3, 4].map(|index| Some(Sample::value(1, index))));
    assert!(host.now() - before > tick);
}

#[test]
fn requests_do_not_tell_what_could_not_be_read() {
    let serve = || {
        let sample = sample(1);
        Driver::new(move |request| sample.reply(request))
    };
    let (expected, found) = seen(serve(), &indices(&[0, 1, 2, 3, 4]));
    assert!(found.is_ok());
    for failing in [[99, 1, 2, 3, 4], [0, 1, u64::MAX, 16, 4], [16; 5]] {
        let (requests, outcome) = seen(serve(), &indices(&failing));
        assert_eq!(requests, expected);
        let index = *failing.iter().find(|&&index| index >= 16).unwrap();
        let first = ProtocolError::IndexOutOfRange { index, last: 15 };
        assert_eq!(outcome.unwrap_err().to_string(), first.to_string(), "the first error is reported");
    }
    // Answers that hold nothing.
    let sample = sample(1);
    let blank = Driver::new(move |request| {
        if request.path.ends_with(QUERY) { noise(&sample.descriptor, request) } else { sample.reply(request) }
    });
    assert_eq!(seen(blank, &indices(&[0, 1, 2, 3, 4])).0, expected);
}

/// Returns a server of a table over rings.
fn rings() -> Driver {
    let mut sample = RingSample::new(1);
    Driver::new(move |request| sample.reply(request))
}

#[test]
fn requests_over_rings_differ_in_ciphertexts_alone() {
    let (expected, found) = seen(rings(), &indices(&[0, 1, 2]));
    assert!(found.is_ok());
    for (other, ok) in [([9, 9, 9], true), ([16, 0, 99], false)] {
        let (requests, outcome) = seen(rings(), &indices(&other));
        assert_eq!(requests, expected);
        assert_eq!(outcome.is_ok(), ok);
    }
}

/// Returns the ciphertexts of all queries that were sent, in order.
fn ciphertexts(driver: &Driver) -> Vec<Vec<u8>> {
    let queries = driver
        .asked(QUERY)
        .into_iter()
        .flat_map(|request| QueryRequest::decode(request.body.as_slice()).unwrap().queries);
    queries.map(|query| [&query.first[..], &query.second, &query.packed].concat()).collect()
}

/// No 8 bytes in a row stand in two of them, wherever.
fn assert_unlike(ciphertexts: &[Vec<u8>]) {
    let mut all = HashSet::<&[u8]>::new();
    for (number, ciphertext) in ciphertexts.iter().enumerate() {
        let own: HashSet<&[u8]> = ciphertext.windows(8).collect();
        let before = all.len();
        all.extend(&own);
        assert_eq!(all.len(), before + own.len(), "query {number} repeats bytes of an earlier one");
    }
}

#[test]
fn no_two_attempts_share_ciphertexts() {
    // Busy, lost on the way, of an old epoch, and answered: each is encrypted anew.
    let (old, new, mut count) = (sample(1), sample(2), 0);
    let mut driver = Driver::new(move |request| {
        let current = if count < 2 { &old } else { &new };
        if !request.path.ends_with(QUERY) {
            return current.reply(request);
        }
        count += 1;
        match count {
            1 => Reply::problem(503, "overloaded", "full"),
            2 => Reply { cut: Some(3), ..Reply::new(200, [0; 9]) },
            _ => new.reply(request),
        }
    });
    let mut session = open(&mut driver).unwrap();
    let found = driver.drive(session.look_up(&indices(&[7, 7]))).unwrap();
    assert_eq!(found, [Some(Sample::value(2, 7)), Some(Sample::value(2, 7))]);
    let sent = ciphertexts(&driver);
    assert_eq!(sent.len(), 8, "two look-ups, four attempts");
    assert_unlike(&sent);

    let mut driver = rings();
    let mut session = open(&mut driver).unwrap();
    driver.drive(session.look_up(&indices(&[7]))).unwrap();
    driver.drive(session.look_up(&indices(&[7]))).unwrap();
    let sent = ciphertexts(&driver);
    assert_eq!(sent.len(), 2, "the keys were uploaded before");
    assert_unlike(&sent);
}
