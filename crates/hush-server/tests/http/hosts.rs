//! Tests of the names by which a server is asked.

use std::{net::SocketAddr, sync::Arc};

use hush_protocol::Name;
use hush_server::{Listeners, Operator, OperatorError, Tables, host_name};
use tokio::net::TcpListener;

use crate::{
    client::{Client, Response},
    engine::SumEngine,
    harness::{EPOCH_BYTE, TestServer, config, name},
};

struct NoOperator;

impl Operator for NoOperator {
    fn reload(&self, _: &Name) -> Result<[u8; 32], OperatorError> {
        Err(OperatorError::UnknownTable)
    }

    fn compact(&self, _: &Name) -> Result<(), OperatorError> {
        Err(OperatorError::UnknownTable)
    }
}

/// Returns a server on an address, with health and admin endpoints, and the addresses of all three.
fn start(address: &'static str, allowed: &[&str]) -> (TestServer, [SocketAddr; 3]) {
    let allowed: Vec<String> = allowed.iter().map(|name| host_name(name).unwrap()).collect();
    let tables = Tables::new();
    tables.insert(&name("t"), Arc::new(SumEngine::new(EPOCH_BYTE))).unwrap();
    let (to, from) = std::sync::mpsc::channel();
    let server = TestServer::start_as(tables, config(), false, move |listeners: &mut Listeners| {
        let bind = || {
            let listener = std::net::TcpListener::bind(address).unwrap();
            listener.set_nonblocking(true).unwrap();
            TcpListener::from_std(listener).unwrap()
        };
        let (public, health, admin) = (bind(), bind(), bind());
        let local = |listener: &TcpListener| {
            let port = listener.local_addr().unwrap().port();
            SocketAddr::from(([127, 0, 0, 1], port))
        };
        to.send([local(&public), local(&health), local(&admin)]).unwrap();
        listeners.public = public;
        listeners.health = Some(health);
        listeners.admin = Some((admin, Arc::new(NoOperator)));
        listeners.allowed_hosts = allowed;
    });
    (server, from.recv().unwrap())
}

fn ask(address: SocketAddr, path: &str, hosts: &str) -> Response {
    let mut client = Client::connect(address);
    client.send(format!("GET {path} HTTP/1.1\r\n{hosts}\r\n").as_bytes());
    client.receive()
}

#[test]
fn a_listener_on_loopback_answers_to_its_own_names() {
    let (_server, [public, health, admin]) = start("127.0.0.1:0", &["hush.example"]);
    for (address, path) in
        [(public, "/v1/tables"), (health, "/metrics"), (health, "/info"), (admin, "/v1/admin/tables")]
    {
        let port = address.port();
        for host in ["localhost", "127.0.0.1", "[::1]", "a.localhost", "hush.example"] {
            for host in [host.to_owned(), format!("{host}:{port}"), format!("{host}:1")] {
                let response = ask(address, path, &format!("Host: {host}\r\n"));
                assert_ne!(response.status, 421, "{path} {host}");
            }
        }
        for fields in [
            "Host: evil.example\r\n",
            "Host: evil.example:7700\r\n",
            "Host: 0.0.0.0\r\n",
            "Host: localhost\r\nHost: evil.example\r\n",
            "Host:\r\n",
            "",
        ] {
            ask(address, path, fields).problem(421, "misdirected");
        }
        ask(address, &format!("http://evil.example{path}"), "Host: localhost\r\n")
            .problem(421, "misdirected");
    }
    // Balancers get a status, and nothing else.
    let ready = ask(health, "/readyz", "Host: balancer.example\r\n");
    assert_eq!((ready.status, ready.body.len()), (200, 0));
    let detail = ask(public, "/v1/tables", "Host: evil.example\r\n").json()["detail"].to_string();
    assert!(detail.contains("evil.example") && detail.contains("allowed-hosts"), "{detail}");
}

#[test]
fn a_listener_elsewhere_answers_to_every_name_unless_there_are_some() {
    let (_server, [public, health, admin]) = start("0.0.0.0:0", &[]);
    for (address, path) in [(public, "/v1/tables"), (health, "/metrics"), (admin, "/v1/admin/tables")] {
        assert_eq!(ask(address, path, "Host: any.example\r\n").status, 200, "{path}");
    }
    let (_server, [public, health, admin]) = start("0.0.0.0:0", &["hush.example"]);
    for (address, path, status) in [
        (public, "/v1/tables", 421),
        (admin, "/v1/admin/tables", 421),
        // Machines ask for metrics by address.
        (health, "/metrics", 200),
    ] {
        assert_eq!(ask(address, path, "Host: any.example\r\n").status, status, "{path}");
        assert_eq!(ask(address, path, "Host: hush.example\r\n").status, 200, "{path}");
    }
}
