//! One page a protocol: layout, client half, server half. Server halves are generic over the backend's steps.
//!
//! * [`registry`]: every protocol, a line each. [`page`]: what a page says. [`facts`], [`any_page`]: the same as data.
//! * [`presets`]: every parameter set, and the protocols that take it.
//! * [`simple`], [`frodo`], [`double`]: over LWE ([`lwe_page`], [`lwe_table`]).
//! * [`onion`], [`tfhe`], [`tfhe_privks`]: over rings ([`ring_page`], [`ring_table`], [`ring_keys`], [`whitening`]).
//! * [`exppack_s`], [`exppack_d`], [`mod@double_pack`], [`hybrid`]: packed by evaluation keys ([`pack_page`], [`pack_table`]).
//! * [`mod@colpack`], [`colpack_s`]: packed by keys that travel with the query ([`column_page`], [`column_table`]).
//! * [`download`]: the hint is the table, and a look-up sends nothing.
//! * [`hosted`]: a table on a backend, in parts. [`halves`]: what parts and their head hold and do. [`client`]: a client's half.
//! * [`layout`]: shapes. [`keyword`]: look-ups by key on all of them. [`slot`]: what is in a slot, [`fields`]: in a value.
//! * [`schema`]: columns, [`column_type`]: their types.
//! * [`symbols`]: k-bit symbols.
//! * [`mod@name`]: names of tables and of their files.
//! * [`descriptor`]: what a client must know. [`wire`]: messages. [`ohttp`]: how they go through a relay.
//! * [`wording`]: texts that name options, as each door words them.

pub mod any_page;
pub mod changes;
pub mod client;
pub mod colpack;
pub mod colpack_s;
pub mod column_page;
pub mod column_table;
pub mod column_type;
pub mod descriptor;
pub mod double;
pub mod double_pack;
pub mod download;
mod entry_layout;
mod error;
pub mod exchange;
pub mod exppack_d;
pub mod exppack_s;
pub mod facts;
pub mod fields;
pub mod frodo;
pub mod halves;
pub mod hosted;
pub mod hosted_parts;
pub mod hybrid;
pub mod keyword;
pub mod layout;
pub mod lwe_page;
pub mod lwe_table;
mod message;
pub mod name;
pub mod normal_form;
pub mod ohttp;
pub mod onion;
mod online_rows;
pub mod pack_page;
pub mod pack_table;
pub mod page;
mod parts;
pub mod presets;
pub mod registry;
mod response;
mod ring_answer;
pub mod ring_keys;
pub mod ring_page;
pub mod ring_table;
pub mod schema;
mod shown_url;
pub mod signature;
pub mod simple;
pub mod slot;
pub mod symbols;
pub mod table;
mod target;
pub mod tfhe;
pub mod tfhe_privks;
mod tournament;
#[cfg(test)]
mod toy;
pub mod whitening;
pub mod wire;
pub mod wording;

pub use error::ProtocolError;
pub use name::{InvalidName, Name};
pub use registry::Protocol;
pub use shown_url::shown_url;
pub use target::Target;
