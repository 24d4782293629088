//! The protocols, one page a file. A page holds a protocol's layout, its client half and its server half.
//!
//! * [`simple`], [`frodo`], [`double`]: over LWE.
//! * [`onion`], [`tfhe`], [`tfhe_privks`]: over rings.
//! * [`exppack_s`], [`exppack_d`], [`mod@double_pack`], [`hybrid`]: answers are packed by a client's evaluation keys.
//! * [`mod@colpack`], [`colpack_s`]: answers are packed by keys that travel with the query.
//! * [`download`]: the hint is the table.
//!
//! What several pages share is in [`families`](crate::families). A new page also needs its line in [`registry`](crate::registry).

pub mod colpack;
pub mod colpack_s;
pub mod double;
pub mod double_pack;
pub mod download;
pub mod exppack_d;
pub mod exppack_s;
pub mod frodo;
pub mod hybrid;
pub mod onion;
pub mod simple;
pub mod tfhe;
pub mod tfhe_privks;
#[cfg(test)]
pub(crate) mod toy;
