//! All output of the program: lines that cannot fail, results, errors in one line, sizes in words.
//!
//! The macros of `std` panic where standard error or standard output cannot be written, and so end a task of a server because the
//! reader of its log has gone. Lints refuse them everywhere else.

use std::{
    error::Error,
    fmt,
    io::{self, ErrorKind, Write, stderr, stdout},
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use hush_protocol::wording::Slot;
use tracing::Level;

/// The target of lines that are said, among the events of a log in JSON.
pub(crate) const SAID: &str = "hushdb::said";

/// Whether lines are events of a log in JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Writes a line to standard error, formatted as by `eprintln!`. It cannot fail. In a log in JSON it is an object of level INFO.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::report::write_line(::tracing::Level::INFO, None, ::std::format_args!($($words)*))
    };
}

/// From now on every line of this process is an event, for a log in JSON that has begun. So is the message of a panic.
pub(crate) fn lines_are_json() {
    IS_JSON.store(true, Ordering::Relaxed);
    std::panic::set_hook(Box::new(|panic| write_line(Level::ERROR, None, format_args!("{panic}"))));
}

/// Returns whether lines are events of a log in JSON.
pub(crate) fn are_lines_json() -> bool {
    IS_JSON.load(Ordering::Relaxed)
}

/// Writes a line to standard error. A reader that has gone and a full disk are ignored: the work matters more than its log.
pub(crate) fn write_line(level: Level, table: Option<&str>, line: fmt::Arguments<'_>) {
    if are_lines_json() {
        return match level {
            Level::ERROR => tracing::error!(target: SAID, table, "{line}"),
            Level::WARN => tracing::warn!(target: SAID, table, "{line}"),
            _ => tracing::info!(target: SAID, table, "{line}"),
        };
    }
    let table = table.map_or(String::new(), |table| format!("{table}: "));
    // One write, so that lines of several threads do not mix.
    write_note(&format!("{table}{line}\n"));
}

/// Writes text to standard error, such as a prompt. It cannot fail.
pub(crate) fn write_note(text: &str) {
    let _ = stderr().write_all(text.as_bytes());
}

/// Standard error for a log, which goes on although nobody reads it.
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

/// Writes the result of a command to standard output. A reader that has seen enough is no error.
pub(crate) fn print(text: &str) -> Result<(), String> {
    written(stdout().write_all(text.as_bytes()))
}

/// The outcome of a command that has `written` to standard output.
pub(crate) fn written(written: io::Result<()>) -> Result<(), String> {
    match written.and_then(|()| stdout().flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|error| format!("cannot write the output: {error}")),
    }
}

/// Returns the words what texts of libraries name, as a command line has it.
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

/// Prints an error in one line; exit code 0 or 2.
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

/// Returns a number of bytes in binary units, three digits or so.
pub(crate) fn bytes(count: u64) -> String {
    indicatif::BinaryBytes(count).to_string()
}
