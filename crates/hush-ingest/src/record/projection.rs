//! The projection of a row to a record: the columns of the key and of the value, and their form.

use std::path::Path;

use hush_protocol::{
    normal_form::NormalForm,
    schema::{self, ColumnType, KEY_SEPARATOR, Schema, append_single},
};

use crate::{
    IngestError, IngestOptions, Place,
    record::{cell::Cell, inferred::Inferred},
};

/// The most bytes that a key may have.
pub const MAX_KEY_SIZE: usize = 4096;

/// A record of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The key, at most [`MAX_KEY_SIZE`] bytes; `None` if records are looked up by row.
    pub key: Option<Vec<u8>>,
    /// The value.
    pub value: Vec<u8>,
}

/// A column in use.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// The index among the columns of the input.
    pub(crate) index: usize,
    own: ColumnType,
}

impl Column {
    fn new(name: &str, index: usize) -> Self {
        Self { name: name.into(), index, own: ColumnType::ANY }
    }
}

/// The columns that make the key and the value of a record.
#[derive(Clone, Debug)]
pub(crate) struct Projection {
    pub(crate) keys: Vec<Column>,
    pub(crate) values: Vec<Column>,
    /// The types inferred so far, for an input without types.
    inferred: Option<Inferred>,
    normalize: NormalForm,
    max_value_size: usize,
}

/// The columns of the first of several inputs.
#[derive(Clone, Debug)]
pub struct FirstColumns(pub(crate) Projection);

impl FirstColumns {
    /// Returns the names of the columns of the value.
    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        self.0.values.iter().map(|column| &column.name[..])
    }
}

