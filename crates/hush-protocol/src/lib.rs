//! The protocols, a page each: layout, client half, server half. Server halves are generic over the backend's steps.
//!
//! * [`registry`]: every protocol, a line each. [`page`]: what a page says. [`any_page`]: pages and tables without their types.
//!   [`client`]: a client's half of any table.
//! * `pages/`: a protocol a file. `families/`: what pages share.
//! * `tables/`: what is known of a table: [`descriptor`], [`facts`], [`layout`], [`schema`], [`presets`] and others.
//! * `hosting/`: a table on a backend: [`hosted`], by [`share`]s.
//! * `slots/`: what a look-up asks for, and the bytes that it finds: [`slot`], [`fields`], [`symbols`] and others.
//! * [`keyword`]: look-ups by key, over every protocol.
//! * [`wire`]: messages and their checks.
//! * `trust/`: who published a table ([`signature`]), and how messages go through a relay ([`ohttp`]).
//! * [`Code`]: what can go wrong, with its [`Remedy`]. [`wording`]: texts that name options, as each door words them.
//!
//! The folders are private. Their modules are public here, each under one path.

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
mod tables;
mod trust;
pub mod wire;
pub mod wording;

pub use code::{Code, ErrorKind, Remedy};
pub use error::ProtocolError;
pub use families::{
    column::{page as column_page, table as column_table},
    lwe::{page as lwe_page, table as lwe_table},
    pack::{page as pack_page, table as pack_table},
    ring::{keys as ring_keys, page as ring_page, table as ring_table, whitening},
};
use families::{message, online_rows, response, ring::answer as ring_answer};
pub use hosting::{exchange, halves, hosted, share};
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
