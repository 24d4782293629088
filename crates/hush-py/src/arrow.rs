//! Streams of Arrow, in and out, by the PyCapsule interface of Arrow (its C stream interface in a capsule): data frames of any
//! library, none of whose rows is copied one by one.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader,
    ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader},
};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};
use hush_client::{Found, Wanted};
use hush_ingest::{arrow_field, column_type, key_field};
use hush_protocol::{
    column_type::{Layout, PlainType},
    fields::Field as RecordField,
    schema::{Column, ColumnType},
};
use pyo3::{prelude::*, types::PyCapsule};

use crate::{
    error::{Code, raised},
    lookup::Form,
    typed::{self, Content},
};

const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// Returns the batches of an object that has `__arrow_c_stream__`.
pub(crate) fn reader(from: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let capsule = from.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name has such a stream, which is moved out: an empty one takes its place.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    let reader = RecordBatchStreamReader::try_new(stream);
    let reader =
        reader.map_err(|error| raised(from.py(), Code::Input, format!("no stream of Arrow: {error}")))?;
    Ok(Box::new(reader))
}

/// Record batches for whoever takes them: `pyarrow.table(..)`, `polars.DataFrame(..)`, `duckdb`.
#[pyclass(frozen)]
pub(crate) struct ArrowStream {
    schema: Arc<Schema>,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl ArrowStream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A stream may be of its own schema, whatever was asked for.
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let stream =
            FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, self.schema.clone())));
        PyCapsule::new_with_value(py, stream, STREAM)
    }
}

impl ArrowStream {
    pub(crate) fn of(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), batches: vec![batch] }
    }
}

/// Looks up the keys in a frame: one row for each of its rows, with the columns of the key, and those of the value, which are null
/// where there is no such record. Columns of a key stay as they were given, or are of the table's type if they were given as text.
pub(crate) fn look_up(
    py: Python<'_>,
    frame: &Bound<'_, PyAny>,
    form: &Form,
    text: bool,
    ask: impl Fn(Vec<Wanted>) -> PyResult<(Vec<Found>, Form)>,
) -> PyResult<ArrowStream> {
    let unreadable = |error: ArrowError| raised(py, Code::Input, error);
    let reader = reader(frame)?;
    let given = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    let keys = key_columns(given.fields(), form).map_err(|error| raised(py, Code::Options, error))?;
    let mut wanted = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let key = key(&keys, batch, row).map_err(|error| raised(py, Code::Options, error))?;
            wanted.push(key.map(|parts| if form.by_key { Wanted::Columns(parts) } else { index(&parts) }));
        }
    }
    // A row without a key is not asked for.
    let asked: Vec<Wanted> = wanted.iter().flatten().cloned().collect();
    let (mut found, form) = if asked.is_empty() {
        (Vec::new().into_iter(), form.clone())
    } else {
        let (found, form) = ask(asked)?;
        (found.into_iter(), form)
    };
    let found: Vec<Found> =
        wanted.iter().map(|key| key.as_ref().and_then(|_| found.next().flatten())).collect();
    let mut columns = Vec::new();
    let mut arrays = Vec::new();
    for (at, key) in keys.iter().enumerate() {
        let (field, array) = match &key.becomes {
            None => {
                let parts: Vec<&dyn Array> =
                    batches.iter().map(|batch| batch.column(key.index).as_ref()).collect();
                (key.field.clone(), joined(&parts, key.field.data_type()).map_err(unreadable)?)
            }
            Some(own) => {
                let cells: Vec<_> = wanted
                    .iter()
                    .map(|wanted: &Option<Wanted>| match wanted {
                        Some(Wanted::Columns(parts)) => Some(Content::of_bytes(&parts[at]).into_owned()),
                        _ => None,
                    })
                    .collect();
                (arrow_field(key.field.name(), own), typed::array(own, &cells).map_err(unreadable)?)
            }
        };
        columns.push(field);
        arrays.push(array);
    }
    let taken: Vec<String> = columns.iter().map(|column| column.name().clone()).collect();
    for (Column(name, own), array) in values(py, &form, &found, text)? {
        let name = if taken.contains(&name) { format!("{name}_found") } else { name };
        columns.push(arrow_field(&name, &own));
        arrays.push(array);
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(columns)), arrays).map_err(unreadable)?;
    Ok(ArrowStream::of(batch))
}

/// Returns the batches of one column as one array.
fn joined(parts: &[&dyn Array], kind: &DataType) -> Result<ArrayRef, ArrowError> {
    if parts.is_empty() {
        Ok(arrow_array::new_empty_array(kind))
    } else {
        arrow_select::concat::concat(parts)
    }
}

/// A column of a frame that is a column of the key.
struct KeyColumn {
    index: usize,
    field: Field,
    /// The table's type, if it was given as text.
    becomes: Option<ColumnType>,
}

