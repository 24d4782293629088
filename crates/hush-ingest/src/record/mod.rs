//! The conversion of rows to records: the fields of a row, their types, and the columns that make the key and the value.

pub(crate) mod calendar;
pub(crate) mod cast;
pub(crate) mod cell;
pub(crate) mod inferred;
pub(crate) mod projection;
pub(crate) mod row_map;
