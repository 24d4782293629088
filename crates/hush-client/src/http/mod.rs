//! A blocking transport over HTTP/1.1, with a cache of hints.
//!
//! | file | what |
//! |------|------|
//! | `options.rs` | what can be chosen, and what is reported while it works |
//! | `client.rs` | a server: which tables it has, opening one |
//! | `table.rs` | look-ups in a table |
//! | `hint.rs` | the hint: cached, downloaded, resumed, verified |
//! | `secrets.rs` | seeds of evaluation keys, kept for the next process |
//! | `keys.rs` | evaluation keys, uploaded when the server asks for them |
//! | `transport.rs` | requests, retries, bounded bodies |
//! | `stats.rs` | bytes and seconds |
//!
//! What is sent depends on the table and on the number of look-ups alone. Look-ups that are sent again, after a
//! failure or a new epoch, are encrypted again under fresh secrets.

mod client;
mod error;
mod hint;
mod keys;
mod options;
mod secrets;
mod stats;
mod table;
mod transport;

pub use client::{HttpClient, TableInfo};
pub use error::HttpError;
pub use options::{DEFAULT_MAX_HINT_BYTES, Event, HintCache, HttpOptions, Observer, RetryPolicy};
pub use stats::{Seconds, Stats};
pub use table::HttpTable;
