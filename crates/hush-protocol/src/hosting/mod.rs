//! A table on a backend, whole or a share of it.
//!
//! * [`share`]: which units a device has. [`hosted`]: scans them, and finishes answers.
//! * [`halves`]: what a part and its head hold, do and send, as plain data.
//! * [`parts`]: puts the partials of all parts together. [`tournament`]: does so by folding entries to one.
//! * [`exchange`]: divides a batch among devices, so that each finishes some of the queries.

pub mod exchange;
pub mod halves;
pub mod hosted;
pub(crate) mod parts;
pub mod share;
pub(crate) mod tournament;
