//! The command `hushdb presets`: the parameter sets, with the numbers that the code uses.

use std::{error::Error, fmt};

use clap::Args;
use hush_he::{
    entities::MatrixStructure,
    params::{ErrorDistribution, LatticeProblem, MIN_SECURITY_BITS},
};
use hush_protocol::{
    Protocol,
    presets::{self, Preset},
};
use serde::Serialize;

use crate::report;

/// List the parameter sets, with their security and the problems that it rests on.
#[derive(Args)]
pub(crate) struct PresetsArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct PresetList {
    /// The least security of a default.
    min_security_bits: f64,
    presets: Vec<PresetRow>,
}

#[derive(Serialize)]
struct PresetRow {
    name: &'static str,
    protocols: Vec<Protocol>,
    security_bits: f64,
    problems: Vec<PresetProblem>,
}

#[derive(Serialize)]
struct PresetProblem {
    kind: &'static str,
    /// The dimension as plain LWE.
    n: usize,
    /// The degree of the ring, if the samples have its structure.
    ring_degree: Option<usize>,
    /// The modulus as decimal text, since it exceeds the numbers of JSON.
    q: String,
    log2_q: f64,
    secret: Distribution,
    error: Distribution,
    /// The most samples under one secret, if their number matters.
    max_samples: Option<usize>,
}

#[derive(Serialize)]
struct Distribution {
    distribution: &'static str,
    std: f64,
}

pub(crate) fn run(args: &PresetsArgs) -> Result<(), Box<dyn Error>> {
    let document = list();
    let text = if args.json { serde_json::to_string_pretty(&document)? + "\n" } else { lines(&document) };
    Ok(report::print(&text)?)
}

fn list() -> PresetList {
    let presets = presets::presets().into_iter().map(row).collect();
    PresetList { min_security_bits: MIN_SECURITY_BITS, presets }
}

/// Returns the output of the command, for the reference page.
#[cfg(test)]
pub(crate) fn text() -> String {
    lines(&list())
}

fn row(preset: Preset) -> PresetRow {
    let Preset { name, security_bits, problems, protocols } = preset;
    PresetRow { name, protocols, security_bits, problems: problems.iter().map(problem).collect() }
}

fn problem(problem: &LatticeProblem) -> PresetProblem {
    PresetProblem {
        kind: problem.kind(),
        n: problem.n,
        ring_degree: match problem.structure {
            MatrixStructure::Plain => None,
            MatrixStructure::Ring { degree } => Some(degree),
        },
        q: problem.modulus.to_string(),
        log2_q: problem.log2_modulus(),
        secret: Distribution { distribution: problem.secret.name(), std: problem.secret.std() },
        error: Distribution {
            distribution: match problem.error {
                ErrorDistribution::None => "zero",
                ErrorDistribution::Ternary => "ternary",
                ErrorDistribution::Gaussian(_) => "gaussian",
            },
            std: problem.error.std(),
        },
        max_samples: problem.max_samples,
    }
}

/// Returns a line for every problem. The first line of a preset also has the facts of the preset.
fn lines(document: &PresetList) -> String {
    let mut text = String::new();
    let mut line = |name: &str, bits: &str, facts: [&str; 5], protocols: &str| {
        let [kind, n, log2_q, error, secret] = facts;
        let line = format!(
            "{name:<30} {bits:>5}  {kind:<10} {n:>5} {log2_q:>6}  {error:<12} {secret:<12} {protocols}"
        );
        text += &format!("{}\n", line.trim_end());
    };
    line("preset", "bits", ["problem", "n", "log2 q", "error", "secret"], "protocols");
    for preset in &document.presets {
        let names = preset.protocols.iter().map(|protocol| protocol.name()).collect::<Vec<_>>().join(" ");
        let mut name = preset.name;
        let mut bits = format!("{:.1}", preset.security_bits);
        let mut names = names.as_str();
        if preset.problems.is_empty() {
            line(name, &bits, ["no secret", "", "", "", ""], names);
        }
        for problem in &preset.problems {
            let n = problem.n.to_string();
            let log2_q = format!("{:.1}", problem.log2_q);
            let error = problem.error.to_string();
            let secret = problem.secret.to_string();
            line(name, &bits, [problem.kind, &n, &log2_q, &error, &secret], names);
            (name, names) = ("", "");
            bits.clear();
        }
    }
    text
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.distribution {
            "gaussian" => write!(f, "gaussian {}", self.std),
            other => f.write_str(other),
        }
    }
}
