//! Standard input, whose first bytes or `--format` state its format.

use std::{io, path::Path};

use hush_protocol::{schema::Schema, wording::Wording};
use serde_json::Value;

use crate::input::key_list::without_mark;
use crate::{
    Format, IngestError, IngestOptions, LongField, Progress, ProgressUnit, Reader, Record,
    formats::{csv::CsvReader, json::JsonlReader, open_arrow_stream},
    input::{format::is_arrow, text::Text},
    record::projection::Projection,
};

/// A reader of standard input. Nothing is read before the first record is requested, since the writer may take a while.
pub(crate) enum StdinReader {
    /// The reader has not begun.
    Waiting(Box<IngestOptions>),
    Reading(Box<dyn Reader>),
}

impl StdinReader {
    /// The name of standard input in messages.
    pub(crate) const NAME: &str = "standard input";

    pub(crate) fn new(options: &IngestOptions) -> Result<Self, IngestError> {
        let path = Path::new(Self::NAME);
        let format = options.stated_format().unwrap_or(Format::Jsonl);
        options.check(path, format)?;
        if !format.is_stream() {
            let reason =
                Wording("{format} of standard input is csv, jsonl or arrow; write the input to a file first");
            return Err(IngestError::Option { path: path.into(), reason });
        }
        Ok(Self::Waiting(options.clone().into()))
    }
}

/// Creates the reader that the first bytes call for.
fn begin(options: &IngestOptions) -> Result<Box<dyn Reader>, IngestError> {
    let path = Path::new(StdinReader::NAME);
    let unreadable = |source| IngestError::Unreadable { path: path.into(), source };
    // The lock of standard input could not move to another thread.
    let mut text = Text::new(io::stdin(), None, None).map_err(unreadable)?;
    let head = text.head().map_err(unreadable)?;
    let is_arrow = is_arrow(&head);
    let first = without_mark(&head).unwrap_or(&head).trim_ascii_start().first();
    if options.stated_format().is_none() && !is_arrow && first.is_some_and(|byte| !b"{[".contains(byte)) {
        let reason = Wording(
            "{format} says what standard input is, csv, jsonl or arrow: it begins like no JSON and no Arrow",
        );
        return Err(IngestError::Option { path: path.into(), reason });
    }
    Ok(match options.stated_format() {
        Some(Format::Csv) => Box::new(CsvReader::new(path, text, options)?),
        Some(Format::Arrow) => open_arrow_stream(path, text, options)?,
        None if is_arrow => open_arrow_stream(path, text, options)?,
        _ => Box::new(JsonlReader::new(path, text, options)),
    })
}

impl Iterator for StdinReader {
    type Item = Result<Record, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Self::Waiting(options) = self {
            match begin(options) {
                Ok(reader) => *self = Self::Reading(reader),
                Err(error) => return Some(Err(error)),
            }
        }
        let Self::Reading(reader) = self else { return None };
        reader.next()
    }
}

impl Reader for StdinReader {
    fn progress(&self) -> Progress {
        match self {
            Self::Waiting(_) => Progress { read: 0, total: None, unit: ProgressUnit::Bytes },
            Self::Reading(reader) => reader.progress(),
        }
    }

    fn projection(&self) -> Option<&Projection> {
        match self {
            Self::Waiting(_) => None,
            Self::Reading(reader) => reader.projection(),
        }
    }

    fn columns(&self) -> Option<Schema> {
        match self {
            Self::Waiting(_) => None,
            Self::Reading(reader) => reader.columns(),
        }
    }

    fn content(&self) -> Option<Value> {
        match self {
            Self::Waiting(_) => None,
            Self::Reading(reader) => reader.content(),
        }
    }

    fn longest_field(&self) -> Option<LongField> {
        match self {
            Self::Waiting(_) => None,
            Self::Reading(reader) => reader.longest_field(),
        }
    }
}
