//! Streams of Arrow, in and out, by the PyCapsule interface of Arrow (its C stream interface in a capsule): data frames of any
//! library, none of whose rows is copied one by one.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    RecordBatchReader, StringArray,
    cast::AsArray,
    ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader},
    types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type},
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use hush_client::{Found, Wanted};
use hush_store::ingest::KEY_SEPARATOR;
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyCapsule};
use serde_json::Value;

use crate::error::Kind;

const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// The batches of an object that has `__arrow_c_stream__`.
pub(crate) fn reader(from: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let capsule = from.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name has such a stream, which is moved out: an empty one takes its place.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    let reader = RecordBatchStreamReader::try_new(stream);
    let reader =
        reader.map_err(|error| Kind::Input.raised(from.py(), format!("no stream of Arrow: {error}")))?;
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

/// Looks up the keys in a frame: of one column, or of several columns that a key has. One row for each of its rows, with the
/// columns of the key, and those of the value, which are null where there is no such record.
pub(crate) fn look_up(
    py: Python<'_>,
    frame: &Bound<'_, PyAny>,
    fields: Option<&[String]>,
    text: bool,
    ask: impl Fn(Vec<Wanted>) -> PyResult<Vec<Found>>,
) -> PyResult<ArrowStream> {
    let unreadable = |error: ArrowError| Kind::Input.raised(py, error);
    let reader = reader(frame)?;
    let keys = reader.schema();
    let mut columns: Vec<Field> = keys.fields().iter().map(|field| field.as_ref().clone()).collect();
    let batches = reader.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    let mut wanted = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            wanted.push(key(batch.columns(), row).map_err(|kind| {
                PyTypeError::new_err(format!(
                    "a key is text, bytes or a position, not {kind}: cast the column first"
                ))
            })?);
        }
    }
    // A row without a key is not asked for.
    let asked: Vec<Wanted> = wanted.iter().flatten().cloned().collect();
    let mut found = if asked.is_empty() { Vec::new() } else { ask(asked)? }.into_iter();
    let found: Vec<Found> =
        wanted.iter().map(|key| key.as_ref().and_then(|_| found.next().flatten())).collect();
    let values = match fields {
        Some(names) => of_fields(names, &found),
        None => vec![("value".to_owned(), of_values(py, &found, text)?)],
    };
    let mut arrays = Vec::new();
    for (index, field) in columns.iter().enumerate() {
        let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(index).as_ref()).collect();
        arrays.push(joined(&parts, field.data_type()).map_err(unreadable)?);
    }
    let taken: Vec<String> = columns.iter().map(|column| column.name().clone()).collect();
    for (name, array) in values {
        let name = if taken.contains(&name) { format!("{name}_found") } else { name };
        columns.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(columns)), arrays).map_err(unreadable)?;
    Ok(ArrowStream::of(batch))
}

/// The batches of one column as one array.
fn joined(parts: &[&dyn Array], kind: &DataType) -> Result<ArrayRef, ArrowError> {
    if parts.is_empty() {
        Ok(arrow_array::new_empty_array(kind))
    } else {
        arrow_select::concat::concat(parts)
    }
}

/// The key in a row: `None` if there is none.
fn key(columns: &[ArrayRef], row: usize) -> Result<Option<Wanted>, DataType> {
    if let [column] = columns
        && let Some(position) = position(column, row)
    {
        return Ok(position.map(Wanted::Index));
    }
    let mut parts = Vec::new();
    for column in columns {
        match part(column, row)? {
            Some(part) => parts.push(part),
            None => return Ok(None),
        }
    }
    Ok(Some(Wanted::Key(parts.join(&KEY_SEPARATOR))))
}

/// A whole number, if the column is of such; `None` in it is null.
fn position(column: &ArrayRef, row: usize) -> Option<Option<u64>> {
    macro_rules! of {
        ($type:ty) => {{
            let array = column.as_primitive::<$type>();
            Some(if array.is_null(row) { None } else { u64::try_from(array.value(row)).ok() })
        }};
    }
    match column.data_type() {
        DataType::UInt8 => of!(UInt8Type),
        DataType::UInt16 => of!(UInt16Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::UInt64 => of!(UInt64Type),
        DataType::Int8 => of!(Int8Type),
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        _ => None,
    }
}

/// The bytes of one column of a key.
fn part(column: &ArrayRef, row: usize) -> Result<Option<Vec<u8>>, DataType> {
    if column.is_null(row) {
        return Ok(None);
    }
    let bytes: &[u8] = match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).as_bytes(),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row).as_bytes(),
        DataType::Utf8View => column.as_string_view().value(row).as_bytes(),
        DataType::Binary => column.as_binary::<i32>().value(row),
        DataType::LargeBinary => column.as_binary::<i64>().value(row),
        DataType::BinaryView => column.as_binary_view().value(row),
        other => return Err(other.clone()),
    };
    Ok(Some(bytes.to_vec()))
}

/// Values of one column.
fn of_values(py: Python<'_>, found: &[Found], text: bool) -> PyResult<ArrayRef> {
    if !text {
        return Ok(Arc::new(BinaryArray::from_iter(found.iter().map(Option::as_deref))));
    }
    let texts = found.iter().map(|value| value.as_deref().map(str::from_utf8).transpose());
    let texts = texts.collect::<Result<Vec<_>, _>>();
    let texts = texts
        .map_err(|_| Kind::Option.raised(py, "some values are no text: look them up with text=False"))?;
    Ok(Arc::new(StringArray::from(texts)))
}

/// Values of several columns, each of the type that all of what was found in it has, or text.
fn of_fields(names: &[String], found: &[Found]) -> Vec<(String, ArrayRef)> {
    let rows: Vec<Option<Value>> =
        found.iter().map(|value| serde_json::from_slice(value.as_deref()?).ok()).collect();
    let column = |name: &String| {
        let cells: Vec<Option<&Value>> =
            rows.iter().map(|row| row.as_ref()?.get(name).filter(|cell| !cell.is_null())).collect();
        let all = |test: fn(&Value) -> bool| cells.iter().flatten().all(|cell| test(cell));
        let array: ArrayRef = if cells.iter().all(Option::is_none) || all(Value::is_string) {
            Arc::new(cells.iter().map(|cell| cell.and_then(Value::as_str)).collect::<StringArray>())
        } else if all(Value::is_boolean) {
            Arc::new(cells.iter().map(|cell| cell.and_then(Value::as_bool)).collect::<BooleanArray>())
        } else if all(Value::is_i64) {
            Arc::new(cells.iter().map(|cell| cell.and_then(Value::as_i64)).collect::<Int64Array>())
        } else if all(Value::is_number) {
            Arc::new(cells.iter().map(|cell| cell.and_then(Value::as_f64)).collect::<Float64Array>())
        } else {
            let text = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
            Arc::new(cells.iter().map(|cell| cell.map(text)).collect::<StringArray>())
        };
        (name.clone(), array)
    };
    names.iter().map(column).collect()
}
