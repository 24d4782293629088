//! The keys and the results of look-ups, on both sides.

use hush_client::{Found, Table, Wanted};
use hush_protocol::{
    fields::Field,
    schema::{Column, Schema},
    sorted::found::{RowMatch, UnknownRowMatch},
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyString, PyTuple},
};

use crate::error::{Code, raised};

/// How a table is looked up, and of which columns its keys and values are.
#[derive(Clone)]
pub(crate) struct Form {
    pub(crate) by_key: bool,
    pub(crate) schema: Schema,
}

impl Form {
    pub(crate) fn of(table: &Table) -> Self {
        let descriptor = table.descriptor();
        let by_key = descriptor.is_by_key();
        Self { by_key, schema: descriptor.schema.clone().unwrap_or_default() }
    }

    /// Returns the names of the columns of values that have several.
    pub(crate) fn fields(&self) -> Option<Vec<String>> {
        Some(self.schema.fields()?.into_iter().map(String::from).collect())
    }

    /// Returns the name of the only column of the key, if there is one.
    pub(crate) fn key_name(&self) -> Option<String> {
        let [Column(name, _)] = &self.schema.key[..] else { return None };
        Some(name.clone())
    }
}

/// The rows of a sorted table that a call finds, in place of values.
pub(crate) struct SoughtRows(RowMatch);

impl SoughtRows {
    pub(crate) fn of(py: Python<'_>, name: Option<&str>) -> PyResult<Self> {
        let by = name.unwrap_or("exact").parse();
        by.map(Self).map_err(|error: UnknownRowMatch| raised(py, Code::Options, format!("rows: {error}")))
    }
}

/// Keys as Python has them: `hushdb._values` makes a position of each, or the bytes of its columns.
pub(crate) fn wanted(
    py: Python<'_>,
    keys: &[Bound<'_, PyAny>],
    &SoughtRows(by): &SoughtRows,
    form: &Form,
) -> PyResult<Vec<Wanted>> {
    let kinds = form.by_key.then(|| types(&form.schema.key));
    let convert = py.import("hushdb._values")?.getattr("key")?;
    keys.iter()
        .map(|key: &Bound<'_, PyAny>| {
            let made = convert.call1((key, kinds.clone(), form.schema.key_text()))?;
            if let Ok(parts) = made.cast::<PyTuple>() {
                return Ok(Wanted::Columns(parts.extract::<Vec<Vec<u8>>>()?).matching(by));
            }
            made.extract().map(|index| Wanted::Index(index).matching(by)).map_err(|_| {
                raised(py, Code::BadKey, "a position is a whole number from 0, and less than 2^64")
            })
        })
        .collect()
}

/// Returns the names of types; those that are nested as JSON.
fn types(columns: &[Column]) -> Vec<String> {
    columns
        .iter()
        .map(|Column(_, own): &Column| match own.plain() {
            Some(plain) => plain.to_string(),
            None => serde_json::to_string(own).expect("a type is plain data"),
        })
        .collect()
}

/// Converts a result: `None` where there is no record, else bytes, or a dictionary of the columns as `hushdb._values`
/// has them.
pub(crate) fn found<'py>(
    py: Python<'py>,
    found: Vec<Found>,
    &SoughtRows(by): &SoughtRows,
    form: &Form,
) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
    let schema = &form.schema;
    let kinds = types(&form.schema.value);
    let convert = py.import("hushdb._values")?.getattr("record")?;
    let mut objects = Vec::with_capacity(found.len());
    for value in found {
        let Some(value) = value else {
            objects.push(None);
            continue;
        };
        if by != RowMatch::Exact {
            let text = PyBytes::new(py, &value);
            objects.push(Some(py.import("json")?.call_method1("loads", (text,))?));
            continue;
        }
        let Some(names) = schema.fields() else {
            let bytes = if schema.value.is_empty() { Ok(value) } else { schema.readable(&value) };
            let bytes = bytes.map_err(|error| raised(py, Code::BadAnswer, error))?;
            objects.push(Some(PyBytes::new(py, &bytes).into_any()));
            continue;
        };
        let fields = schema.read(&value).map_err(|error| raised(py, Code::BadAnswer, error))?;
        let fields = fields.iter().map(|field| cell(py, field)).collect::<PyResult<Vec<_>>>()?;
        objects.push(Some(convert.call1((names, kinds.clone(), fields))?));
    }
    Ok(objects)
}

/// Returns a field: text, bytes, JSON as a tuple of its text, or nothing.
fn cell<'py>(py: Python<'py>, field: &Field<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match field {
        Field::Null => py.None().into_bound(py),
        Field::Text(text) => PyString::new(py, text).into_any(),
        Field::Json(text) => PyTuple::new(py, [*text])?.into_any(),
        Field::Binary(bytes) => PyBytes::new(py, bytes).into_any(),
    })
}
