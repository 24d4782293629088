//! The HTTP server: [`run`] serves [`Tables`] on a listener until it is told to stop.
//!
//! | file | what |
//! |------|------|
//! | `config.rs` | every limit and timeout, in one struct |
//! | `tables.rs` | tables by name, loading, failed or resident; replaced epochs |
//! | `state.rs` | a table with its queue, and what requests share |
//! | `connection.rs` | one TCP connection: timeouts, byte counts, orderly close |
//! | `pace.rs` | how slowly a client may read |
//! | `routes/` | one endpoint a file |
//! | `limits.rs` | reading a body within a size, a time and a memory budget, which answers share |
//! | `keys/` | evaluation keys of clients: on disk, and ready in memory |
//! | `batch.rs` | concurrent queries become one scan |
//! | `turns.rs` | what waits for a scan, each client in turn |
//! | `throttle.rs` | queries per second and address |
//! | `problem.rs` | errors as RFC 9457 problem documents |
//! | `metrics.rs` | Prometheus metrics |
//!
//! The server speaks HTTP/1.1 without TLS: a proxy in front of it terminates TLS. Nothing that it
//! counts, logs or sends depends on the key that a client looks up: it never learns one.

mod batch;
mod config;
mod connection;
mod error;
mod keys;
mod limits;
mod metrics;
mod pace;
mod problem;
mod routes;
mod state;
mod tables;
mod throttle;
mod turns;

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
};

pub use config::{ServerConfig, Throttle};
pub use error::ServerError;
pub use tables::Tables;

use keys::Keys;
use state::Server;

/// The longest pause after a failed `accept`, for instance when file descriptors run out.
const MAX_ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Serves `tables` on `listener` until `shutdown` resolves, then answers what is in flight and
/// returns. Tables may be added or replaced while it runs. Nothing is accepted until the file of keys is checked.
///
/// # Errors
/// [`ServerError::Config`] and [`ServerError::KeyFile`] before anything is accepted; [`ServerError::Drain`] if requests were
/// still unanswered [`ServerConfig::drain_timeout`] after the shutdown.
pub async fn run(
    listener: TcpListener,
    tables: Tables,
    config: ServerConfig,
    shutdown: impl Future,
) -> Result<(), ServerError> {
    config.check()?;
    let mut shutdown = pin!(shutdown);
    // A large file of keys takes a while to check: until then connections wait in the listener's backlog. A check can
    // break off at any time. The creation of a file is quick, and half of one would be taken for a damaged file.
    let exists = config.keys_path.as_ref().is_some_and(|path| path.exists());
    let keys = tokio::select! {
        biased;
        _ = &mut shutdown, if exists => return Ok(()),
        keys = Keys::open(&config) => keys?,
    };
    tables.keep_replaced(config.epoch_window);
    let server = Arc::new(Server::new(tables.clone(), config, keys));
    // Ends with this function.
    let mut background = JoinSet::new();
    background.spawn(keys::tidy_up(server.clone()));
    background.spawn(tables::drop_replaced(tables.clone()));
    let router = routes::router(server.clone());
    let permits = Arc::new(Semaphore::new(server.config.max_connections));
    let (stop, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    loop {
        let (tcp, permit) = tokio::select! {
            biased;
            _ = &mut shutdown => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        while connections.try_join_next().is_some() {}
        let slot = Slot::new(permit, &server);
        let serve = connection::serve(tcp, server.clone(), router.clone(), stopped.clone());
        connections.spawn(async move {
            serve.await;
            drop(slot);
        });
    }
    drop(listener);
    server.stop();
    stop.send_replace(true);
    let drained = drain(connections, server.config.drain_timeout).await;
    tables.keep_replaced(Duration::ZERO);
    drained
}

/// The place of one connection among those allowed; free again on drop, even after a panic.
struct Slot {
    server: Arc<Server>,
    _permit: OwnedSemaphorePermit,
}

impl Slot {
    fn new(permit: OwnedSemaphorePermit, server: &Arc<Server>) -> Slot {
        server.metrics.connections.inc();
        Slot { server: server.clone(), _permit: permit }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.server.metrics.connections.dec();
    }
}

/// Waits for a free connection slot, then for a connection.
async fn accept(listener: &TcpListener, permits: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");
    let mut pause = Duration::from_millis(10);
    loop {
        match listener.accept().await {
            Ok((tcp, _)) => return (tcp, permit),
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_ACCEPT_PAUSE);
            }
        }
    }
}

async fn drain(mut connections: JoinSet<()>, limit: Duration) -> Result<(), ServerError> {
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limit, all).await.is_ok() {
        return Ok(());
    }
    let unfinished = connections.len();
    connections.shutdown().await;
    Err(ServerError::Drain { unfinished })
}
