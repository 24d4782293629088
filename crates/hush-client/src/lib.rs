//! The client as a state machine, bytes in and bytes out: [`session`] returns the requests that a caller sends to a server.
//! [`http`] (feature `http`) sends them itself.
//!
//! * `acceptance.rs`: the tables that a client accepts. `table.rs`, `lookup.rs`, `decompressor.rs`: queries and values.
//! * `session/`: the state machine. `requests/`: its requests. `relay/`: Oblivious HTTP. `keys/`: evaluation keys.

mod acceptance;
mod choices;
mod decompressor;
mod error;
mod facts;
mod lookup;
pub mod session;
mod table;

#[cfg(feature = "http")]
pub mod http;

pub use acceptance::{Acceptance, Trust, parse_epoch};
pub use choices::Choices;
pub use decompressor::Decompressor;
pub use error::ClientError;
pub use facts::TableFacts;
pub use lookup::{Found, KeyColumn, Wanted};
pub use table::{Decoded, KeyId, PendingLookup, PreparedQuery, Table};
