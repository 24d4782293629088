//! `hushdb serve`.

use std::{
    error::Error,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use hush_engine::{BackendChoice, Backends, OpenError, Progress};
use hush_server::{Listeners, ServerConfig, Tables, Throttle};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use super::{backends, bar::Bar, inspect::VerifyArg, key_file, tell_unused_gpu, threads};
use crate::report;

/// Serve tables over HTTP.
#[derive(Args)]
pub(crate) struct ServeArgs {
    /// Folders of tables.
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:7700", value_name = "ADDRESS")]
    listen: String,
    /// Another address to listen on for /livez, /readyz and /metrics, which --listen does not answer then.
    #[arg(long, value_name = "ADDRESS")]
    listen_health: Option<String>,
    /// Name of a table, in the order of the folders; a folder's own name if not given.
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    /// How much of a table to check before it is served.
    #[arg(long, value_enum, default_value = "full")]
    verify: VerifyArg,
    /// Threads to scan with; one for every core if not given.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// What computes the answers: auto, cpu or cuda. auto is the GPU, if there is one, for tables that fit into its memory.
    #[arg(long, value_name = "NAME", default_value_t)]
    backend: BackendChoice,
    /// How long a batch stays open for more queries when some had to wait, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 2)]
    window: u64,
    /// Queries that may wait for a scan of one table.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    max_queue: usize,
    /// What one client address may have of connections, of waiting queries, of memory for requests and of the room for keys, in
    /// percent. Behind a proxy, where all clients have one address: 100.
    #[arg(long, value_name = "PERCENT", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=100))]
    client_share: u32,
    /// File for the evaluation keys that clients upload, if a table needs any; by default
    /// `hushdb/hushdb-keys.redb` in $XDG_STATE_HOME or ~/.local/state.
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// Days after which keys that nobody uses are deleted.
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    key_lifetime: u32,
    /// Bytes of keys to keep; those that were used longest ago go first.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 30)]
    max_key_bytes: u64,
    /// Clients whose keys are ready in memory at most: about 2.8 MB each (PACK_M31), 4.5 MB (ONION_M31) or 1.9 MB (ONION_S).
    #[arg(long, value_name = "N", default_value = "256")]
    open_keys: NonZeroUsize,
    /// Queries a second that one client address may make; no limit if not given.
    #[arg(long, value_name = "N")]
    rate_limit: Option<u32>,
}

pub(crate) fn run(args: ServeArgs) -> Result<(), Box<dyn Error>> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let names = names(&args)?;
    let config = ServerConfig {
        window: Duration::from_millis(args.window),
        max_queue: args.max_queue,
        client_share: args.client_share,
        keys_path: key_file::path(args.keys.as_deref(), &args.dirs)?,
        key_lifetime: Duration::from_secs(u64::from(args.key_lifetime) * 24 * 3600),
        max_key_bytes: args.max_key_bytes,
        open_keys: args.open_keys.get(),
        throttle: args
            .rate_limit
            .map(|rate| Throttle { queries_per_second: rate, burst: rate.saturating_mul(4) }),
        ..ServerConfig::default()
    };
    let backends = backends(args.backend, threads(args.threads))?.for_clients(args.open_keys.get());
    let runtime = tokio::runtime::Runtime::new()?;
    let outcome = runtime.block_on(serve(args, names, config, backends));
    // A table that is still loading does not hold up the end.
    runtime.shutdown_background();
    outcome
}

async fn serve(
    args: ServeArgs,
    names: Vec<String>,
    config: ServerConfig,
    backends: Backends,
) -> Result<(), Box<dyn Error>> {
    let public = listen(&args.listen, "--listen").await?;
    let health = match &args.listen_health {
        Some(address) => Some(listen(address, "--listen-health").await?),
        None => None,
    };
    let tables = Tables::new();
    for name in &names {
        tables.announce(name)?;
    }
    let cpu = backends.cpu();
    eprintln!("listening on http://{} ({} threads, {})", public.local_addr()?, cpu.threads(), cpu.level());
    if let Some(health) = &health {
        eprintln!("health and metrics on http://{}", health.local_addr()?);
    }
    tell_unused_gpu(&backends);
    if let Some(path) = &config.keys_path
        && let Ok(file) = path.metadata()
    {
        eprintln!("checking the keys of clients in {} ({})", path.display(), report::bytes(file.len()));
    }
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let loading = load_all(tables.clone(), args.dirs, names, args.verify, backends);
    let (failed, failure) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        if let Err(error) = loading.await {
            // The receiver is gone only if the server has stopped already.
            let _ = failed.send(error);
        }
    });
    let mut load_error = None;
    let shutdown = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            Ok(error) = failure => load_error = Some(error),
        }
        eprintln!("stopping: answering what is in flight");
    };
    hush_server::run(Listeners { public, health }, tables, config, shutdown).await?;
    load_error.map_or(Ok(()), |error| Err(error.into()))
}

