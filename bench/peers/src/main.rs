//! `hush-peers`: published implementations of private look-ups beside HushDB's protocols, on the same records in one run.
//!
//! Every decoded answer is compared with its record. One thread does all work.

mod ours;
mod peers;
mod report;
mod shape;

use std::process::ExitCode;

use clap::Parser;
use hush_cpu::Cpu;
use hush_peers_common::{Error, Row};

use peers::Peer;
use report::Report;

/// Measures published implementations of private look-ups beside HushDB, on the same records.
#[derive(Parser)]
#[command(name = "hush-peers", version, about, max_term_width = 100)]
struct Args {
    /// Bytes of all records (suffixes K, M, G).
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = parse_size)]
    size: usize,
    /// Bytes of all records of tables by key (suffixes K, M, G): the setup of chalametpir takes minutes for 16M.
    #[arg(long, value_name = "BYTES", default_value = "8M", value_parser = parse_size)]
    keyed_size: usize,
    /// Bytes of a record; a size that suits each peer if not given.
    #[arg(long, alias = "records-bytes", value_name = "BYTES", value_parser = parse_size)]
    record_bytes: Option<usize>,
    /// Measured look-ups of each row, at least 3. Quick schemes are asked more often.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = parse_runs)]
    runs: usize,
    /// Prints JSON: one object a row.
    #[arg(long)]
    json: bool,
    /// Peers to measure; all but inspire if not given.
    #[arg(value_enum)]
    peers: Vec<Peer>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hush-peers: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures all groups of the chosen peers. A failure does not stop the other groups.
fn run(args: &Args) -> Result<(), Error> {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let machine = hush_engine::cpu_model();
    let level = Cpu::new(1)?.level().name().to_owned();
    let mut report = Report::new(args.json);
    let mut failures = Vec::new();
    for group in peers::groups(&args.peers) {
        let mut rows = Vec::new();
        for measured in group.measure(args) {
            match measured {
                Ok(row) => rows.push(Row { machine: machine.clone(), level: level.clone(), ..row }),
                Err(error) => failures.push(error.to_string()),
            }
        }
        report.print(&rows)?;
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\nhush-peers: ").into()) }
}

/// Parses a number of bytes, with a suffix K, M or G if there is one. Fails with advice if it is malformed or zero.
fn parse_size(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.chars().last() {
        Some('K' | 'k') => (&text[..text.len() - 1], 10),
        Some('M' | 'm') => (&text[..text.len() - 1], 20),
        Some('G' | 'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let count = digits.parse::<usize>().ok().and_then(|count| count.checked_mul(1 << shift));
    count.filter(|&count| count > 0).ok_or_else(|| format!("'{text}' is not a size: use 512M or 1G"))
}

/// Parses a number of runs. Fails with advice if it is malformed or below 3.
fn parse_runs(text: &str) -> Result<usize, String> {
    let runs = text.parse().ok().filter(|&runs: &usize| runs >= 3);
    runs.ok_or_else(|| format!("'{text}' is not a number of runs: use 3 or more"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!(["64M", "1g", "100"].map(parse_size), [Ok(64 << 20), Ok(1 << 30), Ok(100)]);
        assert!(["", "M", "0", "1T", "-1", "99999999999G"].iter().all(|text| parse_size(text).is_err()));
        assert_eq!(parse_runs("3"), Ok(3));
        assert!(parse_runs("2").is_err());
    }
}
