//! A blocking driver of [`session`](crate::session) over HTTP/1.1, with hints and keys in files.
//!
//! ```no_run
//! use hush_client::{Wanted, http::{HttpClient, HttpError, HttpOptions}};
//!
//! # fn main() -> Result<(), HttpError> {
//! let client = HttpClient::connect("https://hush.example", HttpOptions::default())?;
//! let found = client.open(Some("people"))?.lookup(&[Wanted::Key(b"alice@example.org".to_vec())])?;
//! assert_eq!(found, [Some(b"Alice".to_vec())]);
//! # Ok(())
//! # }
//! ```
//!
//! | file | content |
//! |------|------|
//! | `options.rs` | the options of a client |
//! | `client.rs` | a server and its tables |
//! | `transport.rs` | requests and waits |
//! | `call.rs` | the cancellation and the deadline of a call |
//! | `files.rs` | the host of a session: a clock, an observer, files |
//! | `hint.rs` | the files of hints |
//! | `secrets.rs` | records of evaluation keys, kept for the next process |
//! | `lock.rs`, `private.rs` | locks on these files, and who can read them |

mod call;
mod client;
mod file_cache_error;
mod files;
mod hint;
mod lock;
mod oblivious;
mod options;
mod private;
mod secrets;
mod serials;
mod transport;

pub use call::{CallOptions, Cancel};
pub use client::{HttpClient, HttpTable};
pub use file_cache_error::FileCacheError;
pub use files::FileHost;
pub use oblivious::{Said, SealedPeer};
pub use options::{BearerToken, HintCache, HttpOptions, Observer, TlsIdentity, TlsOptions};

pub use transport::{agent, on_the_way, why_failed};

pub use crate::session::{
    Answers, DEFAULT_LOOKUPS_PER_KEY, DEFAULT_MAX_HINT_BYTES, Event, MAX_LOOKUPS_PER_KEY, RelayOptions,
    RetryPolicy, Seconds, ServerRefusal, SessionError as HttpError, Stats, TableInfo,
};