async fn listen(address: &str, option: &str) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| {
        format!("cannot listen on {address}: {error}: choose another {option}, or stop what uses it")
    })
}

/// Loads the tables, one after the other. One that fails is told as failed, and the others go on.
///
/// # Errors
/// If there is none in the end: why.
async fn load_all(
    tables: Tables,
    dirs: Vec<PathBuf>,
    names: Vec<String>,
    verify: VerifyArg,
    backends: Backends,
) -> Result<(), String> {
    let (backends, several) = (Arc::new(backends), names.len() > 1);
    let mut failures = Vec::new();
    for (dir, name) in dirs.into_iter().zip(&names) {
        let (loading, own_name, backends) = (tables.clone(), name.clone(), backends.clone());
        let load = move || load(&loading, &dir, &own_name, verify, &backends);
        let outcome = tokio::task::spawn_blocking(load).await;
        let Err(failure) = outcome.unwrap_or_else(|panic| Err(Failure::of_program(panic))) else { continue };
        if !several {
            return Err(failure.error);
        }
        eprintln!("{name}: not served: {}", failure.error);
        tables.fail(name, failure.public).map_err(|error| error.to_string())?;
        failures.push(format!("{name}: {}", failure.error));
    }
    if failures.len() < names.len() { Ok(()) } else { Err(failures.join("; ")) }
}

/// Why a table is not served.
struct Failure {
    /// For who runs the server.
    error: String,
    /// For everybody.
    public: &'static str,
}

impl Failure {
    fn of_program(error: impl ToString) -> Self {
        Self { error: error.to_string(), public: "the server failed to load it" }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self { error: error.to_string(), public: error.public_reason() }
    }
}

fn load(
    tables: &Tables,
    dir: &Path,
    name: &str,
    verify: VerifyArg,
    backends: &Backends,
) -> Result<(), Failure> {
    let start = Instant::now();
    let loading = Loading { name, bar: Bar::new() };
    let engine = hush_engine::open(dir, verify.into(), backends, &loading)?;
    loading.bar.finish();
    let served = engine.served().clone();
    tables.insert(name, engine).map_err(Failure::of_program)?;
    // Not before it is: who reads this may ask at once.
    eprintln!(
        "{name}: {} from {} on {}, ready in {:.1} s; query {}, answer {}",
        served.protocol,
        dir.display(),
        served.place,
        start.elapsed().as_secs_f64(),
        report::bytes(served.query.total() as u64),
        report::bytes(served.answer_bytes as u64)
    );
    Ok(())
}

/// What is said while a table is loaded: its plan a line at a time, the stage at hand.
struct Loading<'a> {
    name: &'a str,
    bar: Bar,
}

impl Progress for Loading<'_> {
    fn start(&self, stage: &str, total: u64, unit: &'static str) {
        self.bar.start(&format!("{}: {stage}", self.name), total, unit);
    }

    fn advance(&self, units: u64) {
        self.bar.advance(units);
    }

    fn note(&self, line: &str) {
        self.bar.note(&format!("{}: {line}", self.name));
    }
}

/// A name for every folder, all different.
fn names(args: &ServeArgs) -> Result<Vec<String>, String> {
    if args.name.len() > args.dirs.len() {
        return Err(format!(
            "{} names for {} folders: give at most one each",
            args.name.len(),
            args.dirs.len()
        ));
    }
    let own = |dir: &PathBuf| {
        let path = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
        path.file_name().map_or_else(|| "table".into(), |name| name.to_string_lossy().into_owned())
    };
    let names: Vec<String> = args
        .dirs
        .iter()
        .enumerate()
        .map(|(index, dir)| args.name.get(index).cloned().unwrap_or_else(|| own(dir)))
        .collect();
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            return Err(format!("two tables are called {name}: tell them apart with --name"));
        }
    }
    Ok(names)
}
