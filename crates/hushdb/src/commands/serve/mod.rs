//! The command `hushdb serve`.

use std::{convert::Infallible, error::Error, num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};

use clap::{Args, ValueEnum};
use hush_engine::{BackendChoice, MemoryChoice, SpreadChoice};
use hush_operator::{Compaction, Folders};
use hush_protocol::Name;
use hush_server::{Background, Gateway, Tls, Tokens, host_name, origin};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{Mutex, oneshot},
};

use super::{environment::warn_of_unknown, inspect::VerifyArg, tell_unused_gpu};
use crate::{
    logs::{self, LogFormat},
    report,
};
pub(crate) use check::check;
use limits::LimitArgs;
use open_files::Needs;
#[cfg(all(test, feature = "openapi"))]
pub(crate) use page::ShownPlan;
pub(crate) use prepare::Front;
pub use prepare::tables_cache;
use prepare::{Prepared, front, prepare};
pub(super) use prepare::{listen, listen_health, tell_health, tls};

mod check;
mod frontend;
mod limits;
pub(super) mod open_files;
#[cfg_attr(not(feature = "page"), path = "no_page.rs")]
mod page;
mod prepare;

/// The interval at which the folders of tables are checked.
const LOOK: Duration = Duration::from_millis(200);

/// Whether there is a page for browsers.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PageArg {
    /// On if only this machine can reach the server.
    Auto,
    /// Always on.
    On,
    /// Always off.
    Off,
}

