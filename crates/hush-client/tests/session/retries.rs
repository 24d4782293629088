//! Failures that may pass, waits, and the machine itself.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use hush_client::session::{
    Action, Head, Method, RetryPolicy, Session, SessionError, SessionOptions, Task, TransportFailure,
};
use hush_protocol::{Code, Remedy, wire};

use super::{
    QUERY,
    driver::{Driver, Memory, lost},
    indices, look_up,
    message::{Reply, Request},
    open, sample,
    sample::Sample,
};

/// Returns a server of the sample that answers the first queries with `faults` in turn.
fn faulty(faults: Vec<Result<Reply, TransportFailure>>) -> Driver {
    let (sample, mut faults) = (sample(1), faults.into_iter());
    Driver::failing(move |request: &Request| {
        let fault = if request.path.ends_with(QUERY) { faults.next() } else { None };
        fault.unwrap_or_else(|| Ok(sample.reply(request)))
    })
}

fn busy(code: &str) -> Result<Reply, TransportFailure> {
    Ok(Reply::problem(503, code, "not now"))
}

fn millis(waits: &[u64]) -> Vec<Duration> {
    waits.iter().copied().map(Duration::from_millis).collect()
}

#[test]
fn waits_double_up_to_the_longest_and_attempts_end() {
    let retry = RetryPolicy {
        attempts: 6,
        first_wait: Duration::from_millis(200),
        max_wait: Duration::from_secs(1),
        ..RetryPolicy::default()
    };
    let failures: [fn() -> Result<Reply, TransportFailure>; 5] = [
        || busy("overloaded"),
        || Err(lost()),
        || Ok(Reply { cut: Some(20), ..Reply::new(200, [0; 40]) }),
        // An error that broke off, whose status tells nothing.
        || Ok(Reply { cut: Some(16), ..Reply::problem(500, "internal", "it failed") }),
        // An error of the server that broke off, whose status could be that of a proxy.
        || {
            let problem = Reply::problem(413, "too_large", "too long");
            Ok(Reply { cut: Some(16), ..problem.with("Content-Type", "application/problem+json") })
        },
    ];
    for failure in failures {
        let mut driver = faulty((0..9).map(|_| failure()).collect());
        driver.options.retry = retry;
        let error = look_up(&mut driver, &[3]).unwrap_err();
        assert!(matches!(error.code(), Code::Overloaded | Code::Unreachable), "{error}");
        assert_eq!(driver.waits, millis(&[200, 400, 800, 1000, 1000]));
        assert_eq!(driver.asked(QUERY).len(), 6);
        let retries = driver.host.events().into_iter().filter(|event| event.starts_with("Retry")).count();
        assert_eq!(retries, 5);

        let mut driver = faulty((0..5).map(|_| failure()).collect());
        driver.options.retry = retry;
        assert_eq!(look_up(&mut driver, &[3]).unwrap(), [Some(Sample::value(1, 3))]);
    }
}

#[test]
fn a_server_says_how_long_to_wait() {
    let after = |value: &str| Ok(Reply::problem(429, "throttled", "slowly").with("Retry-After", value));
    let mut driver = faulty(vec![after(" 7 "), after("0"), after("Wed, 21 Oct 2026 07:28:00 GMT")]);
    look_up(&mut driver, &[3]).unwrap();
    assert_eq!(driver.waits, millis(&[7000, 400, 800]), "never less than the back-off");

    let mut driver = faulty(vec![after("31")]);
    let error = look_up(&mut driver, &[3]).unwrap_err();
    assert_eq!(error.to_string(), "the server cannot answer now (slowly): try again in 31 s");
    assert!(driver.waits.is_empty());
    let error = look_up(&mut faulty(vec![after("18446744073709551615")]), &[3]).unwrap_err();
    assert_eq!(error.to_string(), "the server cannot answer now (slowly): try again in 86400 s");
}

