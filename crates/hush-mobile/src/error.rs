//! The errors of the client.

use hush_client::http::HttpError;
use hush_protocol::{
    Code, ErrorKind,
    wording::{Slot, camel_case},
};

/// Defines [`HushError`] with a variant for each kind.
macro_rules! errors {
    ($($(#[$doc:meta])* $kind:ident,)*) => {
        /// An error. Every message says what to do.
        #[derive(Clone, Debug, thiserror::Error, uniffi::Error)]
        #[expect(missing_docs, reason = "the fields of each are a code and a message")]
        pub enum HushError {
            $($(#[$doc])* #[error("{message}")] $kind { code: String, message: String },)*
        }

        #[uniffi::export]
        impl HushError {
            /// Returns the code, a word for programs: docs/reference/clients.md lists all.
            pub fn code(&self) -> String {
                match self { $(Self::$kind { code, .. })|* => code.clone() }
            }
        }

        impl HushError {
            /// Creates the error of the kind of `code`.
            pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
                let kind = code.kind();
                let code = code.word().to_owned();
                let message = message.into();
                match kind {
                    $(ErrorKind::$kind => Self::$kind { code, message },)*
                    // Nothing here reads records.
                    ErrorKind::InputError => Self::Other { code, message },
                }
            }
        }
    };
}

errors! {
    /// An argument is invalid: a key of the wrong kind, a token with spaces, a malformed certificate.
    OptionError,
    /// The server is not reached, or the way to it is not safe.
    ConnectionFailed,
    /// The server did not answer in time.
    TimedOut,
    /// The server asks for a token, or for another one.
    NotAllowed,
    /// The server has no table of this name, or several and none was named.
    NoSuchTable,
    /// The server is loading a table, or has more to do than it can: the call was tried again before this was thrown.
    ServerBusy,
    /// The table is not one that this client accepts: too weak, of another epoch, or not signed by whom it trusts.
    Untrusted,
    /// All others.
    Other,
}

impl From<HttpError> for HushError {
    fn from(error: HttpError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// Returns the name that a slot in the text of a library has in Swift and Kotlin.
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
        assert!(matches!(error, HushError::Other { .. }), "{error:?}");
        assert_eq!(error.code(), "hint_too_long");
        assert!(error.to_string().ends_with("allow it with the option maxHint 9"), "{error}");
        let error = HushError::from(HttpError::ChooseTable { tables: vec!["a".into(), "b".into()] });
        assert!(matches!(error, HushError::NoSuchTable { .. }), "{error:?}");
        assert!(error.to_string().ends_with("choose one with the option table: a, b"), "{error}");
    }
}