/// Serve tables over HTTP.
#[derive(Args)]
#[command(after_help = "\
Every option is also a key of --config FILE, by its name without dashes, and an environment variable, as HUSHDB_MAX_QUEUE; lists \
have commas there. The command line comes first, then the environment, then the file.")]
pub(crate) struct ServeArgs {
    /// Folders of tables, or their URLs (s3://, gs://, az://, https://), of which a copy is served (--cache).
    #[arg(id = "tables", value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Folder for copies of tables that are fetched. If not given, `hushdb/tables` in $XDG_CACHE_HOME or ~/.cache.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// File of settings in TOML: every option of this command, by its name without dashes, and `tables`.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:7700", value_name = "ADDRESS")]
    listen: String,
    /// Certificate file (PEM) for TLS on --listen: the server's certificate, then those that lead to one that clients trust. The
    /// TLS files are read again when they change, and on SIGHUP.
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// File of the private key of --tls-cert, in PEM.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// File of certificates of authorities (PEM). Only clients with a certificate that one of them signed are answered.
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// File of the tokens of clients (`hushdb token`). The file is read again when it changes, and on SIGHUP.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Answer everyone who reaches the server. If other machines can reach it, either --tokens or this is required.
    #[arg(long, conflicts_with = "tokens")]
    open: bool,
    /// Separate address for /livez, /readyz and /metrics, which --listen then does not answer.
    #[arg(long, value_name = "ADDRESS")]
    listen_health: Option<String>,
    /// Address for the admin endpoints, which reload and compact tables and run tasks. With --tokens, callers need the scope admin;
    /// otherwise everyone who reaches the address may call. If other machines can reach it, --tokens and --tls-cert are required.
    #[arg(long, value_name = "ADDRESS")]
    listen_admin: Option<String>,
    /// Folder for tables that the server manages itself. Tasks of the admin endpoints build, change and remove them (`hushdb
    /// admin`).
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Source that tasks may fetch from; repeat it for several: s3://bucket/prefix, gs://bucket/prefix, az://container/prefix,
    /// https://host/prefix, http://host/prefix or postgres://host/database, with the credentials of the server's environment.
    /// https:// allows all web servers at public addresses, without credentials; none allows nothing. If not given, https://.
    /// Uploads are always accepted.
    #[arg(long, value_name = "URL")]
    task_source: Vec<String>,
    /// Hours after which an upload without new parts is removed, if no task uses it.
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..))]
    upload_lifetime: u32,
    /// Host names of this server, beside localhost and its loopback addresses. Names are needed behind a proxy on this machine that
    /// passes on the names its clients ask for. A server that is not on loopback answers to any name if this is not given.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_parser = host_name)]
    allowed_hosts: Vec<String>,
    /// Origins whose pages may look records up from a browser (CORS), such as `https://app.example`. `*` allows every page, and
    /// excludes --tokens. Pages never reach admin endpoints, health and metrics.
    #[arg(long, value_name = "ORIGIN,..", value_delimiter = ',', value_parser = origin)]
    allow_origin: Vec<String>,
    /// Show a page on --listen, where people look records up in a browser and see what the server sees: on, off, or auto, which is
    /// on if only this machine can reach the server.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto", num_args = 0..=1, default_missing_value = "on")]
    page: PageArg,
    /// Name of a table, in the order of the folders. If not given, the name of its folder.
    #[arg(long, value_name = "NAME")]
    name: Vec<Name>,
    /// File of keys (`hushdb gateway-key`) to answer requests through a relay too (Oblivious HTTP). These look-ups come from the
    /// relay's address, and so share the limits of one address.
    #[arg(long, value_name = "FILE")]
    gateway_keys: Option<PathBuf>,
    /// Format of the log on standard error.
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
    /// URL of an OpenTelemetry collector, such as http://127.0.0.1:4318, for the log and a trace of every request (OTLP over HTTP).
    /// Requires a program with the feature otlp.
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Report ready (/readyz) only while no table has failed. Otherwise a server is ready while one table answers, and /readyz
    /// names the failed tables.
    #[arg(long)]
    require_tables: bool,
    /// Extent of the check of a table before it is served.
    #[arg(long, value_enum, default_value = "full")]
    verify: VerifyArg,
    /// Load a table again when its folder gets another table or the next epoch. Without it, only on SIGHUP.
    #[arg(long)]
    watch: bool,
    /// Percentage of used room for changes at which the changes of a table are folded into a new base, in the background.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(1..=100))]
    compact_at: Option<u64>,
    /// Number of threads to scan with. If not given, one for every core.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Backend that computes the answers: auto, cpu or cuda. auto takes a GPU, if there is one, for tables that fit
    /// into its memory.
    #[arg(long, value_name = "NAME", default_value_t)]
    backend: BackendChoice,
    /// Spread of each table over several GPUs: auto, one, replicate or shard. replicate puts a copy on every GPU, for more
    /// look-ups a second; shard puts a share on every GPU, for shorter look-ups and larger tables. auto takes copies of tables
    /// that leave room for the next epoch, else shares if they shorten a batch.
    #[arg(long, value_name = "NAME", default_value_t)]
    spread: SpreadChoice,
    /// Memory of the scanned files: auto, resident or mapped. Resident files are in the server's memory, where nobody else changes
    /// them and scans are faster. Mapped files are in the system's file cache, for tables beyond memory and for quick starts. auto
    /// is resident if there is room.
    #[arg(long, value_name = "NAME", default_value_t)]
    memory: MemoryChoice,
    /// File for the evaluation keys that clients upload, if a table needs any. If not given, `hushdb/hushdb-keys.redb` in
    /// $XDG_STATE_HOME or ~/.local/state.
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitArgs,
}

pub(crate) fn run(args: ServeArgs) -> Result<(), Box<dyn Error>> {
    let _logs = logs::start(args.log_format, args.otlp.as_deref())?;
    warn_of_unknown();
    let runtime = tokio::runtime::Runtime::new()?;
    let outcome = runtime.block_on(serve(args));
    // A table that is still loading does not delay the end.
    runtime.shutdown_background();
    outcome
}

