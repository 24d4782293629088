//! The command `hushdb relay`: passes sealed requests of clients on to a server, which does not see who asks.

use std::{error::Error, fs, path::PathBuf, sync::Arc};

use clap::Args;
use hush_client::{
    http::{HttpOptions, Said, SealedPeer, TlsOptions},
    session::TransportFailure,
};
use hush_protocol::{ohttp::GATEWAY_PATH, shown_url};
use hush_server::{Listeners, RELAYED_AT_ONCE, Relayed, ServerConfig, Tables, Throttle, Uplink, origin};
use tokio::signal::unix::{SignalKind, signal};

use super::{
    environment::warn_of_unknown,
    serve::{
        listen, listen_health,
        open_files::{self, Needs},
        tell_health, tls,
    },
};
use crate::logs::{self, LogFormat};

/// The most bytes of a sealed response.
const MAX_RESPONSE_BYTES: u64 = 64 << 20;

/// The arguments of `hushdb relay`.
#[derive(Args)]
pub(crate) struct RelayArgs {
    /// URL of the server whose gateway gets the requests, such as `https://hush.example`. The relay asks no other server.
    #[arg(long, value_name = "URL")]
    gateway: String,
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7703")]
    listen: String,
    /// Address for /livez, /readyz and /metrics.
    #[arg(long, value_name = "ADDRESS")]
    listen_health: Option<String>,
    /// File of certificates in PEM, the relay's own first. The relay then speaks TLS.
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// File of the private key of --tls-cert, in PEM.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// File of certificates of authorities (PEM), trusted instead of those of this system.
    #[arg(long, value_name = "FILE")]
    ca_cert: Option<PathBuf>,
    /// Origins whose pages may send sealed requests from a browser (CORS), such as `https://app.example`; `*` allows every page.
    #[arg(long, value_name = "ORIGIN,..", value_delimiter = ',', value_parser = origin)]
    allow_origin: Vec<String>,
    /// Most connections and memory that one client address may have, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=100))]
    client_share: u32,
    /// Most requests a second of one client address. If not given, no limit.
    #[arg(long, value_name = "N")]
    rate_limit: Option<u32>,
    /// Format of the log on standard error.
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
}

/// The connection to the gateway.
struct ToGateway(SealedPeer);

impl Uplink for ToGateway {
    fn keys(&self) -> Result<Relayed, String> {
        said(self.0.keys())
    }

    fn pass_on(&self, sealed: &[u8]) -> Result<Relayed, String> {
        said(self.0.post(sealed, MAX_RESPONSE_BYTES, false))
    }
}

fn said(said: Result<Said, TransportFailure>) -> Result<Relayed, String> {
    let Said { status, content_type, body, .. } = said.map_err(|error| error.to_string())?;
    Ok(Relayed { status, content_type, body })
}

pub(crate) fn run(args: RelayArgs) -> Result<(), Box<dyn Error>> {
    let _logs = logs::start(args.log_format, None)?;
    warn_of_unknown();
    tokio::runtime::Runtime::new()?.block_on(relay(args))
}

async fn relay(args: RelayArgs) -> Result<(), Box<dyn Error>> {
    let ca_cert = args
        .ca_cert
        .as_ref()
        .map(|path| fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display())));
    let options = HttpOptions {
        tls: TlsOptions { ca_cert: ca_cert.transpose()?, ..TlsOptions::default() },
        ..HttpOptions::default()
    };
    let gateway = format!("{}{GATEWAY_PATH}", args.gateway.trim_end_matches('/'));
    let uplink = Arc::new(ToGateway(SealedPeer::new(&gateway, &options)?));
    let tls = tls(args.tls_cert.as_ref(), args.tls_key.as_ref(), None)?;
    let mut config = ServerConfig {
        client_share: args.client_share,
        throttle: args
            .rate_limit
            .map(|rate| Throttle { queries_per_second: rate, burst: rate.saturating_mul(4) }),
        ..ServerConfig::default()
    };
    let public = listen(&args.listen, "listen", None).await?;
    let health = listen_health(args.listen_health.as_deref(), None).await?;
    // Each request in flight has a connection to the gateway, and some connections are kept for later ones.
    let needs = Needs { files: 2 * RELAYED_AT_ONCE, other_listeners: usize::from(health.is_some()) };
    let fewer_connections = open_files::fit(&mut config, &needs)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    say!("listening on {scheme}://{}, for {}", public.local_addr()?, shown_url(&args.gateway));
    if let Some(line) = fewer_connections {
        say!("{line}");
    }
    tell_health(health.as_ref())?;
    let allowed_origins = args.allow_origin;
    let listeners =
        Listeners { tls, health, uplink: Some(uplink), allowed_origins, ..Listeners::from(public) };
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let shutdown = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        say!("stopping: passing on what is in flight");
    };
    Ok(hush_server::run(listeners, Tables::new(), config, shutdown).await?)
}
