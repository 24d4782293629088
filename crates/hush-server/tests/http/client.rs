//! A blocking HTTP/1.1 client over a plain socket, so that tests can also send what no client would.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use hush_protocol::wire::{self, Query, QueryRequest, ResponseShape};
use prost::Message;
use serde_json::Value;
use tokio::net::TcpSocket;

use crate::engine::{ANSWER_BYTES, expected};

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Checks that the response is a problem document in every respect, and returns it.
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{text}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{text}");
        let document = self.json();
        assert_eq!(document["code"], code, "{text}");
        assert_eq!(document["status"], status, "{text}");
        assert_eq!(document["type"], format!("urn:hushdb:problem:{code}"), "{text}");
        assert!(document["title"].is_string() && document["detail"].is_string(), "{text}");
        document
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Client {
        Self::over(TcpStream::connect(address).unwrap())
    }

    /// Connects from another address of the loopback network.
    pub(crate) fn connect_from(from: [u8; 4], address: SocketAddr) -> Client {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let connect = async {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind((from, 0).into()).unwrap();
            socket.connect(address).await.unwrap().into_std().unwrap()
        };
        let stream = runtime.block_on(connect);
        stream.set_nonblocking(false).unwrap();
        Self::over(stream)
    }

    fn over(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    /// Sends as much of `bytes` as the server takes. The server may have closed already, and its response can still be read.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    pub(crate) fn close(self) {
        self.stream.get_ref().shutdown(Shutdown::Both).unwrap();
    }

    pub(crate) fn is_closed_by_server(&mut self) -> bool {
        self.stream.read(&mut [0]).is_ok_and(|bytes| bytes == 0)
    }

    /// Returns all that comes before the end or an error.
    pub(crate) fn rest(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = self.stream.read_to_end(&mut bytes);
        bytes
    }

    pub(crate) fn receive(&mut self) -> Response {
        let mut response = self.receive_head();
        self.receive_body(&mut response);
        response
    }

    /// Receives the rest of the body.
    pub(crate) fn receive_body(&mut self, response: &mut Response) {
        let length = response.header("content-length").map_or(0, |length| length.parse().unwrap());
        self.receive_some(response, length - response.body.len());
    }

    /// Receives the next `bytes` of the body.
    pub(crate) fn receive_some(&mut self, response: &mut Response, bytes: usize) {
        let received = response.body.len();
        response.body.resize(received + bytes, 0);
        self.stream.read_exact(&mut response.body[received..]).unwrap();
    }

    pub(crate) fn receive_head(&mut self) -> Response {
        let status_line = self.line();
        let status = status_line.split(' ').nth(1).expect(&status_line).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        Response { status, headers, body: Vec::new() }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.get_with(path, "")
    }

    /// Sends a `GET` request and returns the response. `headers` are whole lines with their line ends.
    pub(crate) fn get_with(&mut self, path: &str, headers: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").as_bytes());
        self.receive()
    }

    pub(crate) fn head(&mut self, path: &str) -> Response {
        self.send(format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
        self.receive_head()
    }

    pub(crate) fn post(&mut self, path: &str, content_type: &str, body: &[u8]) -> Response {
        self.send(&post_bytes(path, content_type, body));
        self.receive()
    }

    pub(crate) fn put(&mut self, path: &str, content_type: &str, body: &[u8]) -> Response {
        self.send(&bytes_with_body("PUT", path, content_type, body));
        self.receive()
    }

    pub(crate) fn post_query(&mut self, body: &[u8]) -> Response {
        self.post("/v1/tables/t/query", wire::CONTENT_TYPE, body)
    }

    /// Asks table `t` of the given epoch and checks the answers.
    pub(crate) fn ask(&mut self, epoch: [u8; 32], queries: &[Query]) {
        self.send_queries(epoch, queries);
        self.receive_answers(epoch, queries);
    }

    pub(crate) fn send_queries(&mut self, epoch: [u8; 32], queries: &[Query]) {
        let body = request(epoch, queries).encode_to_vec();
        self.send(&post_bytes("/v1/tables/t/query", wire::CONTENT_TYPE, &body));
    }

    pub(crate) fn receive_answers(&mut self, epoch: [u8; 32], queries: &[Query]) {
        let response = self.receive();
        assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
        assert_eq!(response.header("content-type"), Some(wire::CONTENT_TYPE));
        let shape = ResponseShape { epoch: Some(&epoch), answers: queries.len(), answer_bytes: ANSWER_BYTES };
        let (_, answers) = shape.decode(response.body.into()).unwrap();
        for (query, answer) in queries.iter().zip(answers) {
            assert_eq!(answer, expected(query));
        }
    }
}

pub(crate) fn post_bytes(path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    bytes_with_body("POST", path, content_type, body)
}

pub(crate) fn bytes_with_body(method: &str, path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

pub(crate) fn request(epoch: [u8; 32], queries: &[Query]) -> QueryRequest {
    QueryRequest {
        version: wire::VERSION,
        epoch: epoch.to_vec().into(),
        protocol: "sum".into(),
        queries: queries.to_vec(),
    }
}