/// Opens everything for a server whose tables belong to the program around it ([`crate::embed`]). Refuses settings for folders of
/// tables.
pub(crate) async fn prepare_embedded(args: &ServeArgs) -> Result<Front, Box<dyn Error>> {
    let of_folders = [
        ("config", args.config.is_some()),
        ("listen-admin", args.listen_admin.is_some()),
        ("data", args.data.is_some()),
        ("task-source", !args.task_source.is_empty()),
        ("cache", args.cache.is_some()),
        ("compact-at", args.compact_at.is_some()),
        ("name", !args.name.is_empty()),
        ("watch", args.watch),
        // The program around the server sets the number of threads.
        ("threads", args.threads.is_some()),
    ];
    if let Some((name, _)) = of_folders.iter().find(|(_, is_said)| *is_said) {
        return Err(format!("{name} is for servers of folders: leave it out here").into());
    }
    front(args, Needs::default(), None).await
}

async fn serve(args: ServeArgs) -> Result<(), Box<dyn Error>> {
    let Prepared { front, tables, folders, compaction } = prepare(&args, None).await?;
    let Front { listeners, config, url, fewer_connections } = front;
    let cpu = folders.backends().cpu();
    let most = config.max_connections;
    say!("listening on {url} ({} threads, {}, up to {most} connections)", cpu.threads(), cpu.level());
    if let Some(line) = fewer_connections {
        say!("{line}");
    }
    if listeners.page.is_some() {
        say!("a page for browsers at {url}/");
    }
    tell_health(listeners.health.as_ref())?;
    if let Some((admin, operator)) = &listeners.admin {
        let address = admin.local_addr()?;
        let scheme = if address.ip().is_loopback() { "http" } else { "https" };
        say!("admin endpoints on {scheme}://{address}");
        operator.clone().start()?;
    }
    tell_unused_gpu(folders.backends());
    if let Some(path) = &config.keys_path
        && let Ok(file) = path.metadata()
    {
        say!("checking the keys of clients in {} ({})", path.display(), report::bytes(file.len()));
    }
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (failed, failure) = oneshot::channel();
    let watch = Watch {
        folders,
        compaction,
        looks: args.watch,
        hang_up: Mutex::new(signal(SignalKind::hangup())?),
        files: (listeners.tls.clone(), listeners.tokens.clone(), listeners.gateway.clone()),
    };
    if args.watch {
        tables.upkeep().watch();
    }
    let upkeep = tables.upkeep().clone();
    tokio::spawn(async move {
        if let Err(error) = upkeep.keep(Background::Folders, || watch.folders.clone().load_all()).await {
            // The receiver is gone only if the server has already stopped.
            let _ = failed.send(error);
            return;
        }
        match upkeep.keep(Background::Folders, || watch.take_up_all()).await {}
    });
    let mut load_error = None;
    let shutdown = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            Ok(error) = failure => load_error = Some(error),
        }
        say!("stopping: answering what is in flight");
    };
    hush_server::run(listeners, tables, config, shutdown).await?;
    load_error.map_or(Ok(()), |error| Err(error.into()))
}

/// The files that are read again: certificates, tokens and keys of the gateway.
type Renewed = (Option<Arc<Tls>>, Option<Arc<Tokens>>, Option<Arc<Gateway>>);

/// The watcher of everything that is reloaded while a server runs.
struct Watch {
    folders: Arc<Folders>,
    compaction: Arc<Compaction>,
    /// Whether folders are checked periodically, without a signal.
    looks: bool,
    hang_up: Mutex<Signal>,
    files: Renewed,
}

impl Watch {
    /// Reloads new content of folders and files, forever.
    async fn take_up_all(&self) -> Infallible {
        let mut hang_up = self.hang_up.lock().await;
        loop {
            self.folders.compact_full();
            let look = async {
                match self.looks {
                    true => tokio::time::sleep(LOOK).await,
                    false => std::future::pending().await,
                }
            };
            let mut asked = false;
            tokio::select! {
                () = look => {}
                _ = hang_up.recv() => {
                    asked = true;
                    let (certificates, granted, sealed) = &self.files;
                    certificates.iter().for_each(|tls| tls.take_up());
                    granted.iter().for_each(|tokens| tokens.take_up());
                    sealed.iter().for_each(|gateway| gateway.take_up());
                }
                () = self.compaction.done() => {}
            }
            self.folders.clone().take_up(asked).await;
        }
    }
}
