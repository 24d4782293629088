//! Connections of a listener, from the allocation of a slot to an orderly close.
//!
//! * [`places`]: the slots for connections of a listener, and the idle connection that frees one.
//! * [`connection`]: one connection, with its timeouts and byte counts. [`tls`]: its TLS. [`http2`] and [`streams`]: HTTP/2 and its
//!   requests.
//! * [`pace`]: how slowly a client may read.

pub(crate) mod connection;
pub(crate) mod http2;
pub(crate) mod pace;
pub(crate) mod places;
pub(crate) mod streams;
pub(crate) mod tls;
