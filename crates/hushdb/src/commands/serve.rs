//! `hushdb serve`.

use std::{error::Error, net::ToSocketAddrs, num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};

use clap::{Args, ValueEnum};
use hush_engine::{BackendChoice, Backends, MemoryChoice};
use hush_protocol::Name;
use hush_server::{
    Gateway, Listeners, Operator, Page, ServerConfig, Tables, Throttle, Tls, TlsFiles, Tokens, host_name,
};
use hush_store::snapshot::{Snapshot, Verify};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use super::{backends, inspect::VerifyArg, key_file, tell_unused_gpu, threads};
use crate::{
    logs::{self, LogFormat},
    report,
};
use compaction::Compaction;
use folders::Folders;
use source::Source;
#[cfg(feature = "ingest")]
pub use source::tables_cache;

#[cfg_attr(not(feature = "ingest"), path = "serve/no_compaction.rs")]
mod compaction;
mod folders;
#[cfg_attr(not(feature = "page"), path = "serve/no_page.rs")]
mod page;
#[cfg_attr(not(feature = "ingest"), path = "serve/no_source.rs")]
mod source;
#[cfg(feature = "ingest")]
mod tasks;

/// How often the folders of tables are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Whether there is a page for browsers.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PageArg {
    /// Where only this machine reaches it.
    Auto,
    /// Yes.
    On,
    /// No.
    Off,
}

