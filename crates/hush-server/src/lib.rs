//! The HTTP server: [`run`] serves [`Tables`] on a listener until it is told to stop.
//!
//! | file | what |
//! |------|------|
//! | `config.rs` | every limit and timeout, in one struct |
//! | `state.rs` | a table with its queue, and what requests share |
//! | `tables/` | tables by name, loading, failed or resident; replaced epochs; the health of parts that are elsewhere |
//! | `connections/` | connections of a listener, over TCP or TLS: their number, their timeouts, and HTTP/2 |
//! | `access/` | who may ask for what: callers, clients, tokens, the gateway of Oblivious HTTP |
//! | `queue/` | how requests are admitted and wait, and how queries become scans |
//! | `routes/` | one endpoint a file |
//! | `keys/` | evaluation keys of clients: on disk, and ready in memory |
//! | `operator.rs` | the orders that an operator gives a server |
//! | `relay.rs` | a relay, which has no tables and passes sealed requests on |
//! | `page.rs` | the page for browsers |
//! | `renewed.rs` | values read from files, and read again when the files change |
//! | `problem.rs`, `error.rs` | errors of requests as RFC 9457 problem documents; errors of the server itself |
//! | `metrics/` | Prometheus metrics: counted as it happens, or read when they are asked for |
//! | `upkeep.rs` | background tasks that restart after a failure, and the time of the last look at each table |
//!
//! The server speaks HTTP/1.1, with TLS or behind a proxy that terminates TLS, and with TLS HTTP/2. Nothing that it
//! counts, logs or sends depends on the key that a client looks up: it never learns one.

mod access;
mod config;
mod connections;
mod error;
mod keys;
mod metrics;
mod operator;
mod page;
mod problem;
mod queue;
mod relay;
mod renewed;
mod routes;
mod state;
mod tables;
mod upkeep;

