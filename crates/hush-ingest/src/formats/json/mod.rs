//! JSONL, one JSON object per line, in UTF-8; and JSON, an array of objects. Empty lines are skipped.
//!
//! Without `--value`, the fields of the first object are the columns. A value field that an object lacks is null.

pub(crate) mod objects;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
    path::{Path, PathBuf},
};

use serde::{
    Deserializer,
    de::{DeserializeSeed, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use crate::{
    IngestError, IngestOptions, MAX_ROW_SIZE, Place, Progress, Reader, Record,
    formats::json::objects::{JsonFault, JsonObjects},
    input::text::Text,
    record::{
        cell::{Cell, append_compact_json},
        projection::{FirstColumns, Projection},
    },
};

/// Reads the objects of a text.
pub(crate) struct JsonlReader {
    path: PathBuf,
    objects: JsonObjects,
    options: IngestOptions,
    columns: Option<Columns>,
    row: u64,
}

/// The columns, and the index of each by its name.
struct Columns {
    projection: Projection,
    by_name: HashMap<String, usize>,
    /// Whether a field that is no column is refused.
    closed: bool,
    /// Whether an object so far has had each column.
    seen: Vec<bool>,
    /// The fields of the first object.
    available: Vec<String>,
}

impl JsonlReader {
    /// Reads from `text`. Messages name `path`.
    pub(crate) fn new(path: &Path, text: Text, options: &IngestOptions) -> Self {
        let objects = JsonObjects::new(text);
        let options = options.clone();
        Self { path: path.into(), objects, options, columns: None, row: 0 }
    }

    fn place(&self) -> Place {
        Place { path: self.path.clone(), row: self.row, line: Some(self.objects.line()) }
    }

    /// Reads the next object; returns `false` at the end of the input.
    fn next_object(&mut self) -> Result<bool, IngestError> {
        if self.objects.is_new() {
            self.objects.text().skip_mark(&self.path)?;
        }
        let read = self.objects.read();
        self.row += u64::from(!matches!(read, Ok(false)));
        read.map_err(|fault| match fault {
            JsonFault::Io(source) => IngestError::Unreadable { path: self.path.clone(), source },
            JsonFault::TooLong => IngestError::RowTooLong { place: self.place(), limit: MAX_ROW_SIZE },
            JsonFault::Array(problem) => IngestError::JsonArray { place: self.place(), problem },
        })
    }

    fn record(&mut self) -> Result<Record, IngestError> {
        let path = &self.path;
        let row = self.row;
        let objects = &self.objects;
        let place = || Place { path: path.clone(), row, line: Some(objects.line()) };
        let text = std::str::from_utf8(objects.object())
            .map_err(|_| IngestError::BadUtf8 { place: place(), column: None })?;
        let invalid = |error: serde_json::Error| {
            // At the end of a text the parser counts from the byte before the error.
            let (line, byte) = objects.place_of(error.line(), error.column().clamp(1, text.len().max(1)));
            let message = error.to_string();
            let message = match message.split(" at line ").next().unwrap_or_default() {
                // An object over several lines is a common mistake, since most JSON is written for people.
                _ if error.is_eof() && objects.is_lines() => {
                    "the line ends within the object (one object is one line, or all are in one array)"
                }
                message => message,
            };
            let message = message.to_owned();
            IngestError::InvalidJson { place: Place { line: Some(line), ..place() }, message, byte }
        };
        let found = match text.trim_ascii_start().as_bytes().first() {
            Some(b'[') => Some("an array"),
            Some(b'"') => Some("a string"),
            Some(b'n') => Some("null"),
            Some(b't' | b'f') => Some("a boolean"),
            Some(b'-' | b'0'..=b'9') => Some("a number"),
            _ => None,
        };
        if let Some(found) = found {
            return Err(IngestError::NotAnObject { place: place(), found });
        }
        let columns = match &mut self.columns {
            Some(columns) => columns,
            none => {
                none.insert(Columns::of_first(path, parse_names(text).map_err(&invalid)?, &self.options)?)
            }
        };
        let fields = columns.fields(text, &place, &invalid)?;
        let projection = &columns.projection;
        if let Some(key) = projection.keys.iter().find(|key| fields[key.index].is_none()) {
            return Err(IngestError::MissingKeyField { place: place(), column: key.name.clone() });
        }
        projection.record(place, |column| match fields[column.index] {
            Some(field) => field_cell(field.get()).map_err(&invalid),
            None => Ok(Cell::Null),
        })
    }

    /// Checks, at the end of the input, that each column was in some object: a column that was in none is misspelt.
    fn check_all_seen(&self) -> Result<(), IngestError> {
        let Some(columns) = &self.columns else { return Ok(()) };
        match columns.projection.columns().find(|column| !columns.seen[column.index]) {
            // Only the first input decides which columns there are.
            Some(column) if self.options.first.is_none() => Err(IngestError::MissingColumn {
                path: self.path.clone(),
                column: column.name.clone(),
                available: columns.available.clone(),
            }),
            _ => Ok(()),
        }
    }
}

impl Iterator for JsonlReader {
    type Item = Result<Record, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_object() {
            Ok(true) => Some(self.record()),
            Ok(false) => self.check_all_seen().err().map(Err),
            Err(error) => Some(Err(error)),
        }
    }
}

impl Reader for JsonlReader {
    fn progress(&self) -> Progress {
        self.objects.progress()
    }

    fn content(&self) -> Option<Value> {
        Some(String::from_utf8_lossy(self.objects.object()).into())
    }

    fn projection(&self) -> Option<&Projection> {
        Some(&self.columns.as_ref()?.projection)
    }
}

impl Columns {
    /// Chooses the columns in use, given the fields of the first object.
    fn of_first(path: &Path, available: Vec<String>, options: &IngestOptions) -> Result<Self, IngestError> {
        let mut names = available.clone();
        // A key must be in every object; a value may be missing in the first.
        let of_first = options.first.iter().flat_map(FirstColumns::values);
        let values = options.value.iter().map(String::as_str).chain(of_first);
        let missing: HashSet<&str> = values.filter(|name| !available.iter().any(|own| own == name)).collect();
        names.extend(missing.into_iter().map(str::to_owned));
        let projection = Projection::new(path, &names, options)?.untyped();
        let by_name = projection.columns().map(|column| (column.name.clone(), column.index)).collect();
        let closed = options.value.is_empty();
        Ok(Self { projection, by_name, closed, seen: vec![false; names.len()], available })
    }

    /// Returns the fields of an object, by column.
    fn fields<'a>(
        &mut self,
        text: &'a str,
        place: &impl Fn() -> Place,
        invalid: &impl Fn(serde_json::Error) -> IngestError,
    ) -> Result<Vec<Option<&'a RawValue>>, IngestError> {
        let mut fields = vec![None; self.seen.len()];
        let mut problem = None;
        parse_object(text, |name, value| match self.by_name.get(name) {
            Some(&index) if fields[index].is_some() => {
                problem.get_or_insert_with(|| IngestError::DuplicateField {
                    place: place(),
                    column: name.into(),
                });
            }
            Some(&index) => {
                fields[index] = Some(value);
                self.seen[index] = true;
            }
            None if self.closed => {
                problem.get_or_insert_with(|| IngestError::UnexpectedField {
                    place: place(),
                    column: name.into(),
                });
            }
            None => {}
        })
        .map_err(invalid)?;
        problem.map_or(Ok(fields), Err)
    }
}

