//! A row: a measurement of one scheme.

use serde::{Deserialize, Serialize};

/// A measurement of one scheme on one set of records.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Row {
    /// The name of the peer, or of HushDB's protocol.
    pub peer: String,
    /// The version of the peer's crate, or of HushDB.
    pub version: String,
    /// The parameters, and the work that is measured.
    pub what: String,
    /// The number of records.
    pub records: usize,
    /// The bytes of a record.
    pub record_bytes: usize,
    /// The number of threads of each step.
    pub threads: usize,
    /// The seconds from the records in memory to a server that answers.
    pub setup_seconds: f64,
    /// The milliseconds in which a client makes a query, with keys if the scheme sends keys with every query.
    pub query_ms: f64,
    /// The milliseconds in which the server answers one query.
    pub answer_ms: f64,
    /// The milliseconds in which the client decodes the answer.
    pub decode_ms: f64,
    /// The part of `answer_ms` that reads the table, if the peer tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_ms: Option<f64>,
    /// The part of `answer_ms` that packs ciphertexts, if the peer tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack_ms: Option<f64>,
    /// The bytes of a query.
    pub up_bytes: usize,
    /// The bytes of an answer.
    pub down_bytes: usize,
    /// The bytes that a client downloads once for a table: hints, filters, masks.
    pub offline_bytes: usize,
    /// The bytes of the keys that a client uploads once.
    pub key_bytes: usize,
    /// The number of measured look-ups. Times are medians of them.
    pub runs: usize,
    /// Whether every decoded answer equals its record. It is always true: a wrong answer is an error.
    pub checked: bool,
    /// The name of the CPU.
    pub machine: String,
    /// The level of instructions that HushDB uses on this CPU.
    pub level: String,
}