#[test]
fn a_table_that_is_loading_is_waited_for_so_long() {
    let warming = || (0..99).map(|_| busy("warming")).collect();
    let mut driver = faulty(warming());
    driver.options.retry.max_wait = Duration::from_secs(10);
    let error = look_up(&mut driver, &[3]).unwrap_err();
    assert_eq!(error.code(), Code::Warming, "{error}");
    let waited: Duration = driver.waits.iter().sum();
    assert!(Duration::from_secs(110) < waited && waited <= Duration::from_secs(120), "{waited:?}");
    assert!(driver.waits.len() > 10, "more than the attempts");
}

#[test]
fn a_server_that_is_started_anew_is_waited_for_by_a_call_that_has_answers() {
    let gone = |count| (0..count).map(|_| Err(lost()));
    let answered = |faults: Vec<_>| {
        // The first request is answered.
        let (sample, mut faults, mut queries) = (sample(1), faults.into_iter(), 0);
        let mut driver = Driver::failing(move |request: &Request| {
            let is_query = request.path.ends_with(QUERY);
            queries += usize::from(is_query);
            let fault = if is_query && queries > 1 { faults.next() } else { None };
            fault.unwrap_or_else(|| Ok(sample.reply(request)))
        });
        driver.options.max_queries = 1;
        driver
    };
    let mut driver = answered(gone(6).chain([Ok(Reply::new(502, "")), busy("warming")]).collect());
    let found = look_up(&mut driver, &[1, 2, 3]).unwrap();
    assert_eq!(found, [1, 2, 3].map(|index| Some(Sample::value(1, index))));
    assert_eq!(driver.asked(QUERY).len(), 3 + 8, "what is answered is not asked again");

    // So says what is in front of it, and a connection that was cut silently says nothing.
    let silent = Err(TransportFailure::Timeout { phase: "nothing came".into() });
    let faults = (0..7).map(|_| Ok(Reply::new(503, "no server available"))).chain([silent]);
    let found = look_up(&mut answered(faults.collect()), &[1, 2, 3]).unwrap();
    assert_eq!(found, [1, 2, 3].map(|index| Some(Sample::value(1, index))));

    // Not for ever.
    let mut driver = answered(gone(99).collect());
    let error = look_up(&mut driver, &[1, 2, 3]).unwrap_err();
    assert!(matches!(error, SessionError::Unreachable { .. }), "{error}");
    let waited: Duration = driver.waits.iter().sum();
    assert!(Duration::from_secs(80) < waited && waited <= Duration::from_secs(120), "{waited:?}");

    // Nor where the server itself says that a request took too long.
    let mut driver = answered(vec![Ok(Reply::problem(408, "timeout", "the body took more than 60 s"))]);
    let error = look_up(&mut driver, &[1, 2, 3]).unwrap_err();
    assert_eq!(error.code(), Code::Timeout, "{error}");
    assert!(driver.waits.is_empty());
}

#[test]
fn answers_are_given_as_they_come() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let (sample, asked) = (sample(1), log.clone());
    let mut driver = Driver::new(move |request: &Request| {
        if request.path.ends_with(QUERY) {
            asked.lock().unwrap().push("asked".to_owned());
        }
        sample.reply(request)
    });
    let mut session = open(&mut driver).unwrap();
    let wanted = indices(&[1, 2, 99, 4, 5]);
    let given = log.clone();
    let task = session.look_up_each(&wanted, Some(2), move |answers| {
        let found = answers.found().map(|found| found.is_ok_and(Option::is_some)).collect::<Vec<_>>();
        given.lock().unwrap().push(format!("{} {found:?}", answers.len()));
    });
    driver.drive(task).unwrap();
    let expected = ["asked", "2 [true, true]", "asked", "2 [false, true]", "asked", "1 [true]"];
    assert_eq!(*log.lock().unwrap(), expected, "one that cannot be read ends nothing");
}

#[test]
fn a_call_ends_with_its_time() {
    let mut driver = faulty((0..99).map(|_| busy("overloaded")).collect());
    driver.options.retry.attempts = 99;
    driver.options.timeout = Some(Duration::from_secs(2));
    let error = look_up(&mut driver, &[3]).unwrap_err();
    assert_eq!(error.code().remedy(), Remedy::Wait, "{error}");
    assert_eq!(driver.waits, millis(&[200, 400, 800]), "the next wait would be too long");

    // A server that says a little now and then.
    let mut driver = faulty(vec![]);
    driver.options.timeout = Some(Duration::from_millis(50));
    driver.host = Arc::new(Memory::ticking(Duration::from_millis(30)));
    let error = look_up(&mut driver, &[3]).unwrap_err();
    let text = "http://Localhost:7700 did not answer in time (the call may take 50ms): try again later";
    assert_eq!(error.to_string(), text);
}