/// Returns the names of the fields of an object, each once. A repeated name matters only where its field is used.
fn parse_names(text: &str) -> Result<Vec<String>, serde_json::Error> {
    let mut names: Vec<String> = Vec::new();
    let mut known = HashSet::new();
    parse_object(text, |name, _| {
        if known.insert(name.to_owned()) {
            names.push(name.into());
        }
    })?;
    Ok(names)
}

/// Calls `on_field` with the name and the JSON of every field of an object.
fn parse_object<'a>(
    text: &'a str,
    on_field: impl FnMut(&str, &'a RawValue),
) -> Result<(), serde_json::Error> {
    let mut parser = serde_json::Deserializer::from_str(text);
    parser.deserialize_map(ObjectVisitor(on_field))?;
    parser.end()
}

/// Converts a field to a cell. Numbers keep their text.
pub(crate) fn field_cell(json: &str) -> Result<Cell<'_>, serde_json::Error> {
    Ok(match json.as_bytes().first() {
        Some(b'n') => Cell::Null,
        Some(b't') => Cell::Bool(true),
        Some(b'f') => Cell::Bool(false),
        Some(b'"') if !json.contains('\\') => Cell::Text(Cow::Borrowed(&json[1..json.len() - 1])),
        Some(b'"') => Cell::Text(Cow::Owned(serde_json::from_str(json)?)),
        Some(b'[' | b'{') => {
            let mut compact = String::with_capacity(json.len());
            append_compact_json(json, &mut compact);
            Cell::Json(Cow::Owned(compact))
        }
        _ => Cell::Json(Cow::Borrowed(json)),
    })
}

/// A visitor that passes the fields of an object to a function, each value as its JSON text.
struct ObjectVisitor<F>(F);

impl<'de, F: FnMut(&str, &'de RawValue)> Visitor<'de> for ObjectVisitor<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut name = String::new();
        while map.next_key_seed(NameSeed(&mut name))?.is_some() {
            (self.0)(&name, map.next_value()?);
        }
        Ok(())
    }
}

/// A seed that reads the name of a field into a buffer, which spares an allocation per field.
struct NameSeed<'n>(&'n mut String);

impl<'de> DeserializeSeed<'de> for NameSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E>(self, name: &str) -> Result<(), E> {
        self.0.clear();
        self.0.push_str(name);
        Ok(())
    }
}
