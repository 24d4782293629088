//! Errors as exceptions of Python: their classes are in `hushdb/_errors.py`.

use std::fmt::Display;

use hush_client::{ClientError, http::HttpError};
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

/// What a client meets.
pub(crate) fn of_client(py: Python<'_>, error: &HttpError) -> PyErr {
    let kind = match error {
        HttpError::Url { .. } | HttpError::Certificates { .. } => Kind::Option,
        HttpError::TokenInTheOpen | HttpError::TokenToRelay => Kind::Option,
        HttpError::Unreachable { .. } | HttpError::Tls { .. } | HttpError::Relay { .. } => Kind::Connection,
        HttpError::Interrupted { .. } => Kind::Connection,
        HttpError::Timeout { .. } => Kind::Timeout,
        HttpError::Token { .. } => Kind::Token,
        HttpError::NoTables | HttpError::ChooseTable { .. } | HttpError::UnknownTable { .. } => Kind::NoTable,
        HttpError::Busy { .. } => Kind::Busy,
        HttpError::Client(error) => of_look_up(error),
        _ => Kind::Hush,
    };
    kind.raised(py, in_python(&error.to_string()))
}

/// What a client itself refuses.
pub(crate) fn of_look_up(error: &ClientError) -> Kind {
    match error {
        ClientError::Protocol(_) => Kind::Option,
        ClientError::Weak { .. }
        | ClientError::Insecure { .. }
        | ClientError::OtherEpoch { .. }
        | ClientError::NotSigned { .. }
        | ClientError::OtherPublisher { .. } => Kind::Untrusted,
        _ => Kind::Hush,
    }
}

/// Options of the command line as arguments are called here.
fn in_python(text: &str) -> String {
    let word = |word: &str| {
        let name = word.strip_prefix("--").filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()));
        name.map_or_else(|| word.to_owned(), |name| name.replace('-', "_"))
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
