//! All output of the program: lines that cannot fail, results, errors in one line, sizes in words.
//!
//! The macros of `std` panic if standard error or standard output cannot be written. A task of a server would then end because the
//! reader of its log has gone. Lints refuse these macros everywhere else.

use std::{
    error::Error,
    fmt,
    io::{self, ErrorKind, Write, stderr, stdout},
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use hush_protocol::wording::Slot;
use tracing::Level;

/// The target of lines of the program among the events of a JSON log.
pub(crate) const SAID: &str = "hushdb::said";

/// Whether lines are events of a JSON log.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Writes a line to standard error, formatted as by `eprintln!`, and cannot fail. A JSON log has it as an object of level INFO.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::report::write_line(::tracing::Level::INFO, None, ::std::format_args!($($words)*))
    };
}

/// Makes every later line of this process, and the message of a panic, an event of a JSON log, which must have been set up.
pub(crate) fn lines_are_json() {
    IS_JSON.store(true, Ordering::Relaxed);
    std::panic::set_hook(Box::new(|panic| write_line(Level::ERROR, None, format_args!("{panic}"))));
}

/// Returns whether lines are events of a JSON log.
pub(crate) fn are_lines_json() -> bool {
    IS_JSON.load(Ordering::Relaxed)
}

/// Writes a line to standard error. Errors, such as a full disk or a closed pipe, are ignored: the work matters more than its log.
pub(crate) fn write_line(level: Level, table: Option<&str>, line: fmt::Arguments<'_>) {
    if are_lines_json() {
        return match level {
            Level::ERROR => tracing::error!(target: SAID, table, "{line}"),
            Level::WARN => tracing::warn!(target: SAID, table, "{line}"),
            _ => tracing::info!(target: SAID, table, "{line}"),
        };
    }
    let table = table.map_or(String::new(), |table| format!("{table}: "));
    // There is one write, so that lines of several threads do not mix.
    write_note(&format!("{table}{line}\n"));
}

/// Writes text to standard error, such as a prompt, and cannot fail.
pub(crate) fn write_note(text: &str) {
    let _ = stderr().write_all(text.as_bytes());
}

/// A writer of the log to standard error, which ignores all errors.
pub(crate) struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the result of a command to standard output. A closed pipe is no error.
pub(crate) fn print(text: &str) -> Result<(), String> {
    written(stdout().write_all(text.as_bytes()))
}

/// Flushes standard output, and returns the outcome of a command that has `written` to it. A closed pipe is no error.
pub(crate) fn written(written: io::Result<()>) -> Result<(), String> {
    match written.and_then(|()| stdout().flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|error| format!("cannot write the output: {error}")),
    }
}

/// Words an option or a command in a text of a library as on the command line.
pub(crate) fn named(slot: &Slot<'_>) -> String {
    match slot {
        Slot::Option("token") => "HUSHDB_TOKEN or --token".into(),
        Slot::Option(name) | Slot::Switch(name) => format!("--{name}"),
        Slot::Setting(name, value) => format!("--{name} {value}"),
        Slot::Command(name, options) => {
            let options: String = options.iter().map(|option| format!(" {}", named(option))).collect();
            format!("'hushdb {name}{options}'")
        }
    }
}

/// Prints an error in one line. Returns exit code 0 or 2.
pub(crate) fn exit(result: Result<(), Box<dyn Error>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mark = if are_lines_json() { "" } else { "error: " };
            write_line(Level::ERROR, None, format_args!("{mark}{error}"));
            ExitCode::from(2)
        }
    }
}

/// Formats a number of bytes in binary units, with about three digits.
pub(crate) fn bytes(count: u64) -> String {
    indicatif::BinaryBytes(count).to_string()
}
