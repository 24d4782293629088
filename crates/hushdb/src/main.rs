//! The `hushdb` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    hushdb::main(std::env::args_os())
}
