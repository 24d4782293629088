//! The protocols: the layout, the client half and the server half of each. A *page* is the module that declares one
//! protocol. Server halves are generic over the steps of a backend, such as the CPU or a GPU.
//!
//! * [`registry`]: the list of all protocols. [`page`]: the traits that a page implements. [`any_page`]: the same with
//!   types erased. [`client`]: the client half of any table.
//! * `pages/`: a file for each protocol. `families/`: code that several pages share.
//! * `tables/`: the description of a table: [`descriptor`], [`facts`], [`layout`], [`schema`], [`presets`] and others.
//! * `hosting/`: tables on a backend ([`hosted`]), split into [`share`]s.
//! * `slots/`: the target of a look-up and the bytes that it finds: [`slot`], [`fields`], [`symbols`] and others.
//! * [`keyword`]: look-ups by key, over every protocol. [`sorted`]: neighbours, prefixes and ranges, over look-ups by position.
//! * [`wire`]: messages and their checks.
//! * `trust/`: the signature of a table's publisher ([`signature`]), and messages through a relay ([`ohttp`]).
//! * [`Code`]: the kinds of errors, each with its [`Remedy`]. [`wording`]: the names of options in error messages.
//!
//! The folders are private. Each of their modules is public here, under one path.

pub mod any_page;
pub mod client;
mod code;
mod error;
mod families;
mod hosting;
pub mod keyword;
pub mod page;
mod pages;
pub mod registry;
mod slots;
pub mod sorted;
mod tables;
mod trust;
pub mod wire;
pub mod wording;

pub use code::{Code, ErrorKind, Remedy};
pub use error::ProtocolError;
pub use families::{
    column::{page as column_page, table as column_table},
    lwe::{page as lwe_page, table as lwe_table},
    pack::{host as pack_host, page as pack_page, table as pack_table},
    ring::{keys as ring_keys, page as ring_page, table as ring_table, whitening},
};
use families::{message, online_rows, response, ring::answer as ring_answer};
pub use hosting::{exchange, expansions, halves, hosted, share};
use hosting::{parts, tournament};
#[cfg(test)]
use pages::toy;
pub use pages::{
    colpack, colpack_s, double, double_pack, download, exppack_d, exppack_s, frodo, hybrid, onion, simple,
    tfhe, tfhe_privks,
};
pub use registry::Protocol;
use slots::target;
pub use slots::{changes, fields, normal_form, slot, symbols, target::Target};
use tables::entry_layout;
pub use tables::{
    column_type, descriptor, facts, layout,
    name::{self, InvalidName, Name},
    presets, schema, table,
};
pub use trust::{ohttp, shown_url::shown_url, signature};
