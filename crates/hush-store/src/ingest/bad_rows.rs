//! The file of bad rows: what a build leaves out, a JSON object for each.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;

use super::{IngestError, Input, Place, walk::id};

/// Refuses a file of bad rows that is one of the inputs: it would be written over while it is read.
pub(super) fn check_apart(bad_rows: &Path, inputs: &[Input]) -> Result<(), IngestError> {
    let Ok(own) = bad_rows.metadata().as_ref().map(id) else { return Ok(()) };
    let is_own = |input: &&Input| matches!(input, Input::Path(path) if path.metadata().is_ok_and(|file| id(&file) == own));
    inputs.iter().find(is_own).map_or(Ok(()), |input| {
        let reason = "names the input itself: choose another file";
        Err(IngestError::Option { path: input.path().into(), option: "--skip-bad-rows", reason })
    })
}

/// Writes bad rows to a file.
pub(super) struct BadRows {
    path: PathBuf,
    file: BufWriter<File>,
    count: u64,
}

/// A line of the file.
#[derive(Serialize)]
struct BadRow<'r> {
    input: String,
    row: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    error: String,
    /// The fields of a row of CSV, the text of a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'r Value>,
}

impl BadRows {
    /// Creates the file, in place of one that is there.
    pub(super) fn create(path: &Path) -> Result<Self, IngestError> {
        let file =
            File::create(path).map_err(|source| IngestError::BadRowsFile { path: path.into(), source })?;
        Ok(Self { path: path.into(), file: BufWriter::new(file), count: 0 })
    }

    /// Returns the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of rows so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Writes the row at `place`, of which the reader has `content`.
    pub(super) fn write(
        &mut self,
        place: &Place,
        error: &IngestError,
        content: Option<&Value>,
    ) -> Result<(), IngestError> {
        let Place { path, row, line } = place;
        let input = path.display().to_string();
        let bad = BadRow { input, row: *row, line: *line, error: error.to_string(), content };
        self.count += 1;
        serde_json::to_writer(&mut self.file, &bad)
            .map_err(Into::into)
            .and_then(|()| self.file.write_all(b"\n"))
            .map_err(|source| IngestError::BadRowsFile { path: self.path.clone(), source })
    }

    /// Writes what is left to write.
    pub(super) fn flush(&mut self) -> Result<(), IngestError> {
        self.file.flush().map_err(|source| IngestError::BadRowsFile { path: self.path.clone(), source })
    }
}
