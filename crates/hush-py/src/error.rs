//! Errors as exceptions of Python: their classes are in `hushdb/_errors.py`.

use std::fmt::Display;

use hush_client::http::{ErrorKind, HttpError};
use hush_protocol::wording::Slot;
use pyo3::{prelude::*, types::PyString};

/// The class of an exception.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// What has no class of its own.
    Hush,
    /// What a call was given.
    Option,
    Connection,
    Timeout,
    Token,
    NoTable,
    Busy,
    Untrusted,
    Input,
}

impl From<ErrorKind> for Kind {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Option => Self::Option,
            ErrorKind::Connection => Self::Connection,
            ErrorKind::Timeout => Self::Timeout,
            ErrorKind::Token => Self::Token,
            ErrorKind::NoTable => Self::NoTable,
            ErrorKind::Busy => Self::Busy,
            ErrorKind::Untrusted => Self::Untrusted,
            ErrorKind::Other => Self::Hush,
        }
    }
}

impl Kind {
    fn class(self) -> &'static str {
        match self {
            Self::Hush => "HushError",
            Self::Option => "OptionError",
            Self::Connection => "ConnectionFailed",
            Self::Timeout => "TimedOut",
            Self::Token => "NotAllowed",
            Self::NoTable => "NoSuchTable",
            Self::Busy => "ServerBusy",
            Self::Untrusted => "Untrusted",
            Self::Input => "InputError",
        }
    }

    /// An exception with what `error` says.
    pub(crate) fn raised(self, py: Python<'_>, error: impl Display) -> PyErr {
        let text = PyString::new(py, &error.to_string());
        let raised =
            py.import("hushdb._errors").and_then(|errors| errors.getattr(self.class())?.call1((text,)));
        raised.map_or_else(|error| error, PyErr::from_value)
    }
}

/// Words what texts of libraries name, as a call in Python has it.
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

/// What a client meets.
pub(crate) fn of_client(py: Python<'_>, error: &HttpError) -> PyErr {
    Kind::from(error.kind()).raised(py, error)
}
