//! The program `hushdb`, with a file for each command, and [`embed`] for programs that contain it.
//!
//! * `commands/`: the commands; `serve/` prepares a server, `config/` has the layers of its settings.
//! * `help.rs`: groups of options. `report.rs`: errors in the words of the command line. `logs/`: standard error, and a collector.

#[macro_use] // `say!`, for all below
mod report;

mod commands;
pub mod embed;
mod help;
mod logs;
mod process;

use std::{ffi::OsString, process::ExitCode};

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use hush_protocol::wording;

/// A private lookup server: clients look records up, the server does not learn which.
#[derive(Parser)]
#[command(
    name = "hushdb",
    version,
    about,
    propagate_version = true,
    max_term_width = 100,
    disable_help_flag = true
)]
struct Cli {
    /// Print help, with the options that people use first.
    #[arg(long, short = 'h', global = true, action = ArgAction::HelpShort)]
    help: Option<bool>,
    /// Print help, with all options.
    #[arg(long, global = true, action = ArgAction::HelpLong)]
    help_all: Option<bool>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build a table from a file of records.
    Build(commands::build::BuildArgs),
    /// Apply changes to a table that was built with --updatable.
    Apply(commands::apply::ApplyArgs),
    /// Fold the changes of a table into a new base.
    Compact(commands::compact::CompactArgs),
    /// Put an epoch that was kept in the place of a table.
    Rollback(commands::rollback::RollbackArgs),
    /// Put a table into an object store, from which servers fetch it.
    Push(commands::push::PushArgs),
    /// List the tables that records could have, with what each costs, and the one that suits best.
    Plan(commands::plan::PlanArgs),
    /// Serve tables over HTTP.
    Serve(commands::serve::ServeArgs),
    /// Build, change, load and remove tables on a running server.
    Admin(commands::admin::AdminArgs),
    /// Check the settings of a server.
    Config(commands::config::ConfigArgs),
    /// Make, list and revoke the tokens of a server.
    Token(commands::token::TokenArgs),
    /// Make, rotate and list the keys with which clients behind a relay seal their requests.
    GatewayKey(commands::gateway_key::GatewayKeyArgs),
    /// Pass sealed requests of clients on to a server, which does not see who asks.
    Relay(commands::relay::RelayArgs),
    /// Answer programs of this machine over plain HTTP, by private look-ups.
    Proxy(commands::proxy::ProxyArgs),
    /// Look records up privately.
    Get(commands::get::GetArgs),
    /// Print everything about a table.
    Inspect(commands::inspect::InspectArgs),
    /// Print what this machine has, and why a GPU is not used.
    Doctor(commands::doctor::DoctorArgs),
    /// Make a key to sign tables with.
    Keygen(commands::signing_key::KeygenArgs),
    /// List the parameter sets, with their security and the problems that it rests on.
    Presets(commands::presets::PresetsArgs),
    /// Print the version, the commit and the features of this program, and the formats that it reads.
    Version(commands::version::VersionArgs),
}

/// Returns the command line of the program, with options in groups.
fn command() -> clap::Command {
    help::grouped(Cli::command())
}

/// Runs the command of a command line. The first word is the name of the program.
pub fn main(line: impl IntoIterator<Item = OsString>) -> ExitCode {
    process::keep_memory_private();
    wording::speak(report::named);
    let matches = match commands::config::matches(command(), line.into_iter().collect()) {
        Ok(matches) => matches,
        Err(error) => return report::exit(Err(error.into())),
    };
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // A server warns later, when the format of its log is known.
    if !matches!(cli.command, Command::Serve(_) | Command::Relay(_) | Command::Proxy(_)) {
        commands::environment::warn_of_unknown();
    }
    match cli.command {
        Command::Build(args) => commands::build::run(args),
        Command::Apply(args) => commands::apply::run(args),
        Command::Compact(args) => commands::compact::run(args),
        Command::Rollback(args) => commands::rollback::run(args),
        Command::Push(args) => report::exit(commands::push::run(args)),
        Command::Plan(args) => report::exit(commands::plan::run(args)),
        Command::Serve(args) => report::exit(commands::serve::run(args)),
        Command::Admin(args) => report::exit(commands::admin::run(args)),
        Command::Config(args) => report::exit(commands::config::run(args)),
        Command::Token(args) => report::exit(commands::token::run(args)),
        Command::GatewayKey(args) => report::exit(commands::gateway_key::run(args)),
        Command::Relay(args) => report::exit(commands::relay::run(args)),
        Command::Proxy(args) => report::exit(commands::proxy::run(args)),
        Command::Get(args) => commands::get::run(args),
        Command::Inspect(args) => report::exit(commands::inspect::run(args)),
        Command::Doctor(args) => report::exit(commands::doctor::run(&args)),
        Command::Keygen(args) => report::exit(commands::signing_key::run(&args)),
        Command::Presets(args) => report::exit(commands::presets::run(&args)),
        Command::Version(args) => report::exit(commands::version::run(&args)),
    }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "openapi")]
    mod openapi;
    mod reference;

    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    /// Adds the names of a command's options, and of its commands, to `names`.
    fn add_names(command: &clap::Command, names: &mut BTreeSet<String>) {
        names.extend(command.get_arguments().filter_map(|arg| arg.get_long()).map(String::from));
        for command in command.get_subcommands() {
            names.insert(command.get_name().into());
            add_names(command, names);
        }
    }

    /// Calls `found` with each name in the slots of texts in the sources below `folder`.
    fn each_slot(folder: &Path, found: &mut impl FnMut(&str)) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                each_slot(&path, found);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                for marker in ["Wording", "Slot::Option", "Slot::Switch", "Slot::Setting", "Slot::Command"] {
                    for part in text.split(marker).skip(1).filter_map(|part| part.strip_prefix('(')) {
                        let Some(part) = part.trim_start().strip_prefix('"') else { continue };
                        let literal = part.split('"').next().unwrap_or_default();
                        let slots = literal.split('{').skip(usize::from(marker == "Wording"));
                        slots.filter_map(|slot| slot.split(['}', '=', '(']).next()).for_each(&mut *found);
                    }
                }
            }
        }
    }

    #[test]
    fn texts_of_libraries_name_options_that_there_are() {
        let mut names = BTreeSet::new();
        let mut count = 0;
        add_names(&Cli::command(), &mut names);
        each_slot(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut |name| {
            count += 1;
            assert!(names.contains(name), "no command has the option {name:?}");
        });
        assert!(count > 50, "{count}");
    }
}
