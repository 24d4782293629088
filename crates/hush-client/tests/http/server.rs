//! A small HTTP server that answers what a test tells it to.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

pub(crate) use super::message::{Reply, Request};

type Handler = dyn FnMut(&Request) -> Reply + Send;

/// Serves one request a connection until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(handler: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (log, stopped) = (requests.clone(), stop.clone());
        let thread = thread::spawn(move || {
            let mut handler: Box<Handler> = Box::new(handler);
            for connection in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                // A client that goes away midway is part of some tests.
                let _ = serve(connection.unwrap(), &mut handler, &log);
            }
        });
        Self { address, requests, stop, thread: Some(thread) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests so far whose path contains `part`.
    pub(crate) fn requests(&self, part: &str) -> Vec<Request> {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|request| request.path.contains(part)).cloned().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn serve(stream: TcpStream, handler: &mut Handler, log: &Mutex<Vec<Request>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).map(|_| line.trim_end().to_owned())
    };
    let first = line()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or("").to_owned(), words.next().unwrap_or("").to_owned());
    let mut headers = Vec::new();
    while let Some((name, value)) = line()?.split_once(':') {
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request { method, path, headers, body: Vec::new() };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    request.body.resize(length, 0);
    reader.read_exact(&mut request.body)?;
    log.lock().unwrap().push(request.clone());

    let reply = handler(&request);
    let mut stream = stream;
    let length = reply.stated_length.unwrap_or(reply.body.len() as u64);
    write!(stream, "HTTP/1.1 {} X\r\nContent-Length: {length}\r\nConnection: close\r\n", reply.status)?;
    for (name, value) in &reply.headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    stream.write_all(b"\r\n")?;
    stream.write_all(&reply.body[..reply.cut.unwrap_or(reply.body.len())])
}
