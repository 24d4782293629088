//! The kinds of errors that bindings of a language tell apart, and the names of options in camel case.

use super::SessionError;
use crate::ClientError;

/// The kinds of errors that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// What a call was given is none that it takes.
    Option,
    /// The server is not reached, or the way to it is not safe.
    Connection,
    /// The server did not answer in time.
    Timeout,
    /// The server asks for a token, or for another one.
    Token,
    /// The server has no table of this name, or several and none was named.
    NoTable,
    /// The server is loading a table, or has more to do than it can.
    Busy,
    /// The table is not one that this client accepts.
    Untrusted,
    /// All others.
    Other,
}

impl SessionError {
    /// Which kind it is of.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Url { .. } | Self::Certificates { .. } => ErrorKind::Option,
            Self::TokenInTheOpen | Self::TokenToRelay => ErrorKind::Option,
            Self::Unreachable { .. } | Self::Proxy { .. } | Self::Tls { .. } => ErrorKind::Connection,
            Self::Relay { .. } | Self::Interrupted { .. } | Self::Intermediary { .. } => {
                ErrorKind::Connection
            }
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::Token { .. } => ErrorKind::Token,
            Self::NoTables | Self::ChooseTable { .. } | Self::UnknownTable { .. } => ErrorKind::NoTable,
            Self::Busy { .. } => ErrorKind::Busy,
            Self::Client(error) => error.kind(),
            _ => ErrorKind::Other,
        }
    }
}

impl ClientError {
    /// Which kind it is of.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Protocol(_) => ErrorKind::Option,
            Self::Weak { .. }
            | Self::Insecure { .. }
            | Self::OtherEpoch { .. }
            | Self::NotSigned { .. }
            | Self::OtherPublisher { .. }
            | Self::OtherName { .. }
            | Self::OlderSerial { .. } => ErrorKind::Untrusted,
            Self::NameNotGiven => ErrorKind::NoTable,
            _ => ErrorKind::Other,
        }
    }
}

/// Returns a name as languages with camel case have it: `ca-cert` and `ca_cert` are `caCert`.
pub fn camel_case(name: &str) -> String {
    let mut words = name.split(['-', '_']);
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (head, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        name + &head.to_uppercase() + rest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_named_as_languages_do() {
        assert_eq!(["ca-cert", "key", "lookups_per_key"].map(camel_case), ["caCert", "key", "lookupsPerKey"]);
    }
}
