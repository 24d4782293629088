//! HushDB in Swift and Kotlin: a server, its tables, look-ups. Bindings are made of what is exported here (UniFFI); comments of it
//! are for them, with their names.
//!
//! Each call that asks a server has two forms: one to await (`async` in Swift, `suspend` in Kotlin), and one that blocks.

mod client;
mod error;
mod facts;
mod key;
mod observer;
mod options;
mod stats;
mod table;
mod thread;

pub use client::Client;
pub use error::HushError;
pub use facts::{Facts, TableInfo};
pub use key::{Key, KeyColumn, Rows};
pub use observer::{Event, Observer, ObserverError};
pub use options::Options;
pub use stats::{Seconds, Stats};
pub use table::Table;

uniffi::setup_scaffolding!();
