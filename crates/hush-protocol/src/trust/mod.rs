//! Trust and privacy beyond the protocols.
//!
//! * [`signature`]: the signature of a table's publisher.
//! * [`ohttp`]: Oblivious HTTP, which hides a client's address from the server.
//! * [`shown_url`]: URLs without passwords, queries and fragments.

pub mod ohttp;
pub(crate) mod shown_url;
pub mod signature;
