//! A table, or a share of it, on a backend.
//!
//! * [`share`]: the units of each device. [`hosted`]: scans units, and finishes answers.
//! * [`halves`]: the files, steps and contributions of a part and of its head, as plain data.
//! * [`parts`]: joins the partials of all parts. [`tournament`]: folds the entries of all parts to one.
//! * [`exchange`]: divides a batch among devices, so that each finishes some of the queries. [`expansions`]: what each expands of
//!   them.

pub mod exchange;
pub mod expansions;
pub mod halves;
pub mod hosted;
pub(crate) mod parts;
pub mod share;
pub(crate) mod tournament;
