//! Tables that change while they are looked up.

use std::time::Duration;

use hush_client::{Acceptance, ClientError, Trust, session::SessionError};
use hush_he::params::{INSECURE_PLAIN, SIMPLEPIR_N1024_STD6_4_SEC121};
use hush_protocol::signature::SigningKey;

use super::{
    QUERY,
    driver::Driver,
    indices, look_up,
    message::{Reply, Request},
    open, sample,
    sample::Sample,
};

/// Returns a server of `old` until query number `first`, counted from 1; of `new` then.
fn changing(old: Sample, new: Sample, first: usize) -> Driver {
    let mut queries = 0;
    Driver::new(move |request: &Request| {
        queries += usize::from(request.path.ends_with(QUERY));
        if queries >= first { new.reply(request) } else { old.reply(request) }
    })
}

#[test]
fn a_descriptor_that_comes_with_the_list_is_not_asked_for() {
    let listed = |json: String| {
        let sample = sample(1);
        Driver::new(move |request| match request.path.as_str() {
            "/v1/tables" => Reply::new(
                200,
                format!(r#"{{"tables":[{{"name":"sample","state":"resident"}}],"descriptor":{json}}}"#),
            ),
            _ => sample.reply(request),
        })
    };
    let json = String::from_utf8(sample(1).descriptor.to_json()).unwrap();
    let mut driver = listed(json.clone());
    assert_eq!(look_up(&mut driver, &[7]).unwrap(), [Some(Sample::value(1, 7))]);
    assert_eq!(driver.asked("/v1/tables/sample").len(), driver.asked(QUERY).len());
    // It is asked for if the list is old, or has another one.
    let task = driver.connect();
    let server = driver.drive(task).unwrap();
    driver.host.pass(Duration::from_secs(10));
    driver.drive(server.open(None)).unwrap();
    assert_eq!(driver.asked("/v1/tables/sample").len() - driver.asked(QUERY).len(), 1);
    for other in ["null", "{}", r#""text""#] {
        let mut driver = listed(other.into());
        assert_eq!(look_up(&mut driver, &[7]).unwrap(), [Some(Sample::value(1, 7))], "{other}");
    }
}

#[test]
fn everything_is_looked_up_anew_once() {
    let mut driver = changing(sample(1), sample(2), 2);
    driver.options.max_queries = 2;
    let mut session = open(&mut driver).unwrap();
    let found = driver.drive(session.look_up(&indices(&[1, 2, 3]))).unwrap();
    assert_eq!(found, [1, 2, 3].map(|index| Some(Sample::value(2, index))), "all of one epoch");
    assert_eq!(session.table().descriptor(), &sample(2).descriptor);
    assert_eq!(driver.asked(QUERY).len(), 4, "one of the old epoch, one refused, two of the new one");
    assert_eq!(driver.asked("/v1/blobs/").len(), 2);
    assert_eq!(driver.asked("/v1/tables/sample").len() - 4, 1, "the refusal has the descriptor");
}

#[test]
fn answers_that_were_given_are_not_looked_up_anew() {
    let mut driver = changing(sample(1), sample(2), 2);
    let mut session = open(&mut driver).unwrap();
    let (wanted, mut found) = (indices(&[1, 2, 3]), Vec::new());
    let task = session.look_up_each(&wanted, Some(2), |answers| {
        found.extend(answers.found().map(|found| found.unwrap().clone()));
    });
    driver.drive(task).unwrap();
    assert_eq!(found, [(1, 1), (1, 2), (2, 3)].map(|(version, index)| Some(Sample::value(version, index))));
    assert_eq!(driver.asked(QUERY).len(), 3, "one of the old epoch, one refused, one of the new one");
}

#[test]
fn a_table_that_changes_again_is_an_error() {
    let (samples, mut queries) = ([sample(1), sample(2)], 0);
    let mut driver = Driver::new(move |request| {
        queries += usize::from(request.path.ends_with(QUERY));
        let hint = samples.iter().find(|sample| request.path.ends_with(&sample.hint_name()));
        // Queries always meet the other one.
        hint.unwrap_or(&samples[queries % 2]).reply(request)
    });
    let error = look_up(&mut driver, &[0]).unwrap_err();
    assert!(matches!(error, SessionError::EpochGone { .. }), "{error}");
    assert_eq!(driver.asked(QUERY).len(), 2);
}

#[test]
fn a_new_epoch_is_accepted_like_the_first() {
    let weak = |version| Sample::new(version, SIMPLEPIR_N1024_STD6_4_SEC121);
    let other = Acceptance::of_weak("ONIONPIRV2_N2048_2X30_SEC113");
    for acceptance in [Acceptance::default(), other] {
        let mut driver = changing(sample(1), weak(2), 1);
        driver.options.acceptance = acceptance;
        let mut session = open(&mut driver).unwrap();
        let error = driver.drive(session.look_up(&indices(&[9]))).unwrap_err();
        assert!(matches!(error, SessionError::Client(ClientError::Weak { bits: 121.5, .. })), "{error}");
        assert_eq!(driver.asked(QUERY).len(), 1, "nothing is asked of the new table");
        assert_eq!(driver.asked("/v1/blobs/").len(), 1, "nor is its hint fetched");
        assert_eq!(session.table().descriptor(), &sample(1).descriptor);
    }
    // What was accepted as weak may stay so.
    let mut driver = changing(weak(1), weak(2), 1);
    driver.options.acceptance = Acceptance::of_weak(SIMPLEPIR_N1024_STD6_4_SEC121.name());
    assert_eq!(look_up(&mut driver, &[9]).unwrap(), [Some(Sample::value(2, 9))]);
}

#[test]
fn a_pinned_epoch_stays() {
    let epoch = Some(sample(1).descriptor.epoch);
    let mut driver = changing(sample(1), sample(2), 1);
    driver.options.acceptance = Acceptance { epoch, ..Acceptance::default() };
    let error = look_up(&mut driver, &[9]).unwrap_err();
    assert!(matches!(error, SessionError::Client(ClientError::OtherEpoch { .. })), "{error}");
    assert_eq!((driver.asked(QUERY).len(), driver.asked("/v1/blobs/").len()), (1, 1));

    let mut driver = changing(sample(2), sample(1), 1);
    driver.options.acceptance = Acceptance { epoch, ..Acceptance::default() };
    assert!(open(&mut driver).is_err());
    assert!(driver.asked("/v1/blobs/").is_empty(), "no hint is fetched that may be for this client alone");
}

#[test]
fn a_server_cannot_make_up_what_the_publisher_signs() {
    let (publisher, server) = (SigningKey::new(&[1; 32]), SigningKey::new(&[2; 32]));
    let signed = |version: u8, key: &SigningKey| signed(version, key, "sample", u64::from(version));
    let trusting = |first, second| trusting(first, second, &publisher.public().to_string());
    let mut driver = trusting(signed(1, &publisher), signed(2, &publisher));
    assert_eq!(look_up(&mut driver, &[9]).unwrap(), [Some(Sample::value(2, 9))]);

    let mut driver = trusting(signed(1, &publisher), sample(2));
    let error = look_up(&mut driver, &[9]).unwrap_err();
    assert!(matches!(error, SessionError::Client(ClientError::NotSigned { .. })), "{error}");
    let mut driver = trusting(signed(1, &publisher), signed(2, &server));
    let error = look_up(&mut driver, &[9]).unwrap_err();
    assert!(matches!(error, SessionError::Client(ClientError::OtherPublisher { .. })), "{error}");
    assert_eq!(driver.asked("/v1/blobs/").len(), 1);

    // The publisher's signature of another epoch.
    let mut replayed = sample(2);
    replayed.descriptor.signature =
        Some(publisher.sign(&sample(1).descriptor.epoch, &"sample".parse().unwrap(), 2, 2));
    let error = look_up(&mut trusting(signed(1, &publisher), replayed), &[9]).unwrap_err();
    assert!(error.to_string().contains("has not signed"), "{error}");
}

/// Returns a sample that is signed under `name`.
fn signed(version: u8, key: &SigningKey, name: &str, serial: u64) -> Sample {
    let mut sample = sample(version);
    sample.descriptor.signature =
        Some(key.sign(&sample.descriptor.epoch, &name.parse().unwrap(), serial, serial));
    sample
}

/// Returns a client that trusts, of a server that changes after it was opened.
fn trusting(first: Sample, second: Sample, trust: &str) -> Driver {
    let mut driver = changing(first, second, 1);
    driver.options.acceptance.trust = Some(trust.parse().unwrap());
    driver
}

#[test]
fn a_table_of_the_publisher_does_not_pass_for_another() {
    let key = SigningKey::new(&[1; 32]);
    let public = key.public().to_string();
    let (right, test) =
        (|version| signed(version, &key, "sample", 7), |version| signed(version, &key, "test", 7));
    let error = open(&mut trusting(test(1), test(1), &public)).err().unwrap();
    assert!(matches!(error, SessionError::Client(ClientError::OtherName { .. })), "{error}");
    // Nor in the place of an open one.
    let mut driver = trusting(right(1), test(2), &public);
    let error = look_up(&mut driver, &[9]).unwrap_err();
    assert!(matches!(error, SessionError::Client(ClientError::OtherName { .. })), "{error}");
    assert_eq!(driver.asked("/v1/blobs/").len(), 1, "nothing is fetched of the other table");
    // The name can be given with the key, and then the server's name for the table does not matter.
    for (name, is_right) in [("sample", false), ("test", true)] {
        let mut driver = trusting(test(1), test(1), &format!("{public}={name}"));
        let server = driver.connect();
        let server = driver.drive(server).unwrap();
        for asked in [None, Some("sample")] {
            assert_eq!(driver.drive(server.open(asked)).is_ok(), is_right, "{name}, {asked:?}");
        }
    }
    // If it is given nowhere, the server would choose.
    let mut driver = trusting(right(1), right(1), &public);
    let server = driver.connect();
    let server = driver.drive(server).unwrap();
    let error = driver.drive(server.open(None)).err().unwrap();
    assert!(matches!(error, SessionError::Client(ClientError::NameNotGiven)), "{error}");
    assert!(driver.drive(server.open(Some("sample"))).is_ok());
    for bad in ["", "=sample", &format!("{public}="), &format!("{public}=a/b"), &format!("{public}=.x")] {
        assert!(bad.parse::<Trust>().is_err(), "{bad}");
    }
}

#[test]
fn an_older_table_than_was_seen_is_refused() {
    let key = SigningKey::new(&[1; 32]);
    let public = key.public().to_string();
    let of = |version, serial| signed(version, &key, "sample", serial);
    let mut driver = trusting(of(1, 5), of(2, 6), &public);
    assert_eq!(look_up(&mut driver, &[9]).unwrap(), [Some(Sample::value(2, 9))]);
    let mut driver = trusting(of(2, 6), of(1, 5), &public);
    let error = look_up(&mut driver, &[9]).unwrap_err();
    let refused = "serial 5, and this client has seen 6";
    assert!(error.to_string().contains(refused), "{error}");
    assert_eq!(driver.asked("/v1/blobs/").len(), 1, "nothing is fetched of the old table");
    // Whoever keeps what this one kept knows it too; others do not, and those who trust nobody do not care.
    let host = driver.host.clone();
    let with = |mut driver: Driver| {
        driver.host = host.clone();
        driver
    };
    assert!(
        open(&mut with(trusting(of(1, 5), of(1, 5), &public))).err().unwrap().to_string().contains(refused)
    );
    assert!(open(&mut with(trusting(of(2, 6), of(2, 6), &public))).is_ok());
    assert!(open(&mut trusting(of(1, 5), of(1, 5), &public)).is_ok());
    assert!(open(&mut with(changing(of(1, 5), of(1, 5), 1))).is_ok());
    // Serials are those of a publisher and a name.
    let other = SigningKey::new(&[2; 32]);
    let theirs = signed(1, &other, "sample", 1);
    assert!(open(&mut with(trusting(theirs.clone(), theirs, &other.public().to_string()))).is_ok());
    let named = || signed(1, &key, "other", 1);
    assert!(open(&mut with(trusting(named(), named(), &format!("{public}=other")))).is_ok());
}

#[test]
fn sets_without_security_are_for_tests() {
    let insecure = || Sample::new(1, INSECURE_PLAIN);
    let mut driver = changing(insecure(), insecure(), 1);
    assert!(open(&mut driver).is_err());
    driver.options.acceptance = Acceptance::of_weak(INSECURE_PLAIN.name());
    assert_eq!(open(&mut driver).is_ok(), cfg!(feature = "insecure-presets"));
}

#[test]
fn a_refusal_without_a_good_descriptor_changes_nothing() {
    let mut altered = sample(2).descriptor;
    altered.records -= 1;
    let altered = String::from_utf8(altered.to_json()).unwrap();
    let replies = [
        Reply::problem(410, "epoch_gone", "gone"),
        Reply::new(410, r#"{"code":"epoch_gone","detail":"","descriptor":{"version":1}}"#),
        Reply::new(410, format!(r#"{{"code":"epoch_gone","detail":"","descriptor":{altered}}}"#)),
    ];
    for (reply, text) in
        replies.into_iter().zip(["gone (epoch_gone, status 410)", "invalid table", "not the hash"])
    {
        let (sample, mut reply) = (sample(1), Some(reply));
        let mut driver = Driver::new(move |request| {
            let fault = if request.path.ends_with(QUERY) { reply.take() } else { None };
            fault.unwrap_or_else(|| sample.reply(request))
        });
        let mut session = open(&mut driver).unwrap();
        let error = driver.drive(session.look_up(&indices(&[0]))).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(driver.drive(session.look_up(&indices(&[0]))).unwrap(), [Some(Sample::value(1, 0))]);
    }
}
