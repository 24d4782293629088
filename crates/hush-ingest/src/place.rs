//! A place in an input.

use std::{fmt, path::PathBuf};

/// The place of an error in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The input file.
    pub path: PathBuf,
    /// The record, counted from 1; a CSV header is not a record.
    pub row: u64,
    /// The line on which the record starts, counted from 1, for formats that have lines.
    pub line: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, row {}", self.path.display(), self.row)?;
        match self.line {
            Some(line) => write!(f, " (line {line})"),
            None => Ok(()),
        }
    }
}
