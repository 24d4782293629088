//! The command `hushdb gateway-key`: the keys with which clients behind a relay seal their requests.

use std::{
    error::Error,
    fs,
    path::PathBuf,
    time::{Duration, UNIX_EPOCH},
};

use clap::{Args, Subcommand};
use hush_math::csprng::Csprng;
use hush_server::{GatewayKey, read_gateway_keys, rotate, text_of_gateway_keys};
use hush_store::whole_file;
use zeroize::Zeroizing;

use crate::report;

/// Make, rotate and list the keys with which clients behind a relay seal their requests.
#[derive(Args)]
pub(crate) struct GatewayKeyArgs {
    #[command(subcommand)]
    what: GatewayKeyCommand,
}

#[derive(Subcommand)]
enum GatewayKeyCommand {
    /// Make a new key, and the file if it does not exist. The two keys before it stay, for requests in flight. A running server
    /// uses the new key within a second.
    Rotate(KeyFileArg),
    /// List the keys in a file.
    List(KeyFileArg),
}

#[derive(Args)]
struct KeyFileArg {
    /// File of keys, as for `serve --gateway-keys`.
    #[arg(long = "keys", value_name = "FILE")]
    path: PathBuf,
}

pub(crate) fn run(args: GatewayKeyArgs) -> Result<(), Box<dyn Error>> {
    match args.what {
        GatewayKeyCommand::Rotate(KeyFileArg { path }) => {
            let _lock = whole_file::lock(&path)?;
            let mut keys = if fs::exists(&path)? { read_gateway_keys(&path)? } else { Vec::new() };
            let mut random = Zeroizing::new([0; GatewayKey::RANDOM_BYTES]);
            Csprng::from_os().fill_bytes(&mut *random);
            rotate(&mut keys, &random);
            let written = whole_file::write(&path, &text_of_gateway_keys(&keys), 0o600);
            written.map_err(|error| format!("cannot write the keys to {}: {error}", path.display()))?;
            say!("key {} is the newest in {}", keys[0].id, path.display());
            Ok(())
        }
        GatewayKeyCommand::List(KeyFileArg { path }) => {
            let mut lines = String::new();
            for (index, key) in read_gateway_keys(&path)?.iter().enumerate() {
                let made = UNIX_EPOCH.checked_add(Duration::from_secs(key.created));
                let made = humantime::format_rfc3339_seconds(made.ok_or("an invalid time")?);
                let use_of = if index == 0 { "clients get it" } else { "opens what was sealed for it" };
                lines += &format!("{:>3}  made {made}, {use_of}\n", key.id);
            }
            Ok(report::print(&lines)?)
        }
    }
}
