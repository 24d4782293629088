//! A table on a backend, in one part or in several.
//!
//! * [`hosted`]: a table whose parts are in this process. [`hosted_parts`]: a table whose parts are elsewhere.
//! * [`halves`]: what a part and its head hold, do and send, as plain data.
//! * [`parts`]: puts the partials of all parts together. [`tournament`]: does so by folding entries to one.
//! * [`exchange`]: divides a batch among devices, so that each finishes some of the queries.

pub mod exchange;
pub mod halves;
pub mod hosted;
pub mod hosted_parts;
pub(crate) mod parts;
pub(crate) mod tournament;
