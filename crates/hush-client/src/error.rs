//! The error of the client.

use hush_protocol::ProtocolError;
use thiserror::Error;

/// Why a look-up could not be made or read.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The table or the look-up was refused.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The table's parameter set is below 128 bits of security.
    #[error(
        "the table uses {preset}, which gives {bits:.0} bits of security (128 are the minimum): ask its operator \
         for another preset, or accept the risk with --allow-weak"
    )]
    Weak {
        /// Name of the preset.
        preset: &'static str,
        /// Its security.
        bits: f64,
    },
    /// A look-up over rings before [`crate::Table::use_keys`].
    #[error("the table needs evaluation keys: call use_keys before the first look-up")]
    NoKeys,
    /// A downloaded hint is not the one that the descriptor names.
    #[error("the hint does not match its hash: download it again")]
    HintHash,
}
