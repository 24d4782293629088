//! Queries over loopback HTTP: one client, then many at once. The ciphertexts are made beforehand, so that the
//! server is measured and not the clients that share its cores.

use std::{
    error::Error,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use hush_engine::Engine;
use hush_protocol::wire;
use hush_server::{ServerConfig, Tables};
use prost::Message;

use super::row::Row;

/// Clients at once.
const CLIENTS: usize = 32;
/// How long each kind is measured.
const SPAN: Duration = Duration::from_secs(5);

pub(super) fn measure(
    engine: Arc<dyn Engine>,
    queries: &[wire::Query],
    encoded: u64,
) -> Result<Vec<Row>, Box<dyn Error>> {
    let scan_threads = super::threads(None);
    let requests: Arc<Vec<Vec<u8>>> =
        Arc::new(queries.iter().map(|query| request(&*engine, query)).collect());
    let tables = Tables::new();
    tables.insert("bench", engine)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = runtime.spawn(hush_server::run(listener, tables, ServerConfig::default(), stopped));

    let one = client(address, &requests, 0, SPAN)?;
    let start = Instant::now();
    let handles: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let requests = requests.clone();
            thread::spawn(move || client(address, &requests, number, SPAN).map_err(|e| e.to_string()))
        })
        .collect();
    let mut all = Vec::new();
    for handle in handles {
        all.extend(handle.join().map_err(|_| "a client failed")??);
    }
    let elapsed = start.elapsed().as_secs_f64();
    drop(stop);
    runtime.block_on(server)??;

    let mut rows = vec![Row::new("http, one client, p50", scan_threads, 1, encoded, percentile(one, 0.5))];
    rows.push(Row::new("http, 32 clients, p50", scan_threads, 1, encoded, percentile(all.clone(), 0.5)));
    rows.push(Row::new("http, 32 clients, p99", scan_threads, 1, encoded, percentile(all.clone(), 0.99)));
    let each = elapsed / all.len() as f64;
    rows.push(Row::new(
        format!("http, 32 clients: {:.0} queries/s", 1.0 / each),
        scan_threads,
        1,
        encoded,
        each,
    ));
    Ok(rows)
}

fn request(engine: &dyn Engine, query: &wire::Query) -> Vec<u8> {
    let body = wire::QueryRequest {
        version: wire::VERSION,
        epoch: engine.epoch().to_vec().into(),
        protocol: engine.protocol().to_owned(),
        queries: vec![query.clone()],
    }
    .encode_to_vec();
    let mut request = format!(
        "POST /v1/tables/bench/query HTTP/1.1\r\nHost: bench\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n",
        wire::CONTENT_TYPE,
        body.len()
    )
    .into_bytes();
    request.extend(body);
    request
}

/// Sends one request after the other for `span`; returns the seconds that each took.
fn client(
    address: SocketAddr,
    requests: &[Vec<u8>],
    first: usize,
    span: Duration,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let (begin, mut seconds) = (Instant::now(), Vec::new());
    while begin.elapsed() < span || seconds.len() < 3 {
        let start = Instant::now();
        stream.write_all(&requests[(first + seconds.len()) % requests.len()])?;
        read_response(&mut reader)?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

fn read_response(reader: &mut impl BufRead) -> Result<(), Box<dyn Error>> {
    let (mut line, mut length, mut ok) = (String::new(), 0, false);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let text = line.trim_end().to_ascii_lowercase();
        ok |= text.starts_with("http/1.1 200");
        if let Some(value) = text.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if text.is_empty() {
            break;
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    if ok { Ok(()) } else { Err("the server refused a query".into()) }
}

fn percentile(mut seconds: Vec<f64>, share: f64) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[((seconds.len() - 1) as f64 * share) as usize]
}
