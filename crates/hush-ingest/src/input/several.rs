//! Several inputs that make one table: files of the same columns, including those of folders and of patterns.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use glob::{GlobError, MatchOptions, glob_with};
use serde_json::Value;

use crate::{
    FolderAs, IngestError, IngestOptions, Input, LongField, Progress, Reader, Record,
    formats::folder::walk::{Skipped, Walk},
    open_one,
    record::projection::{FirstColumns, Projection},
};

/// Inputs that are read one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Several {
    name: PathBuf,
    inputs: Vec<Input>,
}

impl Several {
    pub(crate) fn new(inputs: Vec<Input>) -> Self {
        let first = inputs.first().map(|first| first.path().as_os_str().to_owned());
        let mut name = first.unwrap_or_else(|| OsString::from("no input"));
        if let Some(more @ 1..) = inputs.len().checked_sub(1) {
            name.push(format!(" and {more} more"));
        }
        Self { name: name.into(), inputs }
    }

    /// Returns the name of the inputs in messages.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// Returns the inputs in the order in which they are read.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }
}

/// The files of several inputs.
#[derive(Default)]
pub(crate) struct Files {
    inputs: Vec<Input>,
    skipped: Skipped,
}

impl Files {
    /// Returns the files of an input, in the order in which they are read; `None` for a single input that is read as it is.
    ///
    /// # Errors
    /// [`IngestError::NotAmongSeveral`]; a folder cannot be read.
    pub(crate) fn of(input: &Input, options: &IngestOptions) -> Result<Option<Self>, IngestError> {
        let is_of_rows = options.folder == Some(FolderAs::Rows);
        let inputs = match input {
            Input::Several(several) => several.inputs(),
            Input::Path(path) if matching(path, options)?.is_some() || (is_of_rows && path.is_dir()) => {
                std::slice::from_ref(input)
            }
            _ => return Ok(None),
        };
        let mut files = Self::default();
        for input in inputs {
            match input {
                Input::Path(path) => files.add(path, options)?,
                Input::Fetched(_) => files.inputs.push(input.clone()),
                _ => return Err(IngestError::NotAmongSeveral { path: input.path().into() }),
            }
        }
        Ok(Some(files))
    }

    /// Returns the files in the order in which they are read.
    pub(crate) fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// Adds a file, the files of a folder, or the files that match a pattern.
    fn add(&mut self, path: &Path, options: &IngestOptions) -> Result<(), IngestError> {
        if let Some(matching) = matching(path, options)? {
            return matching.iter().try_for_each(|path| self.add(path, options));
        }
        if !path.is_dir() {
            self.inputs.push(Input::Path(path.into()));
            return Ok(());
        }
        if options.folder != Some(FolderAs::Rows) {
            return Err(IngestError::NotAmongSeveral { path: path.into() });
        }
        let mut walk = Walk::new(path, options)?;
        for file in &mut walk {
            let file = file?;
            if !is_of_database(&file) {
                self.inputs.push(Input::Path(file));
            }
        }
        self.skipped += walk.skipped();
        Ok(())
    }
}

/// Returns whether a file belongs to the SQLite database beside it and is read with that database.
fn is_of_database(file: &Path) -> bool {
    let name = file.to_str().unwrap_or_default();
    ["-wal", "-shm", "-journal"]
        .iter()
        .any(|end| name.strip_suffix(end).is_some_and(|database| Path::new(database).is_file()))
}

/// Returns the paths that match a pattern, sorted. `None` if a file has this name, if it is no pattern, or if nothing matches.
///
/// # Errors
/// [`IngestError::Unreadable`] for a folder that may have matching names and cannot be read.
fn matching(path: &Path, options: &IngestOptions) -> Result<Option<Vec<PathBuf>>, IngestError> {
    let pattern = path.to_str().filter(|text| text.contains(['*', '?', '[']));
    let Some(pattern) = pattern.filter(|_| path.symlink_metadata().is_err()) else { return Ok(None) };
    let shell = MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: !options.hidden,
    };
    let Ok(paths) = glob_with(pattern, shell) else { return Ok(None) };
    let unreadable =
        |error: GlobError| IngestError::Unreadable { path: error.path().into(), source: error.into() };
    let paths = paths.map(|path| path.map_err(unreadable)).collect::<Result<Vec<_>, _>>()?;
    Ok((!paths.is_empty()).then_some(paths))
}

