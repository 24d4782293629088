//! Bytes and seconds: the client's own types, with the words of their bindings.

pub use hush_client::http::{Seconds, Stats};

/// The cost of a table since it was opened. Bytes are those of message bodies, without HTTP headers.
#[uniffi::remote(Record)]
pub struct Stats {
    /// Look-ups sent, those sent again included: what the server could count.
    pub queries: u64,
    /// Prepared queries that are ready.
    pub prepared: u64,
    /// Look-ups answered.
    pub answers: u64,
    /// Bytes sent for look-ups.
    pub bytes_up: u64,
    /// Bytes received for look-ups.
    pub bytes_down: u64,
    /// Bytes sent for one look-up.
    pub query_bytes: u64,
    /// Bytes received for one look-up.
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

/// Seconds by phase.
#[uniffi::remote(Record)]
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
    /// From sending a request to the last byte of its response, waits before retries included.
    pub network: f64,
    /// Decrypting.
    pub decode: f64,
}
