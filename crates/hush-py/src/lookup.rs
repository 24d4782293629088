//! What is looked up, and what is found, on both sides.

use hush_client::{Found, Wanted};
use hush_store::ingest::KEY_SEPARATOR;
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyBytes, PyInt, PyString, PyTuple},
};

/// A key as Python has it: text, bytes, a tuple of these for a key of several columns, or a position.
pub(crate) fn wanted(key: &Bound<'_, PyAny>) -> PyResult<Wanted> {
    if key.is_instance_of::<PyInt>() {
        return Ok(Wanted::Index(key.extract()?));
    }
    if let Ok(parts) = key.cast::<PyTuple>() {
        let parts = parts.iter().map(|part| bytes(&part)).collect::<PyResult<Vec<_>>>()?;
        return Ok(Wanted::Key(parts.join(&KEY_SEPARATOR)));
    }
    bytes(key).map(Wanted::Key)
}

fn bytes(key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = key.cast::<PyString>() {
        return Ok(text.to_str()?.as_bytes().to_vec());
    }
    if let Ok(bytes) = key.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    let own = key.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "a key is str, bytes, a tuple of these, or in a table by position int; not {own}"
    )))
}

/// What was found, as bytes; `None` where there is nothing.
pub(crate) fn found<'py>(py: Python<'py>, found: Vec<Found>) -> Vec<Option<Bound<'py, PyBytes>>> {
    found.into_iter().map(|value| value.map(|value| PyBytes::new(py, &value))).collect()
}
