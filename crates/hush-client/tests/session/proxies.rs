//! Proxies that answer in the place of the server, and redirects.

use hush_client::session::SessionError;
use hush_protocol::ErrorKind;

use super::{QUERY, driver::Driver, look_up, message::Reply, sample};

/// Returns a server of the sample behind a proxy that answers requests whose path contains `part` itself.
fn behind(part: &'static str, reply: impl Fn() -> Reply + 'static) -> Driver {
    let sample = sample(1);
    Driver::new(move |request| if request.path.contains(part) { reply() } else { sample.reply(request) })
}

fn page(status: u16) -> Reply {
    Reply::new(status, "<html>no</html>").with("Server", "nginx/1.27")
}

#[test]
fn a_proxy_is_named_with_what_its_operator_can_do() {
    let mut driver = behind(QUERY, || page(413));
    let error = look_up(&mut driver, &[3]).unwrap_err();
    let sent = driver.asked(QUERY)[0].body.len();
    assert_eq!(
        error.to_string(),
        format!(
            "a proxy in front of http://Localhost:7700 (nginx/1.27) takes no request of {sent} bytes: its operator must allow \
             requests of at least that length (in nginx by client_max_body_size) (status 413)"
        )
    );
    assert_eq!(error.code().kind(), ErrorKind::ConnectionFailed);
    assert_eq!(driver.asked(QUERY).len(), 1, "it would be refused again");
    // A proxy may close the connection before its page is read, because it does not read the request.
    let cut = || Reply { cut: Some(4), ..page(413) };
    assert_eq!(look_up(&mut behind(QUERY, cut), &[3]).unwrap_err().to_string(), error.to_string());

    for (status, words, requests) in [
        (502, "(nginx/1.27) does not reach the server: try again later", 5),
        (504, "(nginx/1.27) does not reach the server: try again later", 5),
        (
            403,
            "(nginx/1.27) refuses the request: ask its operator to let requests to /v1/ pass (status 403)",
            1,
        ),
        (407, "(nginx/1.27) asks for a sign-in of its own", 1),
    ] {
        let mut driver = behind(QUERY, move || page(status));
        let error = look_up(&mut driver, &[3]).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(driver.asked(QUERY).len(), requests, "{status}");
    }
    for part in ["/v1/tables", QUERY] {
        let login =
            || Reply::new(200, "<html>sign in</html>").with("Content-Type", "text/html; charset=utf-8");
        let error = look_up(&mut behind(part, login), &[3]).unwrap_err().to_string();
        assert!(error.contains("a web page came in place of its answer"), "{part}: {error}");
    }
    let mut driver = behind("/v1/tables", || Reply::new(200, "{").with("Content-Type", "application/json"));
    let error = look_up(&mut driver, &[3]).unwrap_err().to_string();
    assert!(!error.contains("a web page"), "{error}");
    for (status, said) in [(503, "503 Service Unavailable"), (429, "429 Too Many Requests")] {
        let error = look_up(&mut behind(QUERY, move || page(status)), &[3]).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let mut driver = behind("/v1/tables", || Reply::new(403, ""));
    let error = look_up(&mut driver, &[3]).unwrap_err().to_string();
    assert!(error.starts_with("a proxy in front of http://Localhost:7700 refuses the request"), "{error}");
}

#[test]
fn a_redirect_is_told_as_the_url_to_give() {
    for (location, base) in [
        ("https://hush.example/v1/tables", "https://hush.example"),
        ("https://hush.example/db/v1/tables?from=old", "https://hush.example/db"),
        ("/db/v1/tables", "http://Localhost:7700/db"),
        ("https://hush.example/login", "https://hush.example/login"),
    ] {
        let mut driver = behind("/v1/tables", move || Reply::new(301, "").with("Location", location));
        let error = look_up(&mut driver, &[3]).unwrap_err();
        assert!(matches!(&error, SessionError::Moved { location } if location == base), "{error}");
    }
}
