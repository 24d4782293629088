//! The program `hushdb`, which is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    hushdb::main(std::env::args_os())
}
