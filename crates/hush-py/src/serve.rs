//! A server in this process, for notebooks and tests.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
};

use hush_cpu::Cpu;
use hush_engine::{Backends, Silent};
use hush_server::{ServerConfig, Tables};
use hush_store::snapshot::Verify;
use pyo3::prelude::*;
use tokio::{net::TcpListener, runtime::Runtime, sync::oneshot};

use crate::{error::Kind, interrupt::interruptible};

/// A server on loopback that goes on until it is stopped, or the process ends.
#[pyclass(frozen)]
pub(crate) struct Server {
    address: String,
    running: Mutex<Option<Running>>,
}

struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Running {
    fn stop(self) {
        // A server that has ended already needs not be told.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

type Failure = (Kind, String);

fn start(tables: Vec<(String, PathBuf)>, port: u16, threads: usize) -> Result<Server, Failure> {
    let failed = |kind: Kind| move |error: &dyn std::fmt::Display| (kind, error.to_string());
    let cpu = Cpu::new(threads).map_err(|error| failed(Kind::Hush)(&error))?;
    let backends = Backends::cpu_only(Arc::new(cpu));
    let served = Tables::new();
    for (name, path) in tables {
        let engine = hush_engine::open(&path, Verify::Full, &backends, &Silent);
        let engine = engine.map_err(|error| failed(Kind::Input)(&error))?;
        served.insert(&name, engine).map_err(|error| failed(Kind::Option)(&error))?;
    }
    let runtime = Runtime::new().map_err(|error| failed(Kind::Hush)(&error))?;
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", port)));
    let listener =
        listener.map_err(|error| (Kind::Option, format!("cannot listen on port {port}: {error}")))?;
    let address = listener.local_addr().map_err(|error| failed(Kind::Hush)(&error))?;
    let (stop, stopped) = oneshot::channel::<()>();
    // All of its clients are this machine's.
    let config = ServerConfig { client_share: 100, ..ServerConfig::default() };
    let thread = thread::spawn(move || {
        if let Err(error) = runtime.block_on(hush_server::run(listener, served, config, stopped)) {
            eprintln!("hushdb: the server has ended: {error}");
        }
    });
    Ok(Server { address: format!("http://{address}"), running: Mutex::new(Some(Running { stop, thread })) })
}

#[pymethods]
impl Server {
    /// Serves tables, by their names, on a port of 127.0.0.1; on a free one if it is 0.
    #[new]
    fn new(py: Python<'_>, tables: Vec<(String, PathBuf)>, port: u16, threads: usize) -> PyResult<Self> {
        let started = interruptible(py, move || start(tables, port, threads), || ())?;
        started.map_err(|(kind, error)| kind.raised(py, error))
    }

    /// Its URL.
    #[getter]
    fn url(&self) -> String {
        self.address.clone()
    }

    /// Answers what is in flight, and ends. Nothing happens if it has ended.
    fn stop(&self, py: Python<'_>) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| running.map(Running::stop));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody waits for it here: an interpreter that ends holds its lock.
        if let Some(running) = self.running.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = running.stop.send(());
        }
    }
}
