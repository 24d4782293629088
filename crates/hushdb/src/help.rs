//! The help of commands, with options in groups. `--help` prints the options that people use first, `--help-all` prints all.

use clap::Command;

/// The groups of a command's options, and the options of its short help.
struct Help {
    command: &'static str,
    groups: &'static [(&'static str, &'static [&'static str])],
    first: &'static [&'static str],
    example: &'static str,
    more: &'static str,
}

const INPUT: (&str, &[&str]) = (
    "Input",
    &[
        "out",
        "key",
        "value",
        "format",
        "separator",
        "no-header",
        "header",
        "quote",
        "escape",
        "sql",
        "table",
        "skip-bad-rows",
        "as",
        "hidden",
        "follow-links",
        "expect-rows",
        "normalize",
        "on-duplicate",
        "max-value-size",
        "records",
        "size",
        "lengths",
    ],
);
const SIZE: (&str, &[&str]) = (
    "Size and speed",
    &[
        "goal",
        "max-memory",
        "max-latency",
        "max-upload",
        "max-download",
        "max-setup",
        "clients",
        "lookups-per-client",
        "up",
        "down",
        "price-core-hour",
        "price-gigabyte",
    ],
);
const PRIVACY: (&str, &[&str]) = ("Privacy and trust", &["linkable", "sign", "sign-as", "serial"]);
const MACHINE: (&str, &[&str]) = (
    "Machine",
    &[
        "machine",
        "save-machine",
        "recalibrate",
        "threads",
        "backend",
        "force-size",
        "node",
        "lookups-per-second",
        "replicas",
        "parts",
        "weights",
    ],
);

const COMMANDS: &[Help] = &[
    Help {
        command: "build",
        groups: &[
            INPUT,
            (
                "Table",
                &[
                    "protocol",
                    "preset",
                    "updatable",
                    "changes",
                    "compress",
                    "max-tiers",
                    "tiers",
                    "filter",
                    "form",
                    "fingerprint-bytes",
                    "columns",
                    "force",
                ],
            ),
            PRIVACY,
            SIZE,
            MACHINE,
        ],
        first: &[
            "out",
            "key",
            "value",
            "format",
            "protocol",
            "updatable",
            "goal",
            "max-memory",
            "max-latency",
            "force",
        ],
        example: "Example: hushdb build people.csv --key email --value name --out people",
        more: "Print all options: hushdb build --help-all",
    },
    Help {
        command: "plan",
        groups: &[
            INPUT,
            ("Table", &["protocol", "max-tiers", "all", "json", "plot"]),
            PRIVACY,
            SIZE,
            MACHINE,
        ],
        first: &[
            "key",
            "value",
            "records",
            "size",
            "goal",
            "max-memory",
            "max-latency",
            "all",
            "json",
            "node",
        ],
        example: "Example: hushdb plan people.csv --key email --max-memory 8G",
        more: "Print all options: hushdb plan --help-all",
    },
    Help {
        command: "serve",
        groups: &[
            (
                "Address",
                &["listen", "listen-health", "listen-admin", "allowed-hosts", "allow-origin", "page", "name"],
            ),
            ("Access", &["open", "tokens", "tls-cert", "tls-key", "tls-client-ca", "gateway-keys"]),
            (
                "Tables",
                &[
                    "data",
                    "task-source",
                    "upload-lifetime",
                    "cache",
                    "watch",
                    "compact-at",
                    "verify",
                    "require-tables",
                    "memory",
                ],
            ),
            ("Machine", &["config", "threads", "backend", "log-format", "otlp"]),
        ],
        first: &[
            "listen", "open", "tokens", "tls-cert", "tls-key", "data", "watch", "config", "page", "memory",
            "backend",
        ],
        example: "Example: hushdb serve people --listen 127.0.0.1:7700",
        more: "Print all options, with the limits: hushdb serve --help-all",
    },
    Help {
        command: "get",
        groups: &[
            ("Look-up", &["table", "index", "keys-file", "prepare", "json", "stats"]),
            (
                "Privacy and trust",
                &["trust", "epoch", "allow-weak", "relay", "ohttp-keys", "lookups-per-key", "no-cache"],
            ),
            (
                "Connection",
                &[
                    "token",
                    "ca-cert",
                    "client-cert",
                    "client-key",
                    "insecure",
                    "timeout",
                    "attempts",
                    "max-hint",
                ],
            ),
        ],
        first: &[
            "table",
            "index",
            "keys-file",
            "json",
            "stats",
            "trust",
            "relay",
            "token",
            "ca-cert",
            "timeout",
        ],
        example: "Example: hushdb get http://127.0.0.1:7700 alice@example.org",
        more: "Print all options: hushdb get --help-all",
    },
];

/// Puts the options of commands into groups, and hides all but the first ones from the short help.
pub(crate) fn grouped(hushdb: Command) -> Command {
    COMMANDS.iter().fold(hushdb, |hushdb, help| {
        hushdb.mut_subcommand(help.command, |command| {
            let command = command.mut_args(|arg| {
                let Some(name) = arg.get_long().map(str::to_owned) else { return arg };
                if name.starts_with("help") {
                    return arg;
                }
                let heading = help.groups.iter().find(|(_, options)| options.contains(&&*name));
                let arg = arg.help_heading(heading.map_or("Limits", |(heading, _)| *heading));
                arg.hide_short_help(!help.first.contains(&&*name))
            });
            command.after_help(format!("{}\n{}", help.example, help.more)).after_long_help(help.example)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command;

    #[test]
    fn every_name_is_an_option_of_some_command() {
        let hushdb = command();
        for help in COMMANDS {
            let found = hushdb.find_subcommand(help.command).unwrap();
            assert!(
                help.first
                    .iter()
                    .all(|name: &&str| found.get_arguments().any(|arg| arg.get_long() == Some(name))),
                "{}: an option of the short help is missing",
                help.command
            );
            // Commands share groups, and some commands lack some of the options.
            for name in help.groups.iter().flat_map(|(_, options)| *options) {
                let by_any = hushdb.get_subcommands().flat_map(Command::get_arguments);
                assert!(by_any.into_iter().any(|arg| arg.get_long() == Some(name)), "{name}");
            }
        }
    }

    #[test]
    fn the_short_help_of_build_fits_two_screens() {
        let help = command().find_subcommand_mut("build").unwrap().render_help().to_string();
        assert!(help.lines().count() <= 48, "{help}");
        assert!(help.contains("--goal") && !help.contains("--fingerprint-bytes"), "{help}");
        let all = command().find_subcommand_mut("build").unwrap().render_long_help().to_string();
        assert!(all.contains("--fingerprint-bytes") && all.contains("Privacy and trust:"), "{all}");
    }
}
