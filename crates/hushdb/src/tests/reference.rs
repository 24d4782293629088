//! The tests of the reference pages that are written from the code: commands, settings, errors, parameter sets, metrics, protocols.

use std::{env, fmt::Write, fs, path::Path};

use clap::{Arg, Command};
use hush_protocol::{Code, Protocol, Remedy, any_page::Slots};
use hush_server::METRICS;

use crate::{
    command,
    commands::{
        config::layers::{key, settings, variable},
        presets,
    },
    report,
};

/// The variable that makes the tests write the pages.
pub(super) const WRITE: &str = "HUSHDB_WRITE_REFERENCE";

/// Compares a file of `docs/reference` with `text`, or writes it if [`WRITE`] is set.
#[track_caller]
pub(super) fn assert_written(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if env::var_os(WRITE).is_some() {
        fs::write(&path, text).unwrap();
    }
    assert!(
        fs::read_to_string(path).unwrap() == text,
        "docs/reference/{name} is out of date: make reference"
    );
}

/// Formats a text as a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "\\<").replace('\n', " ")
}

/// Returns the help of an argument, with the values that it takes.
fn help(arg: &Arg) -> String {
    let text = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let values: Vec<_> =
        arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    let takes_values = arg.get_action().takes_values() && !values.is_empty();
    let list = if takes_values { format!(" ({})", values.join(", ")) } else { String::new() };
    cell(&text) + &list
}

/// Returns the default of an argument as a cell.
fn default(arg: &Arg) -> String {
    let values: Vec<_> = arg.get_default_values().iter().filter_map(|value| value.to_str()).collect();
    let shown = arg.get_action().takes_values() && !values.is_empty();
    if shown { format!("`{}`", cell(&values.join(","))) } else { String::new() }
}

/// Returns an option as on the command line, or the name of a positional argument.
fn shown(arg: &Arg) -> String {
    let values =
        arg.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>")).collect::<Vec<_>>();
    let flag = arg.get_long().map(|long| format!("--{long}"));
    let values = if arg.get_action().takes_values() { values.join(" ") } else { String::new() };
    format!(
        "`{}`",
        flag.into_iter().chain(Some(values)).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    )
}

/// Adds the section of a command and those of its subcommands.
fn add_command(text: &mut String, name: &str, command: &mut Command) {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.render_usage().to_string().replace("Usage: ", "");
    writeln!(text, "\n## `{name}`\n\n{}\n\n```text\n{}\n```", about.trim_end(), usage.trim()).unwrap();
    let mut heading = None;
    for arg in command
        .get_arguments()
        .filter(|arg| !matches!(arg.get_id().as_str(), "help" | "help_all" | "version"))
    {
        let of = arg.get_help_heading().unwrap_or("Options");
        if heading != Some(of) {
            heading = Some(of);
            writeln!(text, "\n| {} | | default |\n|---|---|---|", of).unwrap();
        }
        writeln!(text, "| {} | {} | {} |", shown(arg), help(arg), default(arg)).unwrap();
    }
    for command in command.get_subcommands_mut().filter(|command| command.get_name() != "help") {
        let name = format!("{name} {}", command.get_name());
        add_command(text, &name, command);
    }
}

#[test]
fn commands_are_those_of_the_program() {
    let mut text = String::from(
        "# Commands\n\nLook up what a command of `hushdb` takes. `hushdb COMMAND --help` prints the options that people use \
         first, and `--help-all` prints all of them. `hushdb` ends with status 0 after success, 1 if a key was not found, and 2 \
         after an error.\n",
    );
    let mut program = command();
    program.build();
    for command in program.get_subcommands_mut().filter(|command| command.get_name() != "help") {
        let name = format!("hushdb {}", command.get_name());
        add_command(&mut text, &name, command);
    }
    assert_written("commands.md", &text);
}

#[test]
fn settings_are_those_of_serve() {
    let mut text = String::from(
        "# Settings of a server\n\nLook up a setting of `hushdb serve`: its key in the file of settings, its variable, its meaning \
         and its default. The option of the command line is the key with two dashes before it. The command line comes before the \
         environment, and both come before the file. [hushdb.toml](hushdb.toml) is a file with all settings in comments.\n\n\
         | key | variable | meaning | default |\n|---|---|---|---|\n",
    );
    let program = command();
    let serve = program.find_subcommand("serve").unwrap();
    for arg in settings(serve) {
        writeln!(text, "| `{}` | `{}` | {} | {} |", key(arg), variable(arg), help(arg), default(arg))
            .unwrap();
    }
    assert_written("settings.md", &text);
}

