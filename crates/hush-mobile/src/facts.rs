//! The facts of tables: the client's own types, with the words of their bindings.

pub use hush_client::{TableFacts as Facts, http::TableInfo};

/// A table in a server's list.
#[uniffi::remote(Record)]
pub struct TableInfo {
    /// The name of the table.
    pub name: String,
    /// `resident`, or `loading` for a table whose look-ups have to wait.
    pub state: String,
    /// Name of its protocol; absent while it is loading.
    pub protocol: Option<String>,
    /// The number of records; absent while the table is loading.
    pub records: Option<u64>,
}

/// The facts of a table.
#[uniffi::remote(Record)]
pub struct Facts {
    /// Name of its protocol.
    pub protocol: String,
    /// Name of its parameter set.
    pub preset: String,
    /// Bits of security.
    pub security_bits: f64,
    /// Number of records.
    pub records: u64,
    /// The hash of what is in it: 64 hex digits.
    pub epoch: String,
    /// Whether records have keys, or else positions.
    pub by_key: bool,
    /// The columns of its values, if these have several: each value is then a JSON object of them.
    pub fields: Option<Vec<String>>,
    /// Whether queries name the client's evaluation keys: then the server can tell that look-ups come from the same client.
    pub linkable: bool,
    /// Bytes that a look-up sends.
    pub query_bytes: u64,
    /// Bytes that a look-up gets.
    pub answer_bytes: u64,
    /// Bytes of its hint as clients download it; 0 if there is none.
    pub hint_bytes: u64,
    /// Bytes of evaluation keys as clients upload them; 0 if there are none.
    pub key_bytes: u64,
}
