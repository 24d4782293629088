//! A local front door: programs ask it over plain HTTP, and it answers by private look-ups. A program that knows a web API so asks
//! privately without being changed.
//!
//! * `config.rs`: the file that says which paths and methods there are.
//! * `template.rs`: texts with parts to fill in: keys, and bodies of responses.
//! * `tables.rs`: the tables, each asked by a thread of its own. `cache.rs`: answers that are kept for a while, if wanted.
//! * `front.rs`: the HTTP server. `routes.rs`: paths. `rpc.rs`: methods of JSON-RPC.

mod cache;
mod config;
mod front;
mod routes;
mod rpc;
mod tables;
mod template;

pub use config::{ConfigError, ProxyConfig};
pub use front::FrontDoor;