/// Serve tables over HTTP.
#[derive(Args)]
#[command(after_help = "\
Every option is also a key of --config FILE, by its name without dashes, and an environment variable, as HUSHDB_MAX_QUEUE; lists \
have commas there. The command line comes first, then the environment, then the file.")]
pub(crate) struct ServeArgs {
    /// Folders of tables; also s3://, gs://, az:// and https://, of which a copy is served (--cache).
    #[arg(id = "tables", value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Where copies of tables are kept that are fetched; by default `hushdb/tables` in $XDG_CACHE_HOME or ~/.cache.
    #[cfg_attr(not(feature = "ingest"), arg(skip))]
    #[cfg_attr(feature = "ingest", arg(long, value_name = "DIR"))]
    cache: Option<PathBuf>,
    /// File of settings in TOML: every option here, by its name without dashes, and `tables`.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:7700", value_name = "ADDRESS")]
    listen: String,
    /// Speak TLS on --listen, with the certificate in FILE (PEM, and after it those that lead to one that clients trust). The files
    /// are read again when they change, and on SIGHUP.
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, in PEM.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Answer only clients with a certificate that one of those in FILE (PEM) has signed.
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// File of the tokens with which clients may ask (`hushdb token`). It is read again when it changes, and on SIGHUP.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Anyone who reaches the server may ask. Where others than this machine do, there are either --tokens or this.
    #[arg(long, conflicts_with = "tokens")]
    open: bool,
    /// Another address to listen on for /livez, /readyz and /metrics, which --listen does not answer then.
    #[arg(long, value_name = "ADDRESS")]
    listen_health: Option<String>,
    /// Address to listen on for the admin endpoints, which take tables up, compact them and do tasks. Whoever reaches it may ask;
    /// with --tokens, whose token has the scope admin. Where others than this machine reach it, it needs both --tokens and
    /// --tls-cert.
    #[arg(long, value_name = "ADDRESS")]
    listen_admin: Option<String>,
    /// Folder in which the server keeps tables of its own: tasks of the admin endpoints build, change and remove them (`hushdb
    /// admin`).
    #[cfg_attr(not(feature = "ingest"), arg(skip))]
    #[cfg_attr(feature = "ingest", arg(long, value_name = "DIR"))]
    data: Option<PathBuf>,
    /// Source that tasks may fetch from; may be repeated: s3://bucket/prefix, gs://bucket/prefix, az://container/prefix,
    /// https://host/prefix, http://host/prefix or postgres://host/database, with the credentials of the server's environment;
    /// https:// for all web servers at public addresses, without them; or none. If not given https://. Uploads are always taken.
    #[cfg_attr(not(feature = "ingest"), arg(skip))]
    #[cfg_attr(feature = "ingest", arg(long, value_name = "URL"))]
    task_source: Vec<String>,
    /// Names by which this server is reached, beside localhost and its loopback addresses. A proxy that passes on the names that
    /// its clients ask for needs them, if the server is on loopback. Elsewhere a server answers to any name, unless this is given.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_parser = host_name)]
    allowed_hosts: Vec<String>,
    /// Whether --listen shows people with a browser a page, where they look records up and see what the server sees of it: on, off,
    /// or, as auto, where only this machine reaches it.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto", num_args = 0..=1, default_missing_value = "on")]
    page: PageArg,
    /// Name of a table, in the order of the folders; a folder's own name if not given.
    #[arg(long, value_name = "NAME")]
    name: Vec<Name>,
    /// Answer what comes through a relay too (Oblivious HTTP): the keys that `hushdb gateway-key` makes. Such look-ups have the
    /// relay's address, and so share what one address may have.
    #[arg(long, value_name = "FILE")]
    gateway_keys: Option<PathBuf>,
    /// How the log looks, on standard error.
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
    /// URL of a collector of OpenTelemetry, as http://127.0.0.1:4318, which gets the log, and a trace of every request (OTLP over
    /// HTTP). In programs with the feature otlp.
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// How much of a table to check before it is served.
    #[arg(long, value_enum, default_value = "full")]
    verify: VerifyArg,
    /// Take up a table when another one, or its next epoch, is put in its folder. Without it, on SIGHUP alone.
    #[arg(long)]
    watch: bool,
    /// Fold the changes of a table into a new base, in the background, when so many percent of the room for them are taken.
    #[cfg_attr(not(feature = "ingest"), arg(skip))]
    #[cfg_attr(feature = "ingest", arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(1..=100)))]
    compact_at: Option<u64>,
    /// Threads to scan with; one for every core if not given.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// What computes the answers: auto, cpu or cuda. auto is the GPU, if there is one, for tables that fit into its memory.
    #[arg(long, value_name = "NAME", default_value_t)]
    backend: BackendChoice,
    /// How the scanned files of a table are in memory: auto, resident or mapped. resident is the server's own memory, which nobody
    /// else changes and which is faster to scan. mapped is the system's cache of files, for tables beyond memory and for quick
    /// starts. auto is resident where there is room.
    #[arg(long, value_name = "NAME", default_value_t)]
    memory: MemoryChoice,
    /// How long a batch stays open for more queries when some had to wait, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 2)]
    window: u64,
    /// Queries that may wait for a scan of one table.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    max_queue: usize,
    /// How long a query may wait for its scan, in milliseconds, by what the last scans took: one that would wait longer is refused
    /// at once, and told when to come again. A full batch may wait in any case.
    #[arg(long, value_name = "MS", default_value_t = 100)]
    max_wait: u64,
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

/// Looks whether a server with these settings could start: files are read, and nothing is listened on.
///
/// # Errors
/// What is wrong.
pub(crate) fn check(args: &ServeArgs) -> Result<(), Box<dyn Error>> {
    names(args)?;
    admin(args)?;
    #[cfg(feature = "ingest")]
    tasks::sources(&args.task_source)?;
    config(args)?.check()?;
    tls_of(args)?;
    tokens(args)?;
    gateway(args)?;
    shown(args)?;
    for (dir, source) in args.dirs.iter().zip(sources(args)?) {
        if source.is_none() {
            Snapshot::open(dir, Verify::Header)?;
        }
    }
    Ok(())
}

pub(crate) fn run(args: ServeArgs) -> Result<(), Box<dyn Error>> {
    let _logs = logs::start(args.log_format, args.otlp.as_deref())?;
    let (names, config) = (names(&args)?, config(&args)?);
    let backends = backends(args.backend, threads(args.threads))?.for_clients(args.open_keys.get());
    let backends = backends.with_memory(args.memory);
    let runtime = tokio::runtime::Runtime::new()?;
    let outcome = runtime.block_on(serve(args, names, config, backends));
    // A table that is still loading does not hold up the end.
    runtime.shutdown_background();
    outcome
}

/// Limits and timeouts.
fn config(args: &ServeArgs) -> Result<ServerConfig, Box<dyn Error>> {
    Ok(ServerConfig {
        window: Duration::from_millis(args.window),
        max_queue: args.max_queue,
        max_wait: Duration::from_millis(args.max_wait),
        client_share: args.client_share,
        keys_path: key_file::path(args.keys.as_deref(), &args.dirs)?,
        key_lifetime: Duration::from_secs(u64::from(args.key_lifetime) * 24 * 3600),
        max_key_bytes: args.max_key_bytes,
        open_keys: args.open_keys.get(),
        throttle: args
            .rate_limit
            .map(|rate| Throttle { queries_per_second: rate, burst: rate.saturating_mul(4) }),
        ..ServerConfig::default()
    })
}

/// What a server needs whose tables the program around it has ([`crate::embed`]).
#[cfg(feature = "ingest")]
pub(crate) struct Prepared {
    pub(crate) listeners: Listeners,
    pub(crate) config: ServerConfig,
    /// Where it listens.
    pub(crate) url: String,
}

/// Listens, as the settings say; those that are about folders of tables are none here.
///
/// # Errors
/// What is wrong with a setting, or an address that cannot be listened on.
#[cfg(feature = "ingest")]
pub(crate) async fn prepared(args: &ServeArgs) -> Result<Prepared, Box<dyn Error>> {
    let of_folders = [
        ("config", args.config.is_some()),
        ("listen-admin", args.listen_admin.is_some()),
        ("data", args.data.is_some()),
        ("task-source", !args.task_source.is_empty()),
        ("cache", args.cache.is_some()),
        ("compact-at", args.compact_at.is_some()),
        ("name", !args.name.is_empty()),
        ("watch", args.watch),
        // The program says how many, and where.
        ("threads", args.threads.is_some()),
    ];
    if let Some((name, _)) = of_folders.iter().find(|(_, is_said)| *is_said) {
        return Err(format!("{name} is for servers of folders: leave it out here").into());
    }
    let config = config(args)?;
    config.check()?;
    let (listeners, url) = listeners(args).await?;
    Ok(Prepared { listeners, config, url })
}

/// What everybody reaches, and the URL of it; the admin endpoints, which belong to tables in folders, aside.
async fn listeners(args: &ServeArgs) -> Result<(Listeners, String), Box<dyn Error>> {
    let (tls, tokens, gateway, page) = (tls_of(args)?, tokens(args)?, gateway(args)?, shown(args)?);
    let public = listen(&args.listen, "--listen").await?;
    let health = listen_health(args.listen_health.as_deref()).await?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", public.local_addr()?);
    let allowed_hosts = args.allowed_hosts.clone();
    let admin = None;
    Ok((Listeners { public, tls, tokens, gateway, uplink: None, page, health, admin, allowed_hosts }, url))
}

async fn serve(
    args: ServeArgs,
    names: Vec<Name>,
    config: ServerConfig,
    backends: Backends,
) -> Result<(), Box<dyn Error>> {
    let (mut listeners, url) = listeners(&args).await?;
    let admin = match admin(&args)? {
        Some(address) => Some(listen(address, "--listen-admin").await?),
        None => None,
    };
    let tables = Tables::new();
    let cpu = backends.cpu();
    eprintln!("listening on {url} ({} threads, {})", cpu.threads(), cpu.level());
    if listeners.page.is_some() {
        eprintln!("a page for browsers at {url}/");
    }
    tell_health(listeners.health.as_ref())?;
    if let Some(admin) = &admin {
        let address = admin.local_addr()?;
        let scheme = if address.ip().is_loopback() { "http" } else { "https" };
        eprintln!("admin endpoints on {scheme}://{address}");
    }
    tell_unused_gpu(&backends);
    if let Some(path) = &config.keys_path
        && let Ok(file) = path.metadata()
    {
        eprintln!("checking the keys of clients in {} ({})", path.display(), report::bytes(file.len()));
    }
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let compaction = Arc::new(Compaction::new(args.compact_at, threads(args.threads)));
    let folders =
        Arc::new(Folders::new(&tables, args.verify.into(), backends, &compaction, args.data.is_some()));
    for ((dir, source), name) in args.dirs.iter().zip(sources(&args)?).zip(&names) {
        match source {
            Some(source) => folders.add_copy(name, source)?,
            None => folders.add(name, dir.clone())?,
        }
    }
    let operator = operator(&args, &folders)?;
    listeners.admin = admin.map(|admin| (admin, operator));
    let mut hang_up = signal(SignalKind::hangup())?;
    let (failed, failure) = tokio::sync::oneshot::channel();
    let (certificates, granted, sealed) =
        (listeners.tls.clone(), listeners.tokens.clone(), listeners.gateway.clone());
    tokio::spawn(async move {
        if let Err(error) = folders.clone().load_all().await {
            // The receiver is gone only if the server has stopped already.
            let _ = failed.send(error);
            return;
        }
        loop {
            folders.compact_full();
            let look = async {
                match args.watch {
                    true => tokio::time::sleep(LOOK).await,
                    false => std::future::pending().await,
                }
            };
            let mut asked = false;
            tokio::select! {
                () = look => {}
                _ = hang_up.recv() => {
                    asked = true;
                    certificates.iter().for_each(|tls| tls.take_up());
                    granted.iter().for_each(|tokens| tokens.take_up());
                    sealed.iter().for_each(|gateway| gateway.take_up());
                }
                () = compaction.done() => {}
            }
            folders.clone().take_up(asked).await;
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
    hush_server::run(listeners, tables, config, shutdown).await?;
    load_error.map_or(Ok(()), |error| Err(error.into()))
}

fn tls_of(args: &ServeArgs) -> Result<Option<Arc<Tls>>, String> {
    tls(args.tls_cert.as_ref(), args.tls_key.as_ref(), args.tls_client_ca.as_ref())
}

/// What --listen speaks, if not plain HTTP.
pub(super) fn tls(
    cert: Option<&PathBuf>,
    key: Option<&PathBuf>,
    client_ca: Option<&PathBuf>,
) -> Result<Option<Arc<Tls>>, String> {
    let (cert, key) = match (cert, key) {
        (Some(cert), Some(key)) => (cert, key),
        (None, None) if client_ca.is_none() => return Ok(None),
        (Some(_), None) => return Err("--tls-cert needs the private key too: --tls-key".into()),
        (None, _) => return Err("a TLS server shows a certificate: --tls-cert and --tls-key".into()),
    };
    let files = TlsFiles { cert: cert.clone(), key: key.clone(), client_ca: client_ca.cloned() };
    Tls::open(files).map(Some).map_err(|error| format!("no TLS: {error}"))
}

/// What opens requests that come through a relay.
fn gateway(args: &ServeArgs) -> Result<Option<Arc<Gateway>>, String> {
    args.gateway_keys.as_deref().map(Gateway::open).transpose().map_err(|error| error.to_string())
}

/// Who does what the admin endpoints are asked for.
#[cfg(feature = "ingest")]
fn operator(args: &ServeArgs, folders: &Arc<Folders>) -> Result<Arc<dyn Operator>, String> {
    let Some(data) = &args.data else { return Ok(folders.clone()) };
    let sources = tasks::sources(&args.task_source)?;
    let tasks = tasks::Tasks::open(data, folders, threads(args.threads), sources)?;
    tasks.start();
    Ok(tasks)
}

/// Who does what the admin endpoints are asked for: without the feature, there are no tasks.
#[cfg(not(feature = "ingest"))]
fn operator(_: &ServeArgs, folders: &Arc<Folders>) -> Result<Arc<dyn Operator>, String> {
    Ok(folders.clone())
}

/// Who may ask, which has to be said of a server that others than this machine reach.
fn tokens(args: &ServeArgs) -> Result<Option<Arc<Tokens>>, String> {
    let address = &args.listen;
    if args.tokens.is_none() && !args.open && others_reach(address) {
        return Err(format!(
            "others than this machine reach {address}, and any of them may ask: name a file of those who may with \
             --tokens (hushdb token create makes one), or say --open"
        ));
    }
    args.tokens.as_deref().map(Tokens::open).transpose().map_err(|error| error.to_string())
}

/// The page, if there is to be one.
fn shown(args: &ServeArgs) -> Result<Option<Arc<dyn Page>>, String> {
    let page = match args.page {
        PageArg::On => true,
        PageArg::Auto => !others_reach(&args.listen),
        PageArg::Off => false,
    };
    let page = page.then(|| page::page(threads(args.threads))).flatten();
    if page.is_none() && args.page == PageArg::On {
        return Err("this program has no page: 'make build' makes one that has".into());
    }
    Ok(page)
}

/// Whether others than this machine reach an address. One that is none is told by who listens there.
fn others_reach(address: &str) -> bool {
    address.to_socket_addrs().into_iter().flatten().any(|to| !to.ip().is_loopback())
}

/// Where the admin endpoints are: from elsewhere for tokens alone, and under TLS, which hides them.
fn admin(args: &ServeArgs) -> Result<Option<&String>, String> {
    let address = args.listen_admin.as_ref();
    match address.filter(|address| others_reach(address)) {
        Some(address) if args.tokens.is_none() || args.tls_cert.is_none() => Err(format!(
            "others than this machine reach {address}, where tables are built and removed: add --tokens and --tls-cert, or choose a \
             loopback --listen-admin, as 127.0.0.1:7701"
        )),
        _ => Ok(address),
    }
}

/// Health and metrics, if they have an address of their own.
pub(super) async fn listen_health(address: Option<&str>) -> Result<Option<TcpListener>, Box<dyn Error>> {
    let Some(address) = address else { return Ok(None) };
    Ok(Some(listen(address, "--listen-health").await?))
}

/// Says where health and metrics are, if they have an address of their own.
pub(super) fn tell_health(health: Option<&TcpListener>) -> Result<(), Box<dyn Error>> {
    if let Some(health) = health {
        eprintln!("health and metrics on http://{}", health.local_addr()?);
    }
    Ok(())
}

pub(super) async fn listen(address: &str, option: &str) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| {
        format!("cannot listen on {address}: {error}: choose another {option}, or stop what uses it")
    })
}

/// Where each table comes from, if its folder is a copy.
fn sources(args: &ServeArgs) -> Result<Vec<Option<Source>>, String> {
    args.dirs.iter().map(|place| Source::of(place, args.cache.as_deref())).collect()
}

/// A name for every table, all different.
fn names(args: &ServeArgs) -> Result<Vec<Name>, String> {
    if args.dirs.is_empty() && args.data.is_none() {
        return Err(
            "which tables? name the folders that hushdb build made, or with --data one for tables to come"
                .into(),
        );
    }
    if args.data.is_some() && args.listen_admin.is_none() {
        return Err(
            "tables come to --data by tasks of the admin endpoints: say where with --listen-admin".into()
        );
    }
    if args.name.len() > args.dirs.len() {
        return Err(format!(
            "{} names for {} folders: give at most one each",
            args.name.len(),
            args.dirs.len()
        ));
    }
    let own = |dir: &PathBuf| Name::last_of(&std::path::absolute(dir).unwrap_or_else(|_| dir.clone()));
    let sources = sources(args)?;
    let names = args.dirs.iter().zip(&sources).enumerate().map(|(index, (dir, source))| {
        let own = || source.as_ref().map_or_else(|| own(dir), Source::name);
        let name = args.name.get(index).cloned().map_or_else(own, Ok);
        name.map_err(|error| format!("{}: {error}: name the table with --name", dir.display()))
    });
    let names: Vec<Name> = names.collect::<Result<_, _>>()?;
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            return Err(format!("two tables are called {name}: tell them apart with --name"));
        }
    }
    Ok(names)
}
