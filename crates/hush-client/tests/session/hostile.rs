//! Servers that answer with anything at all.

use hush_client::session::SessionError;

use super::{QUERY, driver::Driver, look_up, message::Reply, sample};

/// Returns a server of the sample that answers requests whose path ends with `place` with `reply`.
fn odd_at(place: &'static str, reply: impl Fn() -> Reply + 'static) -> Driver {
    let sample = sample(1);
    let mut driver = Driver::new(move |request| {
        let is_odd = match place {
            "blob" => request.path.contains("/v1/blobs/"),
            _ => request.path.ends_with(place),
        };
        if is_odd { reply() } else { sample.reply(request) }
    });
    driver.options.retry.attempts = 2;
    driver
}

#[test]
fn every_status_with_every_body_ends_soon() {
    let bodies: [fn() -> Vec<u8>; 6] = [
        Vec::new,
        || b"{}".to_vec(),
        || br#"{"code":"x","detail":"y","descriptor":{}}"#.to_vec(),
        || br#"{"tables":[{"name":"../..","state":"resident"}]}"#.to_vec(),
        || [0x1a, 0].repeat(10_000),
        || vec![0xff; 1 << 18],
    ];
    for place in ["/v1/tables", "/v1/tables/sample", "blob", QUERY] {
        for status in [100, 200, 204, 206, 299, 302, 404, 410, 416, 428, 429, 500, 503, 999] {
            for body in bodies {
                let mut driver = odd_at(place, move || Reply::new(status, body()));
                let error = look_up(&mut driver, &[3]).unwrap_err();
                let text = error.to_string();
                assert!(text.chars().all(|c| !c.is_control()) && text.len() < 1000, "{text}");
                assert!(driver.requests.len() < 10, "{place}, {status}");
            }
        }
    }
}

#[test]
fn bodies_are_read_no_further_than_they_may_go() {
    for (place, status, limit) in
        [(QUERY, 200, 5 << 10), (QUERY, 404, 64 << 10), ("/v1/tables", 503, 64 << 10)]
    {
        for stated_length in [None, Some(1 << 20), Some(u64::MAX)] {
            let sample = sample(1);
            let mut driver = odd_at(place, move || {
                let long = vec![b' '; 1 << 20];
                Reply { stated_length, ..Reply::new(status, long) }
            });
            let error = look_up(&mut driver, &[3]).unwrap_err();
            assert!(matches!(error, SessionError::TooLong { .. }), "{error}");
            let read =
                driver.bytes_read.saturating_sub(sample.hint.len() + sample.descriptor.to_json().len());
            assert!(read < limit + 2000, "{read} bytes");
        }
    }
}

#[test]
fn a_servers_words_are_made_fit_for_a_terminal() {
    let mut driver = odd_at(QUERY, || Reply::problem(400, "a\u{7}b", &"\x1b[31m".repeat(999)));
    let text = look_up(&mut driver, &[3]).unwrap_err().to_string();
    assert!(text.ends_with("(a b, status 400)") && text.len() < 400, "{text}");
    let mut driver = odd_at(QUERY, || Reply::new(307, "").with("Location", "https://x.example/\r\n\x1b"));
    let text = look_up(&mut driver, &[3]).unwrap_err().to_string();
    assert_eq!(
        text,
        "the server says that it has moved to https://x.example/   : if that is right, use that URL"
    );
}

#[test]
fn answers_to_other_requests_are_no_answers() {
    let (ours, theirs) = (sample(1), sample(2));
    let epoch = theirs.descriptor.epoch;
    // A good answer, but of one look-up instead of two, and then of another epoch.
    let mut count = 0;
    let mut driver = Driver::new(move |request| {
        let mut reply = ours.reply(request);
        if request.path.ends_with(QUERY) {
            count += 1;
            match count {
                1 => reply.body.truncate(36 + (reply.body.len() - 36) / 2),
                _ => reply.body[4..36].copy_from_slice(&epoch),
            }
        }
        reply
    });
    for _ in 0..2 {
        let error = look_up(&mut driver, &[3, 4]).unwrap_err();
        assert!(matches!(error, SessionError::Wire(_)), "{error}");
    }
    assert_eq!(driver.asked(QUERY).len(), 2);
}
