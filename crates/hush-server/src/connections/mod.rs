//! Connections, from the place that a listener gives to one to its orderly close.
//!
//! * [`places`]: how many connections a listener has at most, and which idle one makes room.
//! * [`connection`]: one connection, with its timeouts and byte counts. [`tls`]: its TLS. [`http2`] and [`streams`]: HTTP/2 and its
//!   requests.
//! * [`pace`]: how slowly a client may read.

pub(crate) mod connection;
pub(crate) mod http2;
pub(crate) mod pace;
pub(crate) mod places;
pub(crate) mod streams;
pub(crate) mod tls;
