//! Evaluation keys: uploaded when the server says that it does not have them.

use super::{Event, HttpError, Stats, transport::Transport};
use crate::{KeyId, Table};

/// Makes `attempt`. If the server lacks the keys of its queries, `upload`s them and makes it once more.
pub(super) fn with_keys<S, T>(
    state: &mut S,
    attempt: impl Fn(&mut S) -> Result<T, HttpError>,
    upload: impl FnOnce(&mut S) -> Result<(), HttpError>,
) -> Result<T, HttpError> {
    match attempt(state) {
        Err(error) if lacks_keys(&error) => upload(state)?,
        outcome => return outcome,
    }
    attempt(state).map_err(|error| if lacks_keys(&error) { HttpError::KeysNotKept } else { error })
}

/// Uploads the keys of `table`.
pub(super) fn upload(transport: &Transport, table: &Table, stats: &mut Stats) -> Result<(), HttpError> {
    match table.key_upload() {
        Some((id, body)) => upload_body(transport, &id, &body, stats),
        None => Err(transport.odd("it asks for keys, of which the table's protocol has none")),
    }
}

fn upload_body(transport: &Transport, id: &KeyId, body: &[u8], stats: &mut Stats) -> Result<(), HttpError> {
    transport.report(&Event::KeysUpload { bytes: body.len() as u64 });
    let path = format!("/v1/keys/{}", hex::encode(id));
    transport.retrying(|| {
        stats.key_bytes_up += body.len() as u64;
        transport.put(&path, body)
    })
}

fn lacks_keys(error: &HttpError) -> bool {
    matches!(error, HttpError::Refused { status: 428, code, .. } if code == "key_not_found")
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader, Read, Write},
        net::TcpListener,
        sync::{Arc, Mutex},
        thread,
        time::Duration,
    };

    use super::*;
    use crate::http::{HttpOptions, RetryPolicy};

    fn refused(status: u16, code: &str) -> HttpError {
        HttpError::Refused { status, code: code.into(), detail: String::new() }
    }

    /// Answers attempts with `outcomes` in turn; returns what came of it, and the attempts and uploads made.
    fn run(outcomes: &[fn() -> Result<u8, HttpError>]) -> (Result<u8, HttpError>, usize, usize) {
        let mut made = (0, 0);
        let attempt = |made: &mut (usize, usize)| {
            made.0 += 1;
            outcomes[made.0 - 1]()
        };
        let outcome = with_keys(&mut made, attempt, |made| {
            made.1 += 1;
            Ok(())
        });
        (outcome, made.0, made.1)
    }

    #[test]
    fn keys_are_uploaded_once_when_they_are_missing() {
        let missing = || Err(refused(428, "key_not_found"));
        assert!(matches!(run(&[|| Ok(1)]), (Ok(1), 1, 0)));
        assert!(matches!(run(&[missing, || Ok(2)]), (Ok(2), 2, 1)));
        assert!(matches!(run(&[missing, missing]), (Err(HttpError::KeysNotKept), 2, 1)));
        let (outcome, attempts, uploads) = run(&[missing, || Err(refused(400, "invalid_request"))]);
        assert!(
            matches!(outcome, Err(HttpError::Refused { status: 400, .. })) && (attempts, uploads) == (2, 1)
        );
        for other in [|| Err(refused(428, "other")), || Err(refused(404, "key_not_found"))] {
            assert!(matches!(run(&[other]), (Err(HttpError::Refused { .. }), 1, 0)));
        }
        let failed = with_keys(
            &mut (),
            |_| -> Result<(), _> { missing().map(drop) },
            |_| Err(refused(413, "too_large")),
        );
        assert!(matches!(failed, Err(HttpError::Refused { status: 413, .. })));
    }

    /// First line and body of each.
    type Requests = Vec<(String, Vec<u8>)>;

    /// A server that answers one request a connection with each of `statuses`, and what it was sent.
    fn server(statuses: &'static [&'static str]) -> (String, thread::JoinHandle<Requests>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/base", listener.local_addr().unwrap());
        let thread = thread::spawn(move || {
            let serve = |status: &&str| {
                let mut reader = BufReader::new(listener.accept().unwrap().0);
                let (mut head, mut length) = (String::new(), 0);
                while reader.read_line(&mut head).unwrap() > 2 {}
                for line in head.lines() {
                    let (name, value) = line.split_once(": ").unwrap_or_default();
                    if name.eq_ignore_ascii_case("content-length") {
                        length = value.parse().unwrap();
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let reply = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
                reader.get_mut().write_all(reply.as_bytes()).unwrap();
                (head.lines().next().unwrap().to_owned(), body)
            };
            statuses.iter().map(serve).collect()
        });
        (url, thread)
    }

    #[test]
    fn an_upload_is_a_put_of_the_body_under_its_hash() {
        for (statuses, sent) in [(&["201 Created"][..], 1), (&["503 Busy", "204 No Content"], 2)] {
            let (url, server) = server(statuses);
            let events = Arc::new(Mutex::new(Vec::new()));
            let seen = events.clone();
            let options = HttpOptions {
                retry: RetryPolicy { first_wait: Duration::from_millis(1), ..RetryPolicy::default() },
                observer: Arc::new(move |event| seen.lock().unwrap().push(format!("{event:?}"))),
                ..HttpOptions::default()
            };
            let transport = Transport::new(&url, &options).unwrap();
            let mut stats = Stats::default();
            upload_body(&transport, &[0xab; 32], b"the keys", &mut stats).unwrap();
            let request = (format!("PUT /base/v1/keys/{} HTTP/1.1", "ab".repeat(32)), b"the keys".to_vec());
            assert_eq!(server.join().unwrap(), vec![request; sent]);
            assert_eq!(stats.key_bytes_up, 8 * sent as u64);
            assert_eq!(events.lock().unwrap()[0], "KeysUpload { bytes: 8 }");
        }
    }
}