impl Projection {
    /// Finds the columns of `options` among the columns of an input.
    pub(crate) fn new(
        path: &Path,
        available: &[String],
        options: &IngestOptions,
    ) -> Result<Self, IngestError> {
        let mut sorted: Vec<&String> = available
            .iter()
            .filter(|name: &&String| {
                options.value.is_empty() || options.value.contains(name) || options.key.contains(name)
            })
            .collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(IngestError::DuplicateColumn { path: path.into(), column: pair[0].clone() });
        }
        let find = |name: &String| {
            let index = available.iter().position(|column| column == name).ok_or_else(|| {
                IngestError::MissingColumn {
                    path: path.into(),
                    column: name.clone(),
                    available: available.to_vec(),
                }
            })?;
            Ok(Column::new(name, index))
        };
        let keys = options.key.iter().map(find).collect::<Result<Vec<_>, IngestError>>()?;
        let mut rest = available.iter().enumerate().filter(|(_, name)| !options.key.contains(name));
        let values = match &options.first {
            _ if !options.value.is_empty() => {
                options.value.iter().map(find).collect::<Result<_, IngestError>>()?
            }
            None => rest.map(|(index, name)| Column::new(name, index)).collect(),
            Some(first) => {
                if let Some((_, name)) = rest.find(|(_, name)| !first.values().any(|known| known == *name)) {
                    return Err(IngestError::UnexpectedColumn { path: path.into(), column: name.clone() });
                }
                first.values().map(|name| find(&name.to_owned())).collect::<Result<_, IngestError>>()?
            }
        };
        let inferred = options.first.as_ref().and_then(|first| first.0.inferred.clone());
        let normalize = options.normalize;
        let max_value_size = options.max_value_size as usize;
        Ok(Self { keys, values, inferred, normalize, max_value_size })
    }

    /// Refuses an input in which a column has another type than in the first of several inputs.
    pub(crate) fn check_types(&self, path: &Path, first: &FirstColumns) -> Result<(), IngestError> {
        let FirstColumns(first) = first;
        let is_inferred = self.inferred.is_some();
        let mut columns = self.columns().zip(first.columns());
        let other = columns.find(|(own, first_own)| own.own != first_own.own);
        let other = other.or_else(|| {
            let is_other = is_inferred != first.inferred.is_some();
            is_other.then(|| self.columns().zip(first.columns()).next()).flatten()
        });
        other.map_or(Ok(()), |(own, first_own)| {
            Err(IngestError::OtherType {
                path: path.into(),
                column: own.name.clone(),
                own: own.own.name().into(),
                first: first_own.own.name().into(),
            })
        })
    }

    /// Returns the columns in use. A column in both the key and the value comes twice.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &Column> {
        self.keys.iter().chain(&self.values)
    }

    /// Sets the types of the columns. `of` returns the type of a column of the input.
    pub(crate) fn typed(mut self, of: impl Fn(usize) -> ColumnType) -> Self {
        self.keys.iter_mut().chain(&mut self.values).for_each(|column| column.own = of(column.index));
        self.inferred = None;
        self
    }

    /// Infers the types of the columns from their fields.
    pub(crate) fn untyped(self) -> Self {
        let columns = self.columns().count();
        let inferred = self.inferred.unwrap_or_else(|| Inferred::new(columns));
        Self { inferred: Some(inferred), ..self }
    }

    /// Returns the columns in use, with their types.
    pub(crate) fn schema(&self) -> Schema {
        let mut key: Vec<_> = self
            .columns()
            .enumerate()
            .map(|(at, column): (usize, &Column)| {
                let inferred = self.inferred.as_ref().map(|inferred| inferred.column_type(at));
                schema::Column(column.name.clone(), inferred.unwrap_or_else(|| column.own.clone()))
            })
            .collect();
        let value = key.split_off(self.keys.len());
        Schema { key, value, normalize: self.normalize }
    }

    /// Refuses keys that are to be normalized and have no text: clients normalize text columns only.
    pub(crate) fn check_normalized(&self, path: &Path) -> Result<(), IngestError> {
        let Schema { key, normalize, .. } = self.schema();
        let is_mixed =
            |schema::Column(_, own): &schema::Column| self.inferred.is_some() && *own == ColumnType::ANY;
        let has_text = key.iter().any(|schema::Column(_, own)| own.is_text());
        let other = key.iter().find(|column| is_mixed(column)).or(if has_text { None } else { key.first() });
        match other {
            Some(schema::Column(name, _)) if !normalize.is_empty() => {
                Err(IngestError::KeyNotText { path: path.into(), column: name.clone() })
            }
            _ => Ok(()),
        }
    }

    fn note(&self, at: usize, cell: &Cell<'_>) {
        if let Some(inferred) = &self.inferred {
            inferred.note(at, cell, at < self.keys.len());
        }
    }

    /// Converts a row to a record. `cell` returns the field of a column, and `place` the place of the row.
    pub(crate) fn record<'a>(
        &self,
        place: impl Fn() -> Place,
        mut cell: impl FnMut(&Column) -> Result<Cell<'a>, IngestError>,
    ) -> Result<Record, IngestError> {
        let key = if self.keys.is_empty() { None } else { Some(self.key(&place, &mut cell)?) };
        let mut value = Vec::new();
        match self.values.as_slice() {
            [] => {}
            [column] => {
                let field = cell(column)?;
                let mut bytes = Vec::new();
                self.note(self.keys.len(), &field);
                field.append_bytes(&mut bytes);
                append_single((field != Cell::Null).then_some(&bytes), &mut value);
            }
            columns => {
                for (at, column) in columns.iter().enumerate() {
                    let field = cell(column)?;
                    self.note(self.keys.len() + at, &field);
                    field.append_field(&mut value);
                }
            }
        }
        check_value_size(value.len(), self.max_value_size, place)?;
        Ok(Record { key, value })
    }

    fn key<'a>(
        &self,
        place: &impl Fn() -> Place,
        cell: &mut impl FnMut(&Column) -> Result<Cell<'a>, IngestError>,
    ) -> Result<Vec<u8>, IngestError> {
        let mut key = Vec::new();
        for (at, column) in self.keys.iter().enumerate() {
            if at > 0 {
                key.push(KEY_SEPARATOR);
            }
            let start = key.len();
            let part = cell(column)?;
            self.note(at, &part);
            if part == Cell::Null {
                return Err(IngestError::NullKey { place: place(), column: column.name.clone() });
            }
            part.append_bytes(&mut key);
            let is_text = column.own.is_text();
            // Without types, only the end of the input shows whether the whole column is text. A date is a cell of text, too.
            let may_be_text = self.inferred.is_some() && matches!(part, Cell::Text(_));
            if !self.normalize.is_empty()
                && (is_text || may_be_text)
                && let Ok(text) = str::from_utf8(&key[start..])
            {
                let normal = self.normalize.of(text);
                key.truncate(start);
                key.extend_from_slice(normal.as_bytes());
            }
            if (self.keys.len() > 1 || is_text) && key[start..].contains(&KEY_SEPARATOR) {
                return Err(IngestError::SeparatorInKey { place: place(), column: column.name.clone() });
            }
        }
        check_key_size(key.len(), place)?;
        Ok(key)
    }
}

/// Formats a key for a message: bytes that are not UTF-8 replaced, control characters escaped, at most 80 characters.
pub fn shown_key(key: &[u8]) -> String {
    const SHOWN: usize = 80;
    let text = String::from_utf8_lossy(key);
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

/// Refuses a key that is too long.
pub(crate) fn check_key_size(actual: usize, place: impl Fn() -> Place) -> Result<(), IngestError> {
    if actual > MAX_KEY_SIZE {
        let actual = actual as u64;
        let limit = MAX_KEY_SIZE as u64;
        return Err(IngestError::KeyTooLong { place: place(), actual, limit });
    }
    Ok(())
}

/// Refuses a value of `actual` bytes if that is more than `limit`.
pub(crate) fn check_value_size(
    actual: usize,
    limit: usize,
    place: impl Fn() -> Place,
) -> Result<(), IngestError> {
    if actual > limit {
        let actual = actual as u64;
        let limit = limit as u64;
        return Err(IngestError::ValueTooLong { place: place(), actual, limit });
    }
    Ok(())
}
