//! The settings of `serve` in layers, the command line over the environment over a file; and `hushdb config`.

pub(crate) mod layers;

use std::{error::Error, ffi::OsString, path::PathBuf};

use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand, parser::ValueSource};

use super::{
    environment,
    serve::{self, ServeArgs},
};
use crate::report;
use layers::SettingLayer;
pub(crate) use layers::{settings, variable};

/// The variable that names the file.
pub(crate) const FILE: &str = "HUSHDB_CONFIG";

/// Check the settings of a server.
#[derive(Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    what: ConfigCommand,
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Check the settings in FILE and in the environment: print them, and whether a server could start with them.
    Check {
        /// File of settings in TOML, as for `serve --config`.
        file: PathBuf,
    },
}

/// Parses the command line of `hushdb`, with the settings of `serve` as defaults.
pub(crate) fn matches(hushdb: Command, given: Vec<OsString>) -> Result<ArgMatches, String> {
    // The other arguments are parsed again, with the layers as defaults.
    let first = hushdb.clone().ignore_errors(true).try_get_matches_from(&given).ok();
    let asked = first.as_ref().and_then(|matches| matches.subcommand_matches("serve"));
    let Some(asked) = asked else { return Ok(hushdb.get_matches_from(given)) };
    let file = asked.get_one::<PathBuf>("config").cloned();
    let file = file.or_else(|| environment::variable(FILE).map(PathBuf::from));
    let serve = hushdb.find_subcommand("serve").expect("it was asked for").clone();
    let [file, environment] = layers(file, &serve)?;
    let hushdb = hushdb.mut_subcommand("serve", |serve| environment.beneath(file.beneath(serve)));
    Ok(hushdb.get_matches_from(given))
}

/// Returns the layers beneath the command line, the lowest first.
fn layers(file: Option<PathBuf>, serve: &Command) -> Result<[SettingLayer; 2], String> {
    let file = file.map(|path| SettingLayer::file(&path, serve)).transpose()?.unwrap_or_default();
    Ok([file, SettingLayer::environment(serve)?])
}

pub(crate) fn run(args: ConfigArgs) -> Result<(), Box<dyn Error>> {
    let ConfigCommand::Check { file: path } = args.what;
    let serve = ServeArgs::augment_args(Command::new("serve"));
    let [file, environment] = layers(Some(path.clone()), &serve)?;
    let command = environment.beneath(file.beneath(serve.clone()));
    // Each setting is valid by itself, so an error is about a combination of two.
    let matches = command.try_get_matches_from(["serve"]).map_err(|error| {
        let said = error.to_string();
        format!("{}: {}", path.display(), said.lines().next().unwrap_or("").trim_start_matches("error: "))
    })?;
    for arg in settings(&serve) {
        let id = arg.get_id().as_str();
        let Some(values) = matches.get_raw(id) else { continue };
        let values: Vec<_> = values.map(|value| value.to_string_lossy().into_owned()).collect();
        let from = match (matches.value_source(id), environment.has(id), file.has(id)) {
            (Some(ValueSource::DefaultValue), true, _) => "the environment",
            (Some(ValueSource::DefaultValue), false, true) => "the file",
            _ => "default",
        };
        report::print(&format!("{:<22} {:<32} {from}\n", layers::key(arg), values.join(", ")))?;
    }
    for what in serve::check(&ServeArgs::from_arg_matches(&matches)?)? {
        report::print(&format!("not checked: {what}\n"))?;
    }
    Ok(report::print(&format!("{} is good\n", path.display()))?)
}
