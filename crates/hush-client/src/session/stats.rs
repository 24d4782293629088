//! The bytes and seconds that a table has cost.

use serde::Serialize;

/// The traffic and time of a table since it was opened. Bytes are of message bodies, without HTTP headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// The number of look-ups sent, including those sent again. A server can count these.
    pub queries: u64,
    /// Bytes sent for look-ups.
    pub bytes_up: u64,
    /// Bytes received for look-ups.
    pub bytes_down: u64,
    /// The number of prepared queries that are ready.
    pub prepared: u64,
    /// The number of look-ups answered.
    pub answers: u64,
    /// Bytes sent for one look-up, including its share of the request.
    pub query_bytes: u64,
    /// Bytes received for one look-up, including its share of the response.
    pub answer_bytes: u64,
    /// Bytes sent to upload evaluation keys.
    pub key_bytes_up: u64,
    /// Bytes sent for descriptor and hint.
    pub setup_bytes_up: u64,
    /// Bytes received for descriptor and hint, except a hint that came from the cache.
    pub setup_bytes_down: u64,
    /// The time by phase.
    pub seconds: Seconds,
}

impl Stats {
    /// Fills in the bytes of one look-up.
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
    /// Preparing queries before their look-ups.
    pub prepare: f64,
    /// Encrypting.
    pub encrypt: f64,
    /// From sending a request to the last byte of its response, including waits before retries.
    pub network: f64,
    /// Decrypting.
    pub decode: f64,
}
