//! The errors of a client.

use hush_protocol::{Code, Name, ProtocolError, signature::PublicKey};
use thiserror::Error;

/// The reason why a look-up could not be sent, or its answer could not be read.
#[derive(Clone, Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum ClientError {
    /// The protocol layer refused the table or the look-up.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    #[error(
        "the table uses {preset}, which gives {bits:.0} bits of security, and 128 are the minimum: ask its operator for a table \
         with another parameter set"
    )]
    Weak { preset: &'static str, bits: f64 },
    #[error(
        "the table uses {preset}, which is for tests: its server can read what is looked up, so nothing was asked"
    )]
    Insecure { preset: &'static str },
    #[error(
        "the table has epoch {}, not {}: if its publisher announces the new one, ask for that",
        hex::encode(actual),
        hex::encode(asked)
    )]
    OtherEpoch {
        actual: [u8; 32],
        /// [`Acceptance::epoch`](crate::Acceptance::epoch).
        asked: [u8; 32],
    },
    #[error(
        "the table is not signed, and must be signed by {asked}: ask its operator for the publisher's table"
    )]
    NotSigned {
        /// [`Trust::publisher`](crate::Trust::publisher).
        asked: PublicKey,
    },
    #[error(
        "the table is signed by {actual}, not by {asked}: its server may have made it up for you, so nothing was asked"
    )]
    OtherPublisher {
        actual: PublicKey,
        /// [`Trust::publisher`](crate::Trust::publisher).
        asked: PublicKey,
    },
    #[error(
        "the table is signed under the name '{actual}', not '{asked}': its server may have put another table of the publisher in its \
         place, so nothing was asked; if it serves the table under a name of its own, give the signed name with the publisher's key"
    )]
    OtherName {
        actual: Name,
        /// [`Trust::name`](crate::Trust::name), or the name of the table that was to be opened.
        asked: Name,
    },
    #[error(
        "which of the publisher's tables this is to be is not said, so that its server could choose: name the table"
    )]
    NameNotGiven,
    #[error(
        "the table '{name}' has serial {serial}, and this client has seen {newest} before: its server shows an old one, so nothing \
         was asked; ask again later, or ask its operator for the newest"
    )]
    OlderSerial { name: Name, serial: u64, newest: u64 },
    /// A look-up in a table with evaluation keys, before [`crate::Table::use_keys`].
    #[error("the table needs evaluation keys: call use_keys before the first look-up")]
    NoKeys,
    #[error(
        "queries of {protocol} cannot be prepared before the key is known: look up without preparing, or ask for a table of simple, \
         frodo or double"
    )]
    NothingToPrepare { protocol: &'static str },
    #[error(
        "the value is not compressed as the table states: tell the operator of the server, or whoever built the table"
    )]
    Compression,
    #[error("the hint does not match its hash: download it again")]
    HintHash,
}

impl ClientError {
    /// Returns the code of the error.
    pub fn code(&self) -> Code {
        match self {
            Self::Protocol(error) => error.code(),
            Self::Weak { .. } => Code::Weak,
            Self::Insecure { .. } => Code::Insecure,
            Self::OtherEpoch { .. } => Code::OtherEpoch,
            Self::NotSigned { .. } => Code::NotSigned,
            Self::OtherPublisher { .. } => Code::OtherPublisher,
            Self::OtherName { .. } => Code::OtherName,
            Self::NameNotGiven => Code::ChooseTable,
            Self::OlderSerial { .. } => Code::OlderTable,
            Self::NoKeys => Code::ClientFailed,
            Self::NothingToPrepare { .. } => Code::Options,
            Self::Compression => Code::BadAnswer,
            Self::HintHash => Code::HintMismatch,
        }
    }
}
