//! All output of the program: lines that cannot fail, results, errors in one line, sizes in words.
//!
//! The macros of `std` panic where standard error or standard output cannot be written, and so end a task of a server because the
//! reader of its log has gone. Lints refuse them everywhere else.

use std::{
    error::Error,
    fmt,
    io::{self, ErrorKind, Write, stderr, stdout},
    process::ExitCode,
};

/// Writes a line to standard error, formatted as by `eprintln!`. It cannot fail.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::report::write_line(::std::format_args!($($words)*))
    };
}

/// Writes a line to standard error. A reader that has gone and a full disk are ignored: the work matters more than its log.
pub(crate) fn write_line(line: fmt::Arguments<'_>) {
    // One write, so that lines of several threads do not mix.
    write_note(&format!("{line}\n"));
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
///
/// # Errors
/// Why the text cannot be written, for instance because the disk is full.
pub(crate) fn print(text: &str) -> Result<(), String> {
    written(stdout().write_all(text.as_bytes()))
}

/// The outcome of a command that has `written` to standard output.
///
/// # Errors
/// Why that failed, unless its reader has gone.
pub(crate) fn written(written: io::Result<()>) -> Result<(), String> {
    match written.and_then(|()| stdout().flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|error| format!("cannot write the output: {error}")),
    }
}

/// Prints an error in one line; exit code 0 or 2.
pub(crate) fn exit(result: Result<(), Box<dyn Error>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// A number of bytes in binary units, three digits or so.
pub(crate) fn bytes(count: u64) -> String {
    indicatif::BinaryBytes(count).to_string()
}
