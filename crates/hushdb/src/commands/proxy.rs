//! The command `hushdb proxy`: answers programs of this machine over plain HTTP, by private look-ups.

use std::{error::Error, path::PathBuf};

use clap::Args;
use hush_protocol::wording::{self, Slot};
use hush_proxy::{FrontDoor, ProxyConfig};
use tokio::signal::unix::{SignalKind, signal};

use super::environment::warn_of_unknown;
use crate::{
    logs::{self, LogFormat},
    report,
};

/// The arguments of `hushdb proxy`.
#[derive(Args)]
pub(crate) struct ProxyArgs {
    /// File of settings (TOML): the tables, and the paths and methods that they answer.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Format of the log on standard error.
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
}

pub(crate) fn run(args: ProxyArgs) -> Result<(), Box<dyn Error>> {
    let _logs = logs::start(args.log_format, None)?;
    // What a client says of options is about the settings here.
    wording::speak(|slot| match slot {
        Slot::Option("token") => "'token-file'".into(),
        Slot::Option(name) | Slot::Switch(name) => format!("'{name}'"),
        Slot::Setting(name, value) => format!("'{name} = {value}'"),
        Slot::Command(..) => report::named(slot),
    });
    warn_of_unknown();
    let config = ProxyConfig::read(&args.config)?;
    tokio::runtime::Runtime::new()?.block_on(answer(config))
}

async fn answer(config: ProxyConfig) -> Result<(), Box<dyn Error>> {
    let front = FrontDoor::new(config)?;
    let listener = front.listen().await.map_err(|error| format!("cannot listen: {error}"))?;
    say!("listening on http://{}", listener.local_addr()?);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let shutdown = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        say!("stopping: answering what is in flight");
    };
    Ok(front.serve(listener, shutdown).await?)
}
