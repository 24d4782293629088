//! The session of a client without I/O. It returns requests and takes responses.
//!
//! A driver sends the requests and waits. A [`Host`] has a clock, and stores hints and keys. The session does the rest.
//!
//! ```no_run
//! use hush_client::session::{Action, Head, Request, Task, TransportFailure};
//!
//! /// A blocking driver. One with an event loop awaits where this one blocks.
//! fn drive<T>(
//!     mut task: Task<'_, T>,
//!     make: impl Fn(&Request) -> Result<(Head, Vec<u8>), TransportFailure>,
//! ) -> T {
//!     loop {
//!         match task.advance() {
//!             Action::Send(request) => match make(&request) {
//!                 Ok((head, body)) => task.respond(head, &body),
//!                 Err(failure) => task.fail(failure),
//!             },
//!             Action::Wait(wait) => std::thread::sleep(wait),
//!             Action::Done(result) => return result,
//!         }
//!     }
//! }
//! ```
//!
//! | file | content |
//! |------|------|
//! | `server.rs` | a server: its tables, and opening one |
//! | `lookups.rs` | look-ups in an open table: chunks, keys that the server lacks, new epochs |
//! | `answers.rs` | the answers of one request, until they are decoded |
//! | `hint.rs` | the hint: download, resumption, check |
//! | `keys/` | the evaluation keys of a session, and the records of keys that hosts store |
//! | `requests/` | requests and responses, retries, bounded bodies, the server's URL, problem documents |
//! | `relay/` | Oblivious HTTP: requests through a relay, their seal, a file in pieces |
//! | `task.rs` | the state machine: the next action, and the response to it |
//! | `host.rs` | the interface to the program around a session |
//! | `error.rs` | errors, each with a code |
//! | `options.rs` | options and events |
//! | `stats.rs` | bytes and seconds |
//!
//! The requests depend only on the table and on the number of look-ups. Look-ups that are sent again, after a failure or a
//! new epoch, are encrypted again under fresh secrets. New evaluation keys are uploaded before the first look-up with them.
//! The session counts the look-ups under each set of keys, whatever the results, and replaces the keys after the set number.

mod answers;
mod error;
mod hint;
mod host;
mod keys;
mod lookups;
mod options;
mod relay;
mod requests;
mod server;
mod stats;
mod task;

pub use answers::Answers;
pub use error::{CacheError, ServerRefusal, SessionError, TransportFailure};
pub use host::{CachedHint, CheckedHint, Hint, Host, Need, PartialHint};
pub use keys::kept_keys::{self, KeptKeys, KeyNote, KeyRequest, Seed};
pub use lookups::Session;
pub use options::{
    DEFAULT_LOOKUPS_PER_KEY, DEFAULT_MAX_HINT_BYTES, Event, MAX_LOOKUPS_PER_KEY, RelayOptions, RetryPolicy,
    SessionOptions,
};
#[cfg(feature = "http")]
pub(crate) use requests::problem::on_the_way;
pub use requests::{
    message::{Head, Method, Request},
    url::ServerUrl,
};
pub use server::{Server, TableInfo};
pub use stats::{Seconds, Stats};
pub use task::{Action, Task};