#[test]
fn failures_that_stay_are_told_at_once() {
    let unreachable = TransportFailure::Unreachable { reason: "no such host".into(), transient: false };
    for (failure, text) in [
        (
            unreachable,
            "cannot reach http://Localhost:7700 (no such host): is the server running, and is the URL right?",
        ),
        (
            TransportFailure::Timeout { phase: "receive response".into() },
            "http://Localhost:7700 did not answer in time (receive response): try again later",
        ),
        (
            TransportFailure::Tls { reason: "expired".into() },
            "no secure connection to http://Localhost:7700 (expired): check that its certificate is valid for this \
             name and trusted by this system, or by 'ca-cert'",
        ),
        (
            TransportFailure::Odd { reason: "no status line".into() },
            "http://Localhost:7700 does not answer like a hushdb server (no status line): check the URL, https or http too",
        ),
    ] {
        let mut driver = faulty(vec![Err(failure)]);
        assert_eq!(look_up(&mut driver, &[3]).unwrap_err().to_string(), text);
        assert_eq!(driver.asked(QUERY).len(), 1);
    }
    let mut driver = faulty(vec![busy("device_lost")]);
    let error = look_up(&mut driver, &[3]).unwrap_err();
    assert_eq!(error.code(), Code::DeviceLost, "{error}");
}

#[test]
fn look_ups_go_in_requests_of_limited_length() {
    let mut driver = faulty(vec![]);
    driver.options = SessionOptions { max_queries: 5, ..SessionOptions::default() };
    let wanted: Vec<u64> = (0..16).rev().collect();
    let found = look_up(&mut driver, &wanted).unwrap();
    assert_eq!(found, wanted.iter().map(|&index| Some(Sample::value(1, index))).collect::<Vec<_>>());
    let requests = driver.asked(QUERY);
    assert!(requests.iter().all(|request| {
        (request.method.as_str(), request.header("content-type")) == ("POST", Some(wire::CONTENT_TYPE))
    }));
    let lengths: Vec<_> = requests.iter().map(|request| request.body.len()).collect();
    assert!(lengths.len() == 4 && lengths[..3] == [lengths[0]; 3] && lengths[3] < lengths[0], "{lengths:?}");
}

#[test]
fn a_task_can_own_its_session() {
    fn sent<T: Send>(value: T) -> T {
        value
    }
    let mut driver = faulty(vec![busy("overloaded")]);
    let session = sent(open(&mut driver).unwrap());
    let task: Task<'static, (Session, _)> = sent(session.into_look_up(indices(&[1, 2])));
    let (mut session, found) = driver.drive(task);
    assert_eq!(found.unwrap(), [Some(Sample::value(1, 1)), Some(Sample::value(1, 2))]);
    // A task that is given up leaves a session that goes on.
    let wanted = indices(&[3]);
    let mut given_up = session.look_up(&wanted);
    assert!(matches!(given_up.advance(), Action::Send(request) if request.method == Method::Post));
    drop(given_up);
    assert_eq!(driver.drive(session.look_up(&wanted)).unwrap(), [Some(Sample::value(1, 3))]);
    assert_eq!(driver.drive(session.look_up(&[])).unwrap(), []);
    assert_eq!((session.stats().queries, session.stats().answers), (2 + 2 + 1 + 1, 2 + 1));
}

#[test]
#[should_panic(expected = "a request waits for its response")]
fn a_request_is_answered_before_the_next() {
    let mut task = faulty(vec![]).connect();
    assert!(matches!(task.advance(), Action::Send(_)));
    task.advance();
}

#[test]
#[should_panic(expected = "nothing waits for this part of a response")]
fn a_response_follows_a_request() {
    faulty(vec![]).connect().begin(Head { status: 200, ..Head::default() });
}
