//! A driver of [`session`](crate::session) that blocks, over HTTP/1.1, with hints and seeds in files.
//!
//! | file | what |
//! |------|------|
//! | `options.rs` | what can be chosen |
//! | `client.rs` | a server, and a table of it |
//! | `transport.rs` | requests and waits |
//! | `files.rs` | what a session needs of the program: a clock, an observer, files |
//! | `hint.rs` | the files of hints |
//! | `secrets.rs` | seeds of evaluation keys, kept for the next process |

mod client;
mod files;
mod hint;
mod oblivious;
mod options;
mod pieces;
mod secrets;
mod transport;

pub use client::{HttpClient, HttpTable};
pub use files::{FileCacheError, FileHost};
pub use oblivious::{Said, SealedPeer};
pub use options::{BearerToken, HintCache, HttpOptions, Observer, RelayOptions, TlsIdentity, TlsOptions};

pub use transport::agent;

pub use crate::session::{
    DEFAULT_MAX_HINT_BYTES, Event, RetryPolicy, Seconds, SessionError as HttpError, Stats, TableInfo,
};
