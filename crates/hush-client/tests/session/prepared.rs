//! Queries that are prepared before their look-ups.

use std::{collections::BTreeSet, sync::Arc};

use hush_client::{Acceptance, ClientError, Table, session::SessionError};
use hush_protocol::{Code, ProtocolError};

use super::{
    QUERY,
    driver::Driver,
    indices,
    message::{Reply, Request},
    open,
    ring_sample::RingSample,
    sample,
    sample::Sample,
};

#[test]
fn each_prepared_query_serves_one_look_up() {
    let served = sample(1);
    let mut driver = Driver::new(move |request: &Request| served.reply(request));
    let mut session = open(&mut driver).unwrap();
    driver.drive(session.look_up(&indices(&[4]))).unwrap();
    assert_eq!(session.prepare(3).unwrap(), 3);
    assert_eq!(session.prepare(2).unwrap(), 3, "what is ready stays ready");
    assert_eq!(driver.asked(QUERY).len(), 1, "nothing is sent");
    for (wanted, left) in [(&[5, 6][..], 1), (&[7, 5, 8], 0), (&[4], 0)] {
        let found = driver.drive(session.look_up(&indices(wanted))).unwrap();
        let expected: Vec<_> = wanted.iter().map(|&index| Some(Sample::value(1, index))).collect();
        assert_eq!((found, session.stats().prepared), (expected, left));
    }
    let stats = session.stats();
    let sent: usize = driver.asked(QUERY).iter().map(|asked| asked.body.len()).sum();
    assert_eq!((stats.bytes_up, stats.query_bytes), (sent as u64, sent as u64 / stats.queries));
    assert_eq!(stats.answer_bytes, stats.bytes_down / stats.answers);
    let lengths: Vec<_> = driver.asked(QUERY).into_iter().map(|asked| asked.body.len()).collect();
    let [fresh, _, _, last] = lengths[..] else { panic!("four requests") };
    assert_eq!(fresh, last, "a length does not depend on what is prepared");
}

#[test]
fn a_request_that_is_sent_again_has_another_query() {
    let (served, mut failures) = (sample(1), 2);
    let mut driver =
        Driver::new(move |request: &Request| match request.path.ends_with(QUERY) && failures > 0 {
            true => {
                failures -= 1;
                Reply::problem(503, "overloaded", "too many")
            }
            false => served.reply(request),
        });
    let mut session = open(&mut driver).unwrap();
    session.prepare(2).unwrap();
    let found = driver.drive(session.look_up(&indices(&[9]))).unwrap();
    assert_eq!((found, session.stats().prepared), (vec![Some(Sample::value(1, 9))], 0));
    let bodies: BTreeSet<_> = driver.asked(QUERY).into_iter().map(|asked| asked.body.clone()).collect();
    assert_eq!(bodies.len(), 3);
}

#[test]
fn queries_for_a_table_that_was_replaced_are_dropped() {
    let (old, new, mut queries) = (sample(1), sample(2), 0);
    let mut driver = Driver::new(move |request: &Request| {
        queries += usize::from(request.path.ends_with(QUERY));
        if queries >= 2 { new.reply(request) } else { old.reply(request) }
    });
    let mut session = open(&mut driver).unwrap();
    session.prepare(5).unwrap();
    for version in [1, 2] {
        let found = driver.drive(session.look_up(&indices(&[3]))).unwrap();
        assert_eq!(found, [Some(Sample::value(version, 3))]);
    }
    assert_eq!(session.stats().prepared, 0);
    let tables = [1, 2].map(|version| {
        let Sample { descriptor, hint, .. } = sample(version);
        Table::new(descriptor, Some(Arc::new(hint) as _), &Acceptance::default()).unwrap()
    });
    let prepared = tables[0].prepare().unwrap();
    let refused = tables[1].query_prepared(&indices(&[3])[0], prepared);
    assert!(matches!(refused, Err(ClientError::Protocol(ProtocolError::OtherTable))));
}

#[test]
fn a_protocol_without_anything_to_prepare_says_so() {
    let mut served = RingSample::new(1);
    let mut driver = Driver::new(move |request: &Request| served.reply(request));
    let mut session = open(&mut driver).unwrap();
    let refused = session.prepare(1).unwrap_err();
    assert!(matches!(refused, SessionError::Client(ClientError::NothingToPrepare { protocol: "onion" })));
    assert_eq!(refused.code(), Code::Options);
}
