//! Whether time tells secrets, by two tools over one list of cases (`cases.rs`, `tables.rs`).
//!
//! * `taint`, under valgrind: every secret counts as undefined memory. A branch or an address that depends on one is an error, and
//!   `watch.py` judges it.
//! * `welch SECONDS`: the times of a fixed secret and of random ones are compared by Welch's t (`welch.rs`).
//!
//! Each tool must find the planted leaks (`planted.rs`), and nothing in their controls.

mod cases;
mod planted;
mod tables;
mod welch;

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
};

use hush_testkit::memcheck;

use cases::{Case, Secret};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_clean = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["taint", names @ ..] if memcheck::is_watched() => taint(names),
        ["welch", seconds, names @ ..] => seconds.parse().map_or(Ok(false), |seconds| welch(seconds, names)),
        _ => say("usage: taint [NAME..] under valgrind, or welch SECONDS [NAME..]").map(|()| false),
    };
    if matches!(is_clean, Ok(true)) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Returns the cases whose names contain one of `names`, or all cases.
fn chosen(names: &[&str]) -> Vec<Case> {
    let all = planted::cases().into_iter().chain(cases::all()).chain(tables::all());
    all.filter(|case| names.is_empty() || names.iter().any(|name| case.name.contains(name))).collect()
}

/// Runs the cases with undefined secrets, and names each behind its errors.
fn taint(names: &[&str]) -> io::Result<bool> {
    for case in chosen(names).iter().filter(|case| case.told.is_none()) {
        let mut secret = Secret::fixed(true);
        secret.mark();
        (case.start)(&secret)(&secret)();
        say(&format!("case {}", case.name))?;
    }
    Ok(true)
}

/// Times the cases. Returns whether times differ where leaks were planted, and nowhere else but where a difference is told.
fn welch(seconds: f64, names: &[&str]) -> io::Result<bool> {
    let mut is_clean = true;
    for case in chosen(names) {
        let first = welch::compare(&case, seconds);
        // A difference counts if it is there twice, with other secrets, in one direction.
        let found = first.is_significant().then(|| welch::compare(&case, seconds));
        let tells = found.as_ref().is_some_and(|second| second.is_significant() && second.is_alike(&first));
        let is_right = case.told.is_some() || tells == case.is_planted;
        let again = found.map(|second| format!(", again {second}")).unwrap_or_default();
        let told = case.told.map(|why| format!(" (told: {why})")).unwrap_or_default();
        say(&format!("{} {}: {first}{again}{told}", if is_right { "ok  " } else { "FAIL" }, case.name))?;
        is_clean &= is_right;
    }
    Ok(is_clean)
}
