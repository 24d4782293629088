//! A server on a free port, in a thread with its own runtime.

use std::{
    net::SocketAddr,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use hush_engine::Device;
use hush_protocol::Name;
use hush_server::{Listeners, ServerConfig, ServerError, Tables, run};
use tokio::{net::TcpListener, sync::oneshot};

use crate::{client::Client, engine::SumEngine};

pub(crate) const EPOCH_BYTE: u8 = 5;
pub(crate) const EPOCH: [u8; 32] = [EPOCH_BYTE; 32];

/// Returns the defaults, but with the whole share for one client: all tests have one address.
pub(crate) fn config() -> ServerConfig {
    ServerConfig { client_share: 100, max_wait: Duration::MAX, ..ServerConfig::default() }
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    /// The address of health and metrics.
    health: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
}

impl TestServer {
    pub(crate) fn start(tables: Tables, config: ServerConfig) -> TestServer {
        Self::start_with(tables, config, false)
    }

    /// Starts a server, with another listener for health and metrics if `with_health`.
    pub(crate) fn start_with(tables: Tables, config: ServerConfig, with_health: bool) -> TestServer {
        Self::start_as(tables, config, with_health, |_| {})
    }

    /// Starts a server with other options of a listener.
    pub(crate) fn start_as(
        tables: Tables,
        config: ServerConfig,
        with_health: bool,
        adjust: impl FnOnce(&mut Listeners) + Send + 'static,
    ) -> TestServer {
        let (stop, stopped) = oneshot::channel();
        let (bound, address) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.unwrap().block_on(async {
                let public = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = public.local_addr().unwrap();
                let mut listeners = Listeners::from(public);
                adjust(&mut listeners);
                if with_health {
                    listeners.health = Some(TcpListener::bind("127.0.0.1:0").await.unwrap());
                }
                let health = listeners.health.as_ref().map(|health| health.local_addr().unwrap());
                bound.send((address, health.unwrap_or(address))).unwrap();
                run(listeners, tables, config, stopped).await
            })
        });
        let (address, health) = address.recv().unwrap();
        TestServer { address, health, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns a server with one table, `t`, of epoch [`EPOCH`].
    pub(crate) fn with_engine(config: ServerConfig) -> (TestServer, Arc<SumEngine>) {
        Self::with_engine_on(Device::Cpu, config)
    }

    /// Starts a server with an engine on `device`.
    pub(crate) fn with_engine_on(device: Device, config: ServerConfig) -> (TestServer, Arc<SumEngine>) {
        let engine = Arc::new(SumEngine::new(EPOCH_BYTE).on(device));
        let tables = Tables::new();
        tables.insert(&name("t"), engine.clone()).unwrap();
        (TestServer::start(tables, config), engine)
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Returns a client of health and metrics.
    pub(crate) fn health_client(&self) -> Client {
        Client::connect(self.health)
    }

    /// Tells the server to stop, without waiting for it.
    pub(crate) fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Waits for the server to return.
    pub(crate) fn join(mut self) -> Result<(), ServerError> {
        self.stop();
        self.thread.take().unwrap().join().unwrap()
    }

    /// Waits for the server to return although nobody has told it to.
    pub(crate) fn start_error(mut self) -> ServerError {
        self.thread.take().unwrap().join().unwrap().unwrap_err()
    }

    /// Returns the value of a metric, given its name and labels as they stand in the text.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let text = String::from_utf8(self.health_client().get("/metrics").body).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        Some(value.parse().unwrap())
    }

    /// Waits until a metric has a value: the way to see from outside that requests have arrived.
    pub(crate) fn wait_for_metric(&self, name: &str, value: f64) {
        for _ in 0..10_000 {
            if self.metric(name) == Some(value) {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        panic!("{name} is {:?}, expected {value}", self.metric(name));
    }

    /// Waits until `connections` are open, beside the one that asks for metrics.
    pub(crate) fn wait_for_connections(&self, connections: usize) {
        self.wait_for_metric("hush_connections", connections as f64 + 1.0);
    }

    pub(crate) fn wait_for_queue(&self, queries: usize) {
        self.wait_for_metric("hush_queue_depth{table=\"t\"}", queries as f64);
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop();
        // A test that fails may leave its engine held, and the server would wait for it.
        if let Some(thread) = self.thread.take().filter(|_| !thread::panicking()) {
            let _ = thread.join();
        }
    }
}
