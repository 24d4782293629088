//! The environment variables of the program, `HUSHDB_*`.

use std::env;

use clap::{Args, Command};

use super::{config, serve::ServeArgs};

/// The least similarity, from 0 to 1, at which one name may be a misspelling of another.
pub(crate) const ALIKE: f64 = 0.7;

const PREFIX: &str = "HUSHDB_";
/// The variables that are not settings of `serve`.
const OTHERS: [&str; 3] = ["HUSHDB_ADMIN", config::FILE, "HUSHDB_TOKEN"];
/// The beginnings of variables that Kubernetes sets in every container beside a service called `hushdb`.
const OF_KUBERNETES: [&str; 2] = ["HUSHDB_PORT", "HUSHDB_SERVICE_"];

/// Returns the value of a variable. An empty variable counts as unset, since scripts and units empty variables to unset them.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Warns of unknown variables: each may be a setting with a misspelled name.
pub(crate) fn warn_of_unknown() {
    let names: Vec<String> = env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    for line in unknown(&names) {
        say!("warning: {line}");
    }
}

/// Returns a line for each of `names` that looks like a variable of this program but is unknown.
fn unknown(names: &[String]) -> Vec<String> {
    let serve = ServeArgs::augment_args(Command::new("serve"));
    let mut known: Vec<String> = config::settings(&serve).map(config::variable).collect();
    known.extend(OTHERS.map(str::to_owned));
    let mut lines = Vec::new();
    for name in names {
        let is_of_kubernetes = OF_KUBERNETES.iter().any(|start| name.starts_with(start));
        if !name.starts_with(PREFIX) || known.contains(name) || is_of_kubernetes {
            continue;
        }
        let alike = known.iter().map(|known| (strsim::jaro_winkler(name, known), known));
        let nearest = alike.max_by(|a, b| a.0.total_cmp(&b.0));
        // All names begin alike, so only the rest is compared.
        let own = |name: &str| name.trim_start_matches(PREFIX).to_owned();
        let nearest = nearest.filter(|(_, known)| strsim::jaro_winkler(&own(name), &own(known)) >= ALIKE);
        let meant = nearest.map_or(String::new(), |(_, known)| format!(": did you mean {known}?"));
        lines.push(format!("the variable {} is not read{meant}", name.escape_debug()));
    }
    lines.sort_unstable();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_nothing_reads_is_told_with_the_one_that_may_be_meant() {
        let names = [
            "HUSHDB_TOKN",
            "HUSHDB_LSITEN",
            "HUSHDB_ZZZ",
            "HUSHDB_LISTEN",
            "HUSHDB_TOKEN",
            "HUSHDB_PORT_7700_TCP_ADDR",
            "HUSHDB_SERVICE_HOST",
            "PATH",
            "HUSHDB",
        ];
        assert_eq!(
            unknown(&names.map(str::to_owned)),
            [
                "the variable HUSHDB_LSITEN is not read: did you mean HUSHDB_LISTEN?",
                "the variable HUSHDB_TOKN is not read: did you mean HUSHDB_TOKEN?",
                "the variable HUSHDB_ZZZ is not read",
            ]
        );
    }
}