use std::{convert::Infallible, future::Future, io, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

pub use access::{
    caller::Caller,
    gateway::{Gateway, GatewayError, GatewayKey, read_gateway_keys, rotate, text_of_gateway_keys},
    tokens::{Scope, Token, TokenError, Tokens, read_tokens, text_of_tokens},
};
pub use config::{Clock, ServerConfig, Throttle};
pub use connections::tls::{Tls, TlsError, TlsFiles};
pub use error::ServerError;
pub use metrics::list::{METRICS, Metric, MetricKind};
pub use operator::{KeptBuild, KeptTable, Operator, OperatorError, Task, TaskProgress, TaskStatus, Upload};
pub use page::Page;
pub use relay::{RELAYED_AT_ONCE, Relayed, Uplink};
#[cfg(feature = "openapi")]
pub use routes::openapi;
pub use routes::{host_name, origin};
pub use tables::{Tables, parts::Parts};
pub use upkeep::{Background, Upkeep};

use connections::{
    connection,
    places::{ConnectionPlace, Connections},
};
use keys::Keys;
use routes::{Endpoints, Hosts, Origins};
use state::Server;

/// The interval at which the files of certificates, tokens and gateway keys are read again.
const LOOK: Duration = Duration::from_secs(1);
/// The OS errors of running out of file descriptors: ENFILE (the system) and EMFILE (the process).
const NO_FILE_LEFT: [i32; 2] = [23, 24];
/// The longest pause after a failed `accept`, for instance when file descriptors run out.
const MAX_ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// The listeners of a server, with what each needs.
pub struct Listeners {
    /// The listener for everybody.
    pub public: TcpListener,
    /// The TLS of `public`. Without it, `public` speaks plain HTTP.
    pub tls: Option<Arc<Tls>>,
    /// The tokens that callers need; `None` lets anyone ask.
    pub tokens: Option<Arc<Tokens>>,
    /// The gateway, if there is one. It opens requests that come to `public` through a relay.
    pub gateway: Option<Arc<Gateway>>,
    /// The way to the gateway, if `public` is a relay. A relay has no tables.
    pub uplink: Option<Arc<dyn Uplink>>,
    /// The page for browsers at `public`, if there is one.
    pub page: Option<Arc<dyn Page>>,
    /// The listener for health and metrics, if `public` is not to answer these. Its connections have their own limit.
    pub health: Option<TcpListener>,
    /// The listener for operators, with the operator that fulfils their requests. Callers need a token if the server has tokens.
    /// A listener that is not on loopback has the TLS of `public`.
    pub admin: Option<(TcpListener, Arc<dyn Operator>)>,
    /// The names ([`host_name`]) to which `public` and `admin` answer, beside those of loopback. If the list is empty, a listener
    /// that is not on loopback answers to every name.
    pub allowed_hosts: Vec<String>,
    /// The origins ([`origin`]) whose pages may look records up at `public` from a browser. If the list is empty, no page may.
    pub allowed_origins: Vec<String>,
}

impl From<TcpListener> for Listeners {
    fn from(public: TcpListener) -> Listeners {
        Listeners {
            public,
            tls: None,
            tokens: None,
            gateway: None,
            uplink: None,
            page: None,
            health: None,
            admin: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}

/// A listener with its TLS, its endpoints, and the names that it answers to, if these are limited.
type Listening = (TcpListener, Option<Arc<Tls>>, Endpoints, Option<Arc<Hosts>>);

impl Listeners {
    /// Splits into the listeners, each with its endpoints.
    fn with_endpoints(self) -> Vec<Listening> {
        let public = match (&self.uplink, &self.health) {
            (Some(_), _) => Endpoints::Relay,
            (None, Some(_)) => Endpoints::Tables,
            (None, None) => Endpoints::All,
        };
        let mut all = vec![(self.public, self.tls.clone(), public)];
        all.extend(self.health.map(|health| (health, None, Endpoints::Health)));
        all.extend(self.admin.map(|(admin, _)| {
            let tls = self.tls.filter(|_| !is_local(&admin));
            (admin, tls, Endpoints::Admin)
        }));
        let hosts = Arc::new(Hosts::new(self.allowed_hosts));
        all.into_iter()
            .map(|(listener, tls, endpoints)| {
                let hosts = hosts.clone();
                let hosts = Some(hosts).filter(|hosts| hosts.are_asked_for(is_local(&listener), endpoints));
                (listener, tls, endpoints, hosts)
            })
            .collect()
    }
}

/// Returns whether only this machine reaches a listener.
fn is_local(listener: &TcpListener) -> bool {
    listener.local_addr().is_ok_and(|address| address.ip().is_loopback())
}

/// Serves `tables` on `listeners` until `shutdown` resolves, then answers the requests in flight and returns. Tables may be added
/// or replaced while the server runs. No connection is accepted until the file of keys is checked.
///
/// # Errors
/// [`ServerError::Config`] and [`ServerError::KeyFile`] before any connection is accepted. [`ServerError::Drain`] if requests are
/// still unanswered [`ServerConfig::drain_timeout`] after the shutdown.
pub async fn run(
    listeners: impl Into<Listeners>,
    tables: Tables,
    config: ServerConfig,
    shutdown: impl Future,
) -> Result<(), ServerError> {
    config.check()?;
    let mut shutdown = pin!(shutdown);
    // A large file of keys takes a while to check, and connections wait in the backlog of the listener. A check may stop at any
    // time. The creation of a file is quick, and ends first.
    let exists = config.keys_path.as_ref().is_some_and(|path| path.exists());
    let keys = tokio::select! {
        biased;
        _ = &mut shutdown, if exists => return Ok(()),
        keys = Keys::open(&config) => keys?,
    };
    let listeners = listeners.into();
    let operator = listeners.admin.as_ref().map(|(_, operator)| operator.clone());
    let tokens = listeners.tokens.clone();
    let gateway = listeners.gateway.clone();
    let uplink = listeners.uplink.clone();
    let page = listeners.page.clone();
    let origins = Origins::new(listeners.allowed_origins.clone());
    let upkeep = tables.upkeep().clone();
    let server = Arc::new(Server::new(tables.clone(), config, keys, operator, tokens, gateway, page));
    let _background = start_background(&server, listeners.tls.clone());
    let (stop, stopped) = watch::channel(false);
    let mut accepting = JoinSet::new();
    for (listener, tls, endpoints, hosts) in listeners.with_endpoints() {
        let router = match (&uplink, endpoints) {
            (Some(uplink), Endpoints::Relay) => {
                routes::relay_router(server.clone(), uplink.clone(), origins.clone())
            }
            _ => routes::router(server.clone(), endpoints, hosts, origins.clone()),
        };
        let upkeep = upkeep.clone();
        let door = Door::new(listener, tls, endpoints, router, server.clone());
        let stopped = stopped.clone();
        accepting.spawn(async move {
            upkeep.keep(Background::Accept, || door.accept_all(stopped.clone())).await;
            door.into_connections()
        });
    }
    let _ = shutdown.await;
    server.stop();
    stop.send_replace(true);
    let drained = drain(accepting.join_all().await, server.config.drain_timeout).await;
    tables.keep_replaced(Duration::ZERO);
    drained
}

/// Returns a server without listeners, for callers in this process: the endpoints of tables, of health and of metrics, and the
/// background tasks, which end when their set is dropped. A caller puts the peer's address into each request, as
/// [`ConnectInfo`](axum::extract::ConnectInfo) of a [`SocketAddr`](std::net::SocketAddr). Time is that of the runtime, so that a
/// paused clock serves for a simulation.
///
/// # Errors
/// The errors of [`run`] before a connection is accepted.
pub async fn in_process(tables: &Tables, config: ServerConfig) -> Result<(Router, JoinSet<()>), ServerError> {
    config.check()?;
    let keys = Keys::open(&config).await?;
    let server = Arc::new(Server::new(tables.clone(), config, keys, None, None, None, None));
    let background = start_background(&server, None);
    Ok((routes::router(server, Endpoints::All, None, None), background))
}

/// Starts the background tasks of a server, and has its tables keep replaced epochs. The tasks end when the set is dropped.
fn start_background(server: &Arc<Server>, tls: Option<Arc<Tls>>) -> JoinSet<()> {
    let tables = &server.tables;
    tables.keep_replaced(server.config.epoch_window);
    let upkeep = tables.upkeep();
    let mut background = JoinSet::new();
    spawn(&mut background, upkeep, Background::Keys, {
        let server = server.clone();
        move || keys::tidy_up(server.clone())
    });
    spawn(&mut background, upkeep, Background::Epochs, {
        let tables = tables.clone();
        move || tables::drop_replaced(tables.clone())
    });
    spawn(&mut background, upkeep, Background::Mapped, {
        let tables = tables.clone();
        move || tables::watch_files(tables.clone())
    });
    let files = (tls, server.tokens.clone(), server.gateway.clone());
    spawn(&mut background, upkeep, Background::Files, move || renew(files.clone()));
    background
}

/// Starts a background task that never returns.
fn spawn<F: Future<Output = Infallible> + Send + 'static>(
    background: &mut JoinSet<()>,
    upkeep: &Upkeep,
    task: Background,
    start: impl FnMut() -> F + Send + 'static,
) {
    let upkeep = upkeep.clone();
    background.spawn(async move { match upkeep.keep(task, start).await {} });
}

/// The contents of files that are read again when they change.
type Files = (Option<Arc<Tls>>, Option<Arc<Tokens>>, Option<Arc<Gateway>>);

/// Reads certificates, tokens and the gateway's keys again as their files change. A half-written file is read again later.
async fn renew((tls, tokens, gateway): Files) -> Infallible {
    loop {
        tokio::time::sleep(LOOK).await;
        tls.iter().for_each(|tls| tls.take_up());
        tokens.iter().for_each(|tokens| tokens.take_up());
        gateway.iter().for_each(|gateway| gateway.take_up());
    }
}

/// A listener, with its connections. Both outlast a failure of the task that accepts.
struct Door {
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    router: Router,
    server: Arc<Server>,
    places: Arc<Connections>,
    connections: Mutex<JoinSet<()>>,
}

impl Door {
    fn new(
        listener: TcpListener,
        tls: Option<Arc<Tls>>,
        endpoints: Endpoints,
        router: Router,
        server: Arc<Server>,
    ) -> Door {
        let config = &server.config;
        let gauge = server.metrics.connections.clone();
        let is_public = matches!(endpoints, Endpoints::All | Endpoints::Tables | Endpoints::Relay);
        let limit = if is_public { config.max_connections } else { config.max_other_connections };
        let places = Connections::new(limit, config.share_of(limit), gauge);
        Door { listener, tls, router, server, places, connections: Mutex::default() }
    }

    /// Serves connections until `stopped` turns true.
    async fn accept_all(&self, mut stopped: watch::Receiver<bool>) {
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => None,
                accepted = self.accept() => Some(accepted),
            };
            let Some((tcp, place)) = accepted else { return };
            let tls = self.tls.clone();
            let server = self.server.clone();
            let router = self.router.clone();
            let connection = connection::serve(tcp, tls, server, router, place, stopped.clone());
            let mut connections = self.connections.lock();
            while connections.try_join_next().is_some() {}
            connections.spawn(connection);
        }
    }

    /// Waits for a connection, then for a free slot. Tries again after an error.
    async fn accept(&self) -> (TcpStream, ConnectionPlace) {
        let mut pause = Duration::from_millis(10);
        loop {
            let error = match self.listener.accept().await {
                Ok((tcp, peer)) => match self.places.place(peer.ip().into()).await {
                    Some(place) => return (tcp, place),
                    // A refusal in words would have to wait for the TLS handshake.
                    None if self.tls.is_some() => {
                        drop(tcp);
                        continue;
                    }
                    None => {
                        connection::refuse(&tcp);
                        continue;
                    }
                },
                Err(error) => error,
            };
            // An idle connection frees its descriptor at once.
            if is_out_of_files(&error) && self.places.close_idle().await {
                tracing::debug!(%error, "out of file descriptors: closed an idle connection");
                continue;
            }
            tracing::warn!(%error, "cannot accept a connection; trying again after a pause");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_ACCEPT_PAUSE);
        }
    }

    /// Closes the listener. Returns the connections that are still open.
    fn into_connections(self) -> JoinSet<()> {
        self.connections.into_inner()
    }
}

fn is_out_of_files(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| NO_FILE_LEFT.contains(&code))
}

/// Waits at most `limit` for the connections to end, and closes the others. Fails with [`ServerError::Drain`] if there are
/// others.
async fn drain(mut connections: Vec<JoinSet<()>>, limit: Duration) -> Result<(), ServerError> {
    let all = async {
        for connections in &mut connections {
            while connections.join_next().await.is_some() {}
        }
    };
    if tokio::time::timeout(limit, all).await.is_ok() {
        return Ok(());
    }
    let unfinished = connections.iter().map(JoinSet::len).sum();
    for mut connections in connections {
        connections.shutdown().await;
    }
    Err(ServerError::Drain { unfinished })
}