/// Returns the columns of a frame in the order of the key's.
fn key_columns(given: &Fields, form: &Form) -> Result<Vec<KeyColumn>, String> {
    let names = || given.iter().map(|field| format!("'{}'", field.name())).collect::<Vec<_>>().join(", ");
    let position = [Column("position".into(), PlainType::Uint(64).into())];
    let wanted = if form.by_key { &form.schema.key[..] } else { &position[..] };
    if given.len() != wanted.len() {
        let key = if form.by_key { form.schema.key_text() } else { "the position of a record".into() };
        return Err(format!(
            "the frame has {} column{} ({}), and the table's key is {key}: select these columns",
            given.len(),
            if given.len() == 1 { "" } else { "s" },
            names()
        ));
    }
    let column = |Column(name, own): &Column| {
        let index = match given.len() {
            1 => 0,
            _ => given.iter().position(|field| field.name() == name).ok_or_else(|| {
                let key = form.schema.key_text();
                format!("the frame has the columns {}, and the table's key is {key}: rename them", names())
            })?,
        };
        let field = given[index].as_ref().clone();
        let becomes = match fits(&column_type(&field), own) {
            Fit::Same => None,
            Fit::Text => Some(own.of_fields().clone()),
            Fit::No => {
                let own = own.name();
                return Err(format!(
                    "the key {name} is of type {own}, and the frame's column '{}' is {}: cast the column first",
                    field.name(),
                    column_type(&field).name()
                ));
            }
        };
        Ok(KeyColumn { index, field, becomes })
    };
    wanted.iter().map(column).collect()
}

/// How a column of a frame is one of a key.
enum Fit {
    /// The fields are written as they are.
    Same,
    /// The field is text, which is parsed.
    Text,
    No,
}

fn fits(given: &ColumnType, wanted: &ColumnType) -> Fit {
    use PlainType as T;
    let (Some(given), Some(wanted)) = (given.plain(), wanted.plain()) else {
        return if given == wanted { Fit::Same } else { Fit::No };
    };
    let is_bytes = |own: &T| matches!(own, T::Text(_) | T::Binary(_) | T::FixedBinary(_) | T::Any);
    let is_same = match (given, wanted) {
        (_, T::Any) | (T::Null, _) => true,
        (given, wanted) if given.is_integer() => wanted.is_integer(),
        (T::Decimal { .. }, T::Decimal { .. }) | (T::Date(_), T::Date(_)) | (T::Time(_), T::Time(_)) => true,
        (T::Timestamp(_, given), T::Timestamp(_, wanted)) => given.is_some() == wanted.is_some(),
        (given, wanted) => given == wanted || (is_bytes(given) && is_bytes(wanted)),
    };
    match given {
        _ if is_same => Fit::Same,
        T::Text(_) => Fit::Text,
        _ => Fit::No,
    }
}

/// Returns the key in a row: `None` if a column of it is null.
fn key(columns: &[KeyColumn], batch: &RecordBatch, row: usize) -> Result<Option<Vec<Vec<u8>>>, &'static str> {
    columns.iter().map(|column| key_field(&column.field, batch.column(column.index), row)).collect()
}

/// Returns a position; an invalid one is beyond every table.
fn index(parts: &[Vec<u8>]) -> Wanted {
    let text = parts.first().and_then(|part| str::from_utf8(part).ok());
    Wanted::Index(text.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX))
}

/// Returns the columns of the values, of their types.
fn values(py: Python<'_>, form: &Form, found: &[Found], text: bool) -> PyResult<Vec<(Column, ArrayRef)>> {
    let columns = &form.schema.value;
    let mut cells: Vec<Vec<Option<Content<'_>>>> = columns.iter().map(|_| Vec::new()).collect();
    for value in found {
        let fields = match value {
            None => vec![RecordField::Null; columns.len()],
            Some(value) => form.schema.read(value).map_err(|error| raised(py, Code::BadAnswer, error))?,
        };
        for (cells, field) in cells.iter_mut().zip(fields) {
            cells.push(Content::of(field));
        }
    }
    let mut all = Vec::new();
    for (Column(name, own), cells) in columns.iter().zip(&cells) {
        let own = match own.plain() {
            Some(PlainType::Text(_) | PlainType::Any) if !text && columns.len() == 1 => {
                PlainType::Binary(Layout::Short).into()
            }
            Some(PlainType::Any) if columns.len() == 1 && cells.iter().flatten().any(Content::is_bytes) => {
                return Err(raised(
                    py,
                    Code::Options,
                    "some values are no text: look them up with text=False",
                ));
            }
            _ => own.clone(),
        };
        let array = typed::array(&own, cells).map_err(|error| raised(py, Code::ClientFailed, error))?;
        all.push((Column(name.clone(), own), array));
    }
    Ok(all)
}
