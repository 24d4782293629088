//! The preparation of a server: everything that it opens before it answers. `config check` opens the same, and closes it.

use std::{
    error::Error,
    io::ErrorKind,
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use etcetera::BaseStrategy;
use hush_engine::{BackendChoice, SpreadChoice};
use hush_operator::{Compaction, Folders, Frontend, Source, Tasks, is_in_use, task_sources};
use hush_protocol::{
    Name,
    wording::{Slot, Wording},
};
use hush_server::{Gateway, Listeners, Operator, Page, ServerConfig, Tables, Tls, TlsFiles, Tokens};
use tokio::net::TcpListener;

use super::{
    PageArg, ServeArgs,
    frontend::CommandLine,
    open_files::{self, Needs},
    page,
};
use crate::commands::{backends, key_file, threads};

/// Descriptions of what a check cannot verify; `None` when a server starts.
pub(super) type Unchecked<'a> = Option<&'a mut Vec<String>>;

/// The listeners of a server, and its configuration.
pub(crate) struct Front {
    pub(crate) listeners: Listeners,
    pub(crate) config: ServerConfig,
    /// The URL of the public listener.
    pub(crate) url: String,
    /// A line that says why there are fewer connections than requested, if so.
    pub(crate) fewer_connections: Option<String>,
}

/// A server that has everything but its tables, whose names are known.
pub(super) struct Prepared {
    pub(super) front: Front,
    pub(super) tables: Tables,
    pub(super) folders: Arc<Folders>,
    pub(super) compaction: Arc<Compaction>,
}

/// Opens everything that a server needs, except the content of its tables and the file of keys.
pub(super) async fn prepare(
    args: &ServeArgs,
    mut unchecked: Unchecked<'_>,
) -> Result<Prepared, Box<dyn Error>> {
    let names = names(args)?;
    let admin = admin(args)?;
    let backends = backends(args.backend, threads(args.threads))?.for_clients(args.limits.open_keys.get());
    if args.backend == BackendChoice::Cpu && args.spread != SpreadChoice::Auto {
        return Err(format!(
            "spread {} is for GPUs: leave it out, or use another backend than cpu",
            args.spread
        )
        .into());
    }
    let backends = backends.with_memory(args.memory).with_spread(args.spread);
    let mut needs = Needs { files: 0, other_listeners: usize::from(admin.is_some()) };
    let sources = sources(args)?;
    for (dir, source) in args.dirs.iter().zip(&sources) {
        needs.table(source.as_ref().map_or(dir.as_path(), Source::dir), source.is_some());
    }
    if args.data.is_some() || args.compact_at.is_some() || admin.is_some() {
        needs.tasks();
    }
    let mut front = front(args, needs, unchecked.as_deref_mut()).await?;
    let admin = match admin {
        Some(address) => Some(listen(address, "listen-admin", unchecked.as_deref_mut()).await?),
        None => None,
    };
    let tables = Tables::new();
    let frontend: Arc<dyn Frontend> = Arc::new(CommandLine);
    let compaction = Compaction::new(args.compact_at, threads(args.threads), tables.upkeep(), &frontend);
    let compaction = Arc::new(compaction);
    let stays = args.data.is_some();
    let folders = Folders::new(&tables, args.verify.into(), backends, &compaction, stays, &frontend);
    let folders = Arc::new(folders);
    for ((dir, source), name) in args.dirs.iter().zip(sources).zip(&names) {
        match source {
            Some(source) => folders.add_copy(name, source)?,
            None => folders.add(name, dir.clone())?,
        }
    }
    let operator = operator(args, &folders, unchecked)?;
    front.listeners.admin = admin.map(|admin| (admin, operator));
    Ok(Prepared { front, tables, folders, compaction })
}

/// Opens everything behind the public and the health listener. The admin endpoints belong to folders of tables.
pub(super) async fn front(
    args: &ServeArgs,
    mut needs: Needs,
    mut unchecked: Unchecked<'_>,
) -> Result<Front, Box<dyn Error>> {
    let mut config = ServerConfig {
        keys_path: key_file::path(args.keys.as_deref(), &args.dirs)?,
        require_tables: args.require_tables,
        ..args.limits.config()
    };
    config.check()?;
    check_distinct(args)?;
    check_origins(args)?;
    let tls = tls(args.tls_cert.as_ref(), args.tls_key.as_ref(), args.tls_client_ca.as_ref())?;
    let tokens = tokens(args)?;
    let gateway = gateway(args)?;
    let page = shown(args)?;
    let public = listen(&args.listen, "listen", unchecked.as_deref_mut()).await?;
    let health = listen_health(args.listen_health.as_deref(), unchecked).await?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", public.local_addr()?);
    let allowed_hosts = args.allowed_hosts.clone();
    let allowed_origins = args.allow_origin.clone();
    let listeners = Listeners {
        tls,
        tokens,
        gateway,
        page,
        health,
        allowed_hosts,
        allowed_origins,
        ..Listeners::from(public)
    };
    needs.other_listeners += usize::from(listeners.health.is_some());
    let fewer_connections = open_files::fit(&mut config, &needs)?;
    Ok(Front { listeners, config, url, fewer_connections })
}

/// Returns TLS for --listen; `None` for plain HTTP.
pub(in crate::commands) fn tls(
    cert: Option<&PathBuf>,
    key: Option<&PathBuf>,
    client_ca: Option<&PathBuf>,
) -> Result<Option<Arc<Tls>>, String> {
    let (cert, key) = match (cert, key) {
        (Some(cert), Some(key)) => (cert, key),
        (None, None) if client_ca.is_none() => return Ok(None),
        (Some(_), None) => return Err(Wording("{tls-cert} needs the private key too: {tls-key}").to_string()),
        (None, _) => {
            return Err(Wording("a TLS server shows a certificate: {tls-cert} and {tls-key}").to_string());
        }
    };
    let files = TlsFiles { cert: cert.clone(), key: key.clone(), client_ca: client_ca.cloned() };
    Tls::open(files).map(Some).map_err(|error| format!("no TLS: {error}"))
}

/// Returns the gateway, which opens requests that come through a relay.
fn gateway(args: &ServeArgs) -> Result<Option<Arc<Gateway>>, String> {
    args.gateway_keys.as_deref().map(Gateway::open).transpose().map_err(|error| error.to_string())
}

/// Returns the operator, which does the work of the admin endpoints.
fn operator(
    args: &ServeArgs,
    folders: &Arc<Folders>,
    unchecked: Unchecked<'_>,
) -> Result<Arc<dyn Operator>, String> {
    let advice = "upload the file, or have the server allow the source: --task-source";
    let sources = task_sources(&args.task_source, advice)?;
    let Some(data) = &args.data else { return Ok(folders.clone()) };
    if let Some(unchecked) = unchecked
        && is_in_use(data)
    {
        unchecked.push(format!("--data {}: a server uses it", data.display()));
        return Ok(folders.clone());
    }
    let upload_lifetime = Duration::from_secs(u64::from(args.upload_lifetime) * 3600);
    Ok(Tasks::open(data, folders, threads(args.threads), upload_lifetime, sources)?)
}

/// Returns the tokens of clients. A server that other machines can reach needs tokens, or the setting `open`.
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

/// Returns the page, if the settings show one.
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

/// Returns whether other machines can reach an address. The listener reports an invalid address.
fn others_reach(address: &str) -> bool {
    address.to_socket_addrs().into_iter().flatten().any(|to| !to.ip().is_loopback())
}

/// Returns the address of the admin endpoints. Other machines may reach it only with tokens, and with TLS to hide them.
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

/// Refuses two listeners at one address, since only the first could bind it.
fn check_distinct(args: &ServeArgs) -> Result<(), String> {
    let options = [
        ("listen", Some(&args.listen)),
        ("listen-health", args.listen_health.as_ref()),
        ("listen-admin", args.listen_admin.as_ref()),
    ];
    let mut taken: Vec<(&str, SocketAddr)> = Vec::new();
    for (option, address) in options {
        for address in address.into_iter().flat_map(|address| address.to_socket_addrs()).flatten() {
            let meets = |other: &SocketAddr| {
                let is_any = address.ip().is_unspecified() || other.ip().is_unspecified();
                address.port() != 0
                    && address.port() == other.port()
                    && (is_any || address.ip() == other.ip())
            };
            if let Some((first, _)) = taken.iter().find(|(first, other)| *first != option && meets(other)) {
                let first = Slot::Option(first);
                let option = Slot::Option(option);
                return Err(format!(
                    "{first} and {option} are both at {address}: choose another port for one of them"
                ));
            }
            taken.push((option, address));
        }
    }
    Ok(())
}

/// Refuses `*` as an origin if clients have tokens: any page that got hold of a token could use it.
fn check_origins(args: &ServeArgs) -> Result<(), String> {
    if args.tokens.is_some() && args.allow_origin.iter().any(|origin| origin == "*") {
        let reason = Wording(
            "{allow-origin} '*' lets every page ask, and {tokens} only some clients: list the origins of your pages, as \
             https://app.example",
        );
        return Err(reason.to_string());
    }
    Ok(())
}

/// Listens for health and metrics, if they have a separate address.
pub(in crate::commands) async fn listen_health(
    address: Option<&str>,
    unchecked: Unchecked<'_>,
) -> Result<Option<TcpListener>, String> {
    match address {
        Some(address) => listen(address, "listen-health", unchecked).await.map(Some),
        None => Ok(None),
    }
}

/// Prints the address of health and metrics, if it is separate.
pub(in crate::commands) fn tell_health(health: Option<&TcpListener>) -> Result<(), Box<dyn Error>> {
    if let Some(health) = health {
        say!("health and metrics on http://{}", health.local_addr()?);
    }
    Ok(())
}

/// Listens on an address. If the address is in use, maybe by the server whose settings are checked, a check records that and takes
/// another port.
pub(in crate::commands) async fn listen(
    address: &str,
    option: &str,
    unchecked: Unchecked<'_>,
) -> Result<TcpListener, String> {
    let option = Slot::Option(option);
    let error = match TcpListener::bind(address).await {
        Ok(listener) => return Ok(listener),
        Err(error) => error,
    };
    if let Some(unchecked) = unchecked
        && error.kind() == ErrorKind::AddrInUse
        && let Some(at) = address.to_socket_addrs().into_iter().flatten().next()
    {
        unchecked
            .push(format!("{option} {address}: something listens there, which may be the server itself"));
        return listen_anywhere(at).await;
    }
    let remedy = match error.kind() {
        ErrorKind::AddrInUse => format!("choose another {option}, or stop what uses it"),
        ErrorKind::PermissionDenied => format!(
            "choose a port of 1024 or above for {option}, or give the program the capability CAP_NET_BIND_SERVICE"
        ),
        _ => format!("choose an address of this machine and a port for {option}, as 127.0.0.1:7700"),
    };
    Err(format!("cannot listen on {address}: {error}: {remedy}"))
}

async fn listen_anywhere(at: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind((at.ip(), 0)).await.map_err(|error| format!("cannot listen on {}: {error}", at.ip()))
}

/// Returns the source of each table, for a table whose folder is a copy.
fn sources(args: &ServeArgs) -> Result<Vec<Option<Source>>, String> {
    let cache = || {
        let cache = args.cache.clone().or_else(tables_cache);
        cache.ok_or_else(|| "no home directory is known to keep copies of tables in: choose --cache".into())
    };
    args.dirs.iter().map(|place| Source::of(place, cache)).collect()
}

/// Returns the default folder for copies of tables, in the user's cache, if there is one.
pub fn tables_cache() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.cache_dir().join("hushdb/tables"))
}

/// Returns the name of every table. Refuses equal names.
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
