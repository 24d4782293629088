//! The error of the client.

use hush_protocol::{Name, ProtocolError, signature::PublicKey};
use thiserror::Error;

/// Why a look-up could not be made or read.
#[derive(Clone, Debug, Error)]
pub enum ClientError {
    /// The table or the look-up was refused.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The table's parameter set is below 128 bits of security.
    #[error(
        "the table uses {preset}, which gives {bits:.0} bits of security, and 128 are the minimum: ask its operator for a table \
         with another parameter set"
    )]
    Weak {
        /// Name of the preset.
        preset: &'static str,
        /// Its security.
        bits: f64,
    },
    /// The table's parameter set has no security: it is for tests.
    #[error(
        "the table uses {preset}, which is for tests: its server can read what is looked up, so nothing was asked"
    )]
    Insecure {
        /// Name of the preset.
        preset: &'static str,
    },
    /// The table has another epoch than the one that is accepted.
    #[error(
        "the table has epoch {}, not {}: if its publisher announces the new one, ask for that",
        hex::encode(actual),
        hex::encode(asked)
    )]
    OtherEpoch {
        /// The table's.
        actual: [u8; 32],
        /// [`Acceptance::epoch`](crate::Acceptance::epoch).
        asked: [u8; 32],
    },
    /// Nobody has signed the table's epoch.
    #[error("the table is not signed, and was to be by {asked}: ask its operator for the publisher's table")]
    NotSigned {
        /// [`Trust::publisher`](crate::Trust::publisher).
        asked: PublicKey,
    },
    /// Somebody else has signed the table's epoch.
    #[error(
        "the table is signed by {actual}, not by {asked}: its server may have made it up for you, so nothing was asked"
    )]
    OtherPublisher {
        /// Who did.
        actual: PublicKey,
        /// [`Trust::publisher`](crate::Trust::publisher).
        asked: PublicKey,
    },
    /// The publisher has signed the table under another name.
    #[error(
        "the table is signed under the name '{actual}', not '{asked}': its server may have put another table of the publisher in its \
         place, so nothing was asked; if it serves the table under a name of its own, give the signed name with the publisher's key"
    )]
    OtherName {
        /// The signed name.
        actual: Name,
        /// [`Trust::name`](crate::Trust::name), or the name of the table that was to be opened.
        asked: Name,
    },
    /// The publisher is given, and not which of its tables is meant.
    #[error(
        "which of the publisher's tables this is to be is not said, so that its server could choose: name the table"
    )]
    NameNotGiven,
    /// The publisher has published a newer table under this name, which this client has seen.
    #[error(
        "the table '{name}' has serial {serial}, and this client has seen {newest} before: its server shows an old one, so nothing \
         was asked; ask again later, or ask its operator for the newest"
    )]
    OlderSerial {
        /// The signed name.
        name: Name,
        /// The table's serial.
        serial: u64,
        /// The greatest that was seen.
        newest: u64,
    },
    /// A look-up over rings before [`crate::Table::use_keys`].
    #[error("the table needs evaluation keys: call use_keys before the first look-up")]
    NoKeys,
    /// What was found is no compressed value, or there is no such dictionary.
    #[error("what was found is not compressed as the table says: its server, or who built it, is at fault")]
    Compression,
    /// A downloaded hint is not the one that the descriptor names.
    #[error("the hint does not match its hash: download it again")]
    HintHash,
}
