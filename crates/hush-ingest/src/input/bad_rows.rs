//! The file of bad rows: a JSON object for each row that a build leaves out.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use hush_protocol::wording::Wording;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{IngestError, Input, MAX_ROW_SIZE, Place, formats::folder::walk::id};

/// Refuses a file of bad rows that is one of the inputs: reading it would overwrite it.
pub(crate) fn check_apart(bad_rows: &Path, inputs: &[Input]) -> Result<(), IngestError> {
    let Ok(own) = bad_rows.metadata().as_ref().map(id) else { return Ok(()) };
    inputs.iter().find(|input: &&Input| matches!(input, Input::Path(path) if path.metadata().is_ok_and(|file| id(&file) == own))).map_or(Ok(()), |input| {
        let reason = Wording("{skip-bad-rows} names the input itself: choose another file");
        Err(IngestError::Option { path: input.path().into(), reason })
    })
}

/// Returns whether a file can be overwritten without loss: it is missing or empty, begins with a bad row, or is a pipe or terminal.
fn may_be_replaced(path: &Path) -> io::Result<bool> {
    if !path.try_exists()? || !path.metadata()?.is_file() {
        return Ok(true);
    }
    let mut line = Vec::new();
    BufReader::new(File::open(path)?).take(MAX_ROW_SIZE).read_until(b'\n', &mut line)?;
    let found = serde_json::from_slice::<FoundRow>(&line);
    Ok(line.is_empty()
        || found.is_ok_and(|found| found.row > 0 && !found.input.is_empty() && !found.error.is_empty()))
}

/// The fields by which a line of the file is recognized.
#[derive(Deserialize)]
struct FoundRow {
    input: String,
    row: u64,
    error: String,
}

/// A writer of bad rows to a file.
pub(crate) struct BadRows {
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
    /// The fields of a row of CSV, or the text of a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'r Value>,
}

impl BadRows {
    /// Creates the file, or replaces a file with the bad rows of an earlier build.
    pub(crate) fn create(path: &Path) -> Result<Self, IngestError> {
        let failed = |source| IngestError::BadRowsFile { path: path.into(), source };
        if !may_be_replaced(path).map_err(failed)? {
            let reason = "it is there, and has no bad rows of an earlier build: choose another file";
            return Err(failed(io::Error::new(io::ErrorKind::AlreadyExists, reason)));
        }
        let file = File::create(path).map_err(failed)?;
        Ok(Self { path: path.into(), file: BufWriter::new(file), count: 0 })
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of bad rows so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Writes the row at `place` with its error. `content` is the row, if the reader has it.
    pub(crate) fn write(
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

    /// Writes the buffered rows to the file.
    pub(crate) fn flush(&mut self) -> Result<(), IngestError> {
        self.file.flush().map_err(|source| IngestError::BadRowsFile { path: self.path.clone(), source })
    }
}
