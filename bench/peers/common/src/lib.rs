//! The records, the clock and the rows that all programs of this folder share.

mod records;
mod row;
mod scheme;

pub use records::Records;
pub use row::Row;
pub use scheme::{Answered, Costs, Error, Scheme, measure, median};
