//! What the user sees: errors in one line, sizes in words.

use std::{error::Error, process::ExitCode};

/// Prints an error in one line; exit code 0 or 2.
pub(crate) fn exit(result: Result<(), Box<dyn Error>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// A number of bytes in binary units, three digits or so.
pub(crate) fn bytes(count: u64) -> String {
    indicatif::BinaryBytes(count).to_string()
}