/// A reader of several files of the same columns, one after another.
pub(crate) struct SeveralReader {
    /// The files not opened for reading yet, the next one last.
    left: Vec<Input>,
    /// The options, with the columns of the first file once they are known.
    options: IngestOptions,
    reader: Box<dyn Reader>,
    file: PathBuf,
    /// Whether no record of the current file has been read yet.
    is_new: bool,
    /// The progress in the files before the current one.
    done: u64,
    total: Option<u64>,
    skipped: Skipped,
    longest: Option<LongField>,
}

impl SeveralReader {
    /// Opens the files. Messages name `name`. A file that cannot be read, or that has other columns, is refused before any file is
    /// read, unless only reading shows it.
    pub(crate) fn open(name: &Path, files: Files, options: &IngestOptions) -> Result<Self, IngestError> {
        let Files { inputs: mut left, skipped } = files;
        left.reverse();
        let Some(first) = left.pop() else { return Err(IngestError::EmptyInput { path: name.into() }) };
        let options = IngestOptions { folder: None, hidden: false, follow_links: false, ..options.clone() };
        let reader = open_one(&first, &options)?;
        let total = reader.progress().total;
        let mut own = Self {
            left,
            options,
            reader,
            file: first.path().into(),
            is_new: true,
            done: 0,
            total,
            skipped,
            longest: None,
        };
        own.check_columns()?;
        for file in own.left.iter().rev() {
            let reader = open_one(file, &own.options)?;
            own.check_types(&*reader, file.path())?;
            own.total = own.total.zip(reader.progress().total).map(|(before, more)| before + more);
        }
        Ok(own)
    }

    /// Checks the columns of the current file, once they are known. Those of the first file become the columns of all.
    fn check_columns(&mut self) -> Result<(), IngestError> {
        if self.options.first.is_none() {
            self.options.first = self.reader.projection().cloned().map(FirstColumns);
        }
        self.check_types(&*self.reader, &self.file)
    }

    fn check_types(&self, reader: &dyn Reader, file: &Path) -> Result<(), IngestError> {
        let (Some(first), Some(own)) = (&self.options.first, reader.projection()) else { return Ok(()) };
        own.check_types(file, first)
    }
}

impl Iterator for SeveralReader {
    type Item = Result<Record, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(record) = self.reader.next() else {
                let next = self.left.pop()?;
                self.longest = self.longest_field();
                self.done += self.reader.progress().read;
                match open_one(&next, &self.options) {
                    Ok(reader) => self.reader = reader,
                    Err(error) => return Some(Err(error)),
                }
                self.file = next.path().into();
                self.is_new = true;
                continue;
            };
            if record.is_ok()
                && std::mem::take(&mut self.is_new)
                && let Err(error) = self.check_columns()
            {
                return Some(Err(error));
            }
            return Some(record);
        }
    }
}

impl Reader for SeveralReader {
    fn progress(&self) -> Progress {
        let own = self.reader.progress();
        Progress { read: self.done + own.read, total: self.total, unit: own.unit }
    }

    fn skipped(&self) -> Skipped {
        self.skipped
    }

    fn projection(&self) -> Option<&Projection> {
        self.options.first.as_ref().map(|first| &first.0)
    }

    fn file(&self) -> Option<(usize, &Path)> {
        Some((self.left.len(), &self.file))
    }

    fn content(&self) -> Option<Value> {
        self.reader.content()
    }

    fn longest_field(&self) -> Option<LongField> {
        self.longest.iter().cloned().chain(self.reader.longest_field()).max_by_key(|field| field.bytes)
    }
}
