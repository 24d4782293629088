//! The protocols, one page in each file. A page holds a protocol's layout, its client half and its server half.
//!
//! * [`simple`], [`frodo`], [`double`]: protocols over LWE.
//! * [`onion`], [`tfhe`], [`tfhe_privks`]: protocols over rings.
//! * [`exppack_s`], [`exppack_d`], [`mod@double_pack`], [`hybrid`]: answers are packed with a client's uploaded evaluation
//!   keys.
//! * [`mod@colpack`], [`colpack_s`]: answers are packed with keys that are part of the query.
//! * [`download`]: the client downloads the whole table as its hint.
//!
//! Code that several pages share is in [`families`](crate::families). A new page also needs a line in
//! [`registry`](crate::registry).

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