/// Returns what a program, or its user, does about an error.
fn remedy(remedy: Remedy) -> String {
    match remedy {
        Remedy::Caller => "correct the call".into(),
        Remedy::Operator => "tell who runs the server".into(),
        Remedy::Option(option) => format!("give `{option}`, or another value of it"),
        Remedy::Wait => {
            "wait as long as `Retry-After` says, then ask again; clients do so by themselves".into()
        }
        Remedy::Again => "ask again".into(),
        Remedy::FetchDescriptor => "fetch the table's descriptor again".into(),
        Remedy::UploadKeys => "upload the evaluation keys, and make new queries".into(),
        Remedy::FetchGatewayKey => "fetch the gateway's key again".into(),
        Remedy::SealAnew => "seal the request anew, with the date of the response if it has one".into(),
    }
}

#[test]
fn errors_are_those_of_the_code() {
    let mut text = String::from(
        "# Errors\n\nLook up a code of an error: what went wrong, and what to do about it. Codes, titles and statuses are part of the \
         API. A server sends the codes that have a status ([HTTP API](http-api.md#problems) says when); clients have all of them. \
         [Clients](clients.md#errors) explains the kinds.\n\n| code | status | kind | title | what to do |\n|---|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let status = code.status().map(|status| status.to_string()).unwrap_or_default();
        let word = code.word();
        let kind = code.kind();
        let title = code.title();
        writeln!(text, "| `{word}` | {status} | {kind:?} | {title} | {} |", remedy(code.remedy())).unwrap();
    }
    assert_written("errors.md", &text);
}

#[test]
fn parameter_sets_are_those_of_the_protocols() {
    let text = format!(
        "# Parameter sets\n\nLook up a parameter set: the protocols that take it, its security in bits, and the lattice problems that \
         the security rests on. `hushdb presets` prints the same. Sets that begin with `INSECURE` are for tests, and only test \
         programs take them. [Security estimates](../explanation/notes/security-estimates.md) has what each attack takes.\n\n\
         ```text\n{}```\n",
        presets::text()
    );
    assert_written("parameter-sets.md", &text);
}

#[test]
fn metrics_are_those_of_the_server() {
    let mut text = String::from(
        "# Metrics\n\nLook up a metric of a server: its kind, its labels and what it measures. `GET /metrics` has them in the OpenMetrics \
         text format. No metric depends on what is looked up. [Monitor a server](../how-to/monitor.md) says what a value tells, and what \
         to do.\n\n| metric | kind | labels | what it measures |\n|---|---|---|---|\n",
    );
    for metric in METRICS {
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        writeln!(text, "| `{}` | {kind} | {} | {} |", metric.shown(), labels.join(", "), cell(metric.help))
            .unwrap();
    }
    assert_written("metrics.md", &text);
}

/// Returns a row for each protocol: the sizes of a table of `count` records of `slot_bytes` bytes, which are looked up by position.
fn protocol_rows(count: usize, slot_bytes: usize) -> String {
    let mut rows = String::from(
        "| protocol | parameter set | query | answer | hint, downloaded once an epoch | evaluation keys, uploaded | server memory, of the table \
         |\n|---|---|--:|--:|--:|--:|--:|\n",
    );
    let slots = Slots { count, slot_bytes, by_key: false };
    for protocol in Protocol::ALL {
        let page = protocol.page();
        let set = page.default_set(slot_bytes);
        let table = page.shape(set, slots, None).and_then(|shape| page.table(set, shape));
        let cells = match table {
            Ok(table) => {
                let facts = table.facts();
                let traffic = [facts.query.total() as u64, facts.answer_bytes as u64];
                let set_up = [facts.hint_bytes, facts.key_bytes as u64];
                let sizes = [traffic, set_up].concat().into_iter();
                let sizes = sizes.map(|bytes| if bytes == 0 { "-".into() } else { report::bytes(bytes) });
                let sizes = sizes.collect::<Vec<String>>().join(" | ");
                format!("{sizes} | {:.2}", table.held_bytes() as f64 / (count * slot_bytes) as f64)
            }
            Err(error) => format!("not possible: {} | | | |", cell(&error.to_string())),
        };
        writeln!(rows, "| `{protocol}` | `{set}` | {cells} |").unwrap();
    }
    rows
}

#[test]
fn protocols_are_those_of_the_registry() {
    let text = format!(
        "# Protocols\n\nLook up what each protocol sends, receives and keeps. [Choosing a protocol](../explanation/choosing.md) says when to \
         take which.\n\nThe sizes follow from the table's shape. These are tables by position, with the parameter set and the columns that \
         the protocol takes if nothing else is given. Keys are uploaded anew after 256 look-ups or 30 days. `hushdb plan` prints the sizes \
         of any other table, and the times.\n\n\
         ## 262,144 records of 4 KiB (1 GiB)\n\n{}\n## 1,048,576 records of 32 bytes (32 MiB)\n\n{}",
        protocol_rows(1 << 18, 4096),
        protocol_rows(1 << 20, 32),
    );
    assert_written("protocols.md", &text);
}
