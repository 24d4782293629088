//! What can go wrong.

use hush_client::{
    http::{ErrorKind, HttpError},
    session::camel_case,
};
use hush_protocol::wording::Slot;

/// What can go wrong. Every message says what to do.
#[derive(Clone, Debug, thiserror::Error, uniffi::Error)]
#[uniffi(flat_error)]
pub enum HushError {
    /// What a call was given is none that it takes: a key of the wrong kind, a token with spaces, a file that is no certificate.
    #[error("{0}")]
    OptionError(String),
    /// The server is not reached, or the way to it is not safe.
    #[error("{0}")]
    ConnectionFailed(String),
    /// The server did not answer in time.
    #[error("{0}")]
    TimedOut(String),
    /// The server asks for a token, or for another one.
    #[error("{0}")]
    NotAllowed(String),
    /// The server has no table of this name, or several and none was named.
    #[error("{0}")]
    NoSuchTable(String),
    /// The server is loading a table, or has more to do than it can: the call was tried again before this was thrown.
    #[error("{0}")]
    ServerBusy(String),
    /// The table is not one that this client accepts: too weak, of another epoch, or not signed by whom it trusts.
    #[error("{0}")]
    Untrusted(String),
    /// All others.
    #[error("{0}")]
    Other(String),
}

impl From<HttpError> for HushError {
    fn from(error: HttpError) -> Self {
        let message = error.to_string();
        match error.kind() {
            ErrorKind::Option => Self::OptionError(message),
            ErrorKind::Connection => Self::ConnectionFailed(message),
            ErrorKind::Timeout => Self::TimedOut(message),
            ErrorKind::Token => Self::NotAllowed(message),
            ErrorKind::NoTable => Self::NoSuchTable(message),
            ErrorKind::Busy => Self::ServerBusy(message),
            ErrorKind::Untrusted => Self::Untrusted(message),
            ErrorKind::Other => Self::Other(message),
        }
    }
}

/// Words what texts of libraries name, as Swift and Kotlin have it.
pub(crate) fn named(slot: &Slot<'_>) -> String {
    match slot {
        Slot::Switch("no-cache") => "another folder as the option cache".into(),
        Slot::Option(name) | Slot::Switch(name) | Slot::Command(name, _) => {
            format!("the option {}", camel_case(name))
        }
        Slot::Setting(name, value) => format!("the option {} {value}", camel_case(name)),
    }
}

#[cfg(test)]
mod tests {
    use hush_protocol::wording;

    use super::*;

    #[test]
    fn messages_name_options_as_they_are_called_here() {
        wording::speak(named);
        let error = HushError::from(HttpError::HintTooLong { bytes: 9, limit: 8 });
        assert!(matches!(error, HushError::Other(_)), "{error:?}");
        assert!(error.to_string().ends_with("allow it with the option maxHint 9"), "{error}");
        let error = HushError::from(HttpError::Token { detail: "no token".into() });
        assert!(matches!(error, HushError::NotAllowed(_)), "{error:?}");
        assert_eq!(error.to_string(), "no token: give one with the option token");
    }
}
