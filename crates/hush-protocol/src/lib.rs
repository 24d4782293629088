//! One page a protocol: layout, client half, server half. Server halves are generic over the backend's steps.
//!
//! * [`table`]: protocol, parameters and shape of a table, checked together; every size ([`lwe_table`], [`ring_table`],
//!   [`pack_table`], [`column_table`]).
//! * [`simple`], [`frodo`], [`double`]: the protocols over LWE. [`onion`]: over rings ([`ring_keys`],
//!   [`whitening`]).
//! * [`exppack_s`], [`exppack_d`], [`mod@double_pack`], [`hybrid`]: LWE packed into rings ([`packing`]).
//! * [`mod@colpack`], [`colpack_s`]: LWE packed by keys that travel with the query ([`column_packing`]).
//! * [`layout`]: shapes. [`keyword`]: key look-ups on all of them.
//! * [`slot`]: what is in a slot. [`symbols`]: bytes as k-bit symbols.
//! * [`descriptor`]: what a client must know. [`wire`]: messages.

pub mod colpack;
pub mod colpack_s;
pub mod column_packing;
pub mod column_table;
pub mod descriptor;
pub mod double;
pub mod double_pack;
mod entry_layout;
mod error;
pub mod exppack_d;
pub mod exppack_s;
pub mod frodo;
pub mod hybrid;
pub mod keyword;
pub mod layout;
pub mod lwe_table;
pub mod onion;
pub mod pack_table;
pub mod packing;
mod response;
pub mod ring_keys;
pub mod ring_table;
pub mod simple;
pub mod slot;
pub mod symbols;
pub mod table;
mod target;
pub mod whitening;
pub mod wire;

pub use error::ProtocolError;
pub use target::Target;
