//! The error of the client.

use hush_protocol::{ProtocolError, signature::PublicKey};
use thiserror::Error;

/// Why a look-up could not be made or read.
#[derive(Debug, Error)]
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
        /// [`Acceptance::publisher`](crate::Acceptance::publisher).
        asked: PublicKey,
    },
    /// Somebody else has signed the table's epoch.
    #[error(
        "the table is signed by {actual}, not by {asked}: its server may have made it up for you, so nothing was asked"
    )]
    OtherPublisher {
        /// Who did.
        actual: PublicKey,
        /// [`Acceptance::publisher`](crate::Acceptance::publisher).
        asked: PublicKey,
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
