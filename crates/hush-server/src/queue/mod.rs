//! The admission of requests, their waiting, and the scans that queries become.
//!
//! * [`limits`]: reads a body within a size, a time and a memory budget, which answers share.
//! * [`throttle`]: limits queries per second and address.
//! * [`batch`]: collects concurrent queries of a table into one scan. [`turns`]: the order of the queries that wait, each client in
//!   turn. [`waits`]: how long a query waits for its scan, and whether that is too long.

pub(crate) mod batch;
pub(crate) mod limits;
pub(crate) mod throttle;
pub(crate) mod turns;
pub(crate) mod waits;
