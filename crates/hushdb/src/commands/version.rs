//! The command `hushdb version`: the source of this program, what it was built with, and the formats that it reads.

use std::error::Error;

use clap::Args;
use hush_cpu::Level;
use hush_protocol::{descriptor::DESCRIPTOR_VERSION, wire};
use hush_store::snapshot::FORMAT_VERSION;
use serde::Serialize;

use crate::report;

/// Print the version, the commit and the features of this program, and the formats that it reads.
#[derive(Args)]
pub(crate) struct VersionArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The facts of a program that do not depend on the machine.
#[derive(Serialize)]
struct VersionReport {
    version: &'static str,
    /// The commit that a release was built from. `None`, null in JSON, in a program that is not from a release.
    commit: Option<&'static str>,
    /// The target that the program was compiled for, such as `x86_64-unknown-linux-gnu`.
    target: &'static str,
    /// The optional features of the program, in alphabetical order.
    features: Vec<&'static str>,
    /// The levels of CPU kernels of the program. `hushdb doctor` prints the level that a machine has.
    levels: Vec<&'static str>,
    formats: Formats,
}

/// The versions of formats that the program writes and reads.
#[derive(Serialize)]
struct Formats {
    /// The version of the files of a table.
    snapshot: u32,
    /// The version of the descriptor of a table, which clients read.
    descriptor: u32,
    /// The version of requests and answers.
    messages: u32,
}

pub(crate) fn run(args: &VersionArgs) -> Result<(), Box<dyn Error>> {
    let report = VersionReport {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("HUSHDB_COMMIT"),
        target: env!("HUSHDB_TARGET"),
        features: features(),
        levels: Level::ALL.iter().map(|level| level.name()).collect(),
        formats: Formats {
            snapshot: FORMAT_VERSION,
            descriptor: DESCRIPTOR_VERSION,
            messages: wire::VERSION,
        },
    };
    let text = if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { lines(&report) };
    Ok(report::print(&text)?)
}

/// Returns the names of the features that this program was compiled with.
fn features() -> Vec<&'static str> {
    let all = [
        ("arrow", cfg!(feature = "arrow")),
        ("cuda", cfg!(feature = "cuda")),
        ("emulator", cfg!(feature = "emulator")),
        ("insecure-presets", cfg!(feature = "insecure-presets")),
        ("openapi", cfg!(feature = "openapi")),
        ("otlp", cfg!(feature = "otlp")),
        ("page", cfg!(feature = "page")),
        ("parquet", cfg!(feature = "parquet")),
        ("remote", cfg!(feature = "remote")),
        ("sqlite", cfg!(feature = "sqlite")),
    ];
    all.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect()
}

/// Formats the report, a line for each fact.
fn lines(report: &VersionReport) -> String {
    let VersionReport { version, commit, target, features, levels, formats } = report;
    let commit = commit.unwrap_or("unknown: this program is not from a release");
    let Formats { snapshot, descriptor, messages } = formats;
    format!(
        "hushdb {version}\ncommit    {commit}\ntarget    {target}\nfeatures  {}\nlevels    {}\n\
         formats   snapshot {snapshot}, descriptor {descriptor}, messages {messages}\n",
        features.join(" "),
        levels.join(" "),
    )
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// A feature that this command does not name would be missing from the facts of a release.
    #[test]
    fn the_features_are_those_of_the_manifest() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let manifest: toml::Table =
            toml::from_str(&fs::read_to_string(here.join("Cargo.toml")).unwrap()).unwrap();
        let named = fs::read_to_string(here.join("src/commands/version.rs")).unwrap();
        for feature in manifest["features"].as_table().unwrap().keys().filter(|name| *name != "default") {
            assert!(named.contains(&format!("(\"{feature}\", cfg!(feature = \"{feature}\"))")), "{feature}");
        }
    }
}
