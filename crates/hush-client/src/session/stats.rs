//! Bytes and seconds.

use serde::Serialize;

/// The cost of a table since it was opened. Bytes are those of message bodies, without HTTP headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Look-ups sent, those sent again included: what the server could count.
    pub queries: u64,
    /// Bytes sent for look-ups.
    pub bytes_up: u64,
    /// Bytes received for look-ups.
    pub bytes_down: u64,
    /// Look-ups answered.
    pub answers: u64,
    /// Bytes sent for one look-up, its share of the request included.
    pub query_bytes: u64,
    /// Bytes received for one look-up, its share of the response included.
    pub answer_bytes: u64,
    /// Bytes sent to upload evaluation keys.
    pub key_bytes_up: u64,
    /// Bytes sent for descriptor and hint.
    pub setup_bytes_up: u64,
    /// Bytes received for descriptor and hint; without the hint where it came from the cache.
    pub setup_bytes_down: u64,
    /// Time by phase.
    pub seconds: Seconds,
}

impl Stats {
    /// Returns these, with the bytes of one look-up.
    pub(super) fn shared(self) -> Self {
        let query_bytes = self.bytes_up.checked_div(self.queries).unwrap_or(0);
        let answer_bytes = self.bytes_down.checked_div(self.answers).unwrap_or(0);
        Self { query_bytes, answer_bytes, ..self }
    }
}

/// Seconds by phase, by the clock of the [`Host`](super::Host).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Seconds {
    /// Fetching the descriptor.
    pub descriptor: f64,
    /// Fetching the hint, or finding it in the cache and checking its hash.
    pub hint: f64,
    /// Deriving evaluation keys, and uploading them.
    pub keys: f64,
    /// Encrypting.
    pub encrypt: f64,
    /// From sending a request to the last byte of its response, waits before retries included.
    pub network: f64,
    /// Decrypting.
    pub decode: f64,
}
