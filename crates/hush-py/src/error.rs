//! Errors as exceptions of Python: their classes are in `hushdb/_errors.py`.

use std::fmt::Display;

pub(crate) use hush_protocol::Code;
use hush_protocol::{ErrorKind, wording::Slot};
use pyo3::{prelude::*, types::PyString};

/// An error of work that is done without the interpreter's lock.
pub(crate) type CodedError = (Code, String);

/// Returns a function that makes a [`CodedError`] of an error.
pub(crate) fn failed<E: Display>(code: Code) -> impl FnOnce(E) -> CodedError {
    move |error| (code, error.to_string())
}

/// Returns an exception with what `error` says, of the class of the kind of `code`.
pub(crate) fn raised(py: Python<'_>, code: Code, error: impl Display) -> PyErr {
    let text = PyString::new(py, &error.to_string());
    let class = match code.kind() {
        ErrorKind::Other => "HushError".to_owned(),
        kind => format!("{kind:?}"),
    };
    let raised = py.import("hushdb._errors").and_then(|errors| {
        let raised = errors.getattr(class)?.call1((text,))?;
        raised.setattr("code", code.word())?;
        Ok(raised)
    });
    raised.map_or_else(|error| error, PyErr::from_value)
}

/// Returns the words what texts of libraries name, as a call in Python has it.
pub(crate) fn named(slot: &Slot<'_>) -> String {
    // A word of Python.
    let keyword = |name: &str| if name == "as" { "as_".to_owned() } else { name.replace('-', "_") };
    match slot {
        Slot::Option(name) => keyword(name),
        Slot::Switch(name) => format!("{}=True", keyword(name)),
        Slot::Setting(name, value) => {
            let value = value.to_string();
            // A number, or what stands for a value.
            let is_bare = value.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
            let quote = if is_bare { "" } else { "\"" };
            format!("{}={quote}{value}{quote}", keyword(name))
        }
        Slot::Command(name, options) => {
            let options: String = options.iter().map(|option| format!(", {}", named(option))).collect();
            format!("hushdb.{name}(..{options})")
        }
    }
}
