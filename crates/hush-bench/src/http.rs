//! Queries over loopback HTTP: one client, then many at once. The ciphertexts are made beforehand: the server is measured, and
//! not the clients that share its cores.

use std::{
    error::Error,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use hush_engine::Engine;
use hush_protocol::wire;
use hush_server::{ServerConfig, Tables};
use prost::Message;
use ureq::Agent;

use super::timing::quantile;

/// The number of clients at once.
const CLIENTS: usize = 32;
/// The time for which each kind is measured.
const SPAN: Duration = Duration::from_secs(5);

/// Measures `queries` to a server of `engine`. Returns the name of each figure, with its seconds.
pub(super) fn measure(
    engine: Arc<dyn Engine>,
    queries: &[wire::Query],
) -> Result<Vec<(String, f64)>, Box<dyn Error>> {
    let bodies: Vec<_> = queries.iter().map(|query| body(&*engine, query)).collect();
    let tables = Tables::new();
    tables.insert(&"bench".parse()?, engine)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let url = format!("http://{}/v1/tables/bench/query", listener.local_addr()?);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = runtime.spawn(hush_server::run(listener, tables, ServerConfig::default(), stopped));

    let one = client(&url, &bodies, 0)?;
    let start = Instant::now();
    let ask = |number| client(&url, &bodies, number);
    let asked: Result<Vec<_>, _> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || ask(number))).collect();
        clients.into_iter().map(|client| client.join().expect("clients do not panic")).collect()
    });
    let all = asked?.concat();
    let each = start.elapsed().as_secs_f64() / all.len() as f64;
    drop(stop);
    runtime.block_on(server)??;
    Ok(vec![
        ("http, one client, p50".into(), quantile(one, 0.5)),
        ("http, 32 clients, p50".into(), quantile(all.clone(), 0.5)),
        ("http, 32 clients, p99".into(), quantile(all, 0.99)),
        (format!("http, 32 clients: {:.0} queries/s", 1.0 / each), each),
    ])
}

/// Returns the body of a request with one query.
fn body(engine: &dyn Engine, query: &wire::Query) -> Vec<u8> {
    let request = wire::QueryRequest {
        version: wire::VERSION,
        epoch: engine.served().epoch.to_vec().into(),
        protocol: engine.served().protocol.clone(),
        queries: vec![query.clone()],
    };
    request.encode_to_vec()
}

/// Sends one query after the other for [`SPAN`], beginning with body `first`. Returns the seconds that each took.
fn client(url: &str, bodies: &[Vec<u8>], first: usize) -> Result<Vec<f64>, ureq::Error> {
    let agent = Agent::new_with_config(Agent::config_builder().proxy(None).build());
    let begin = Instant::now();
    let mut seconds = Vec::new();
    while begin.elapsed() < SPAN || seconds.len() < 3 {
        let body = &bodies[(first + seconds.len()) % bodies.len()];
        let start = Instant::now();
        agent.post(url).content_type(wire::CONTENT_TYPE).send(&body[..])?.body_mut().read_to_vec()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    Ok(seconds)
}
