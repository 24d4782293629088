//! What is told of tables.

use hush_client::http;
use hush_protocol::descriptor::Lookup;

/// A table in a server's list.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// `resident`, or `loading` for a table whose look-ups have to wait.
    pub state: String,
    /// Name of its protocol; absent while it is loading.
    pub protocol: Option<String>,
    /// Its number of records; absent while it is loading.
    pub records: Option<u64>,
}

impl From<&http::TableInfo> for TableInfo {
    fn from(table: &http::TableInfo) -> Self {
        let http::TableInfo { name, state, protocol, records } = table.clone();
        Self { name, state, protocol, records }
    }
}

/// What a table says of itself.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct Facts {
    /// Name of its protocol.
    pub protocol: String,
    /// Name of its parameter set.
    pub parameter_set: String,
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
    /// Bytes of its hint as clients download it; 0 if there is none.
    pub hint_bytes: u64,
}

impl From<&hush_client::Table> for Facts {
    fn from(table: &hush_client::Table) -> Self {
        let (facts, descriptor) = (table.facts(), table.descriptor());
        let fields = descriptor.schema.as_ref().and_then(|schema| schema.fields());
        Self {
            protocol: facts.protocol.name().into(),
            parameter_set: facts.preset.into(),
            security_bits: facts.security_bits,
            records: descriptor.records,
            epoch: hex::encode(descriptor.epoch),
            by_key: matches!(descriptor.lookup, Lookup::Key(_)),
            fields: fields.map(|names| names.into_iter().map(String::from).collect()),
            hint_bytes: descriptor.hint_bytes(),
        }
    }
}
