//! The names of a table's columns.

use hush_protocol::fields::Fields;
use serde::{Deserialize, Serialize};

/// The columns of which keys and values are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnNames {
    /// The columns of the key, in order; none if records are looked up by row.
    pub key: Vec<String>,
    /// The columns of the value, in order.
    pub value: Vec<String>,
}

impl ColumnNames {
    /// The fields of a value, if it is of several columns.
    pub fn fields(&self) -> Option<Fields> {
        (self.value.len() > 1).then(|| Fields::new(self.value.clone()))
    }
}
