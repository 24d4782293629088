//! ChalametPIR, which runs as a program of its own: it demands another version of `rayon` than HushDB.

use std::{env, process::Command};

use hush_peers_common::{Error, Records, Row};

/// The name of the program, which is beside this one.
const PROGRAM: &str = "hush-peers-chalamet";

/// Measures a table by key in another process, with one thread.
pub(crate) fn run(records: &Records, runs: usize) -> Result<Row, Error> {
    let program = env::current_exe()?.with_file_name(PROGRAM);
    let numbers = [records.count(), records.record_bytes(), runs].map(|number| number.to_string());
    let output =
        Command::new(&program).args(numbers).env("RAYON_NUM_THREADS", "1").output().map_err(|error| {
            format!("{}: {error}: run bench/peers/run.sh, which builds it", program.display())
        })?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        return Err(format!("chalametpir: {}: {}", output.status, told.trim()).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
