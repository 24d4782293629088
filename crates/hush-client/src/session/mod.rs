//! The session of a client without I/O: it gives requests and takes responses.
//!
//! A driver makes the requests, sleeps, and has a clock and places for hints and keys ([`Host`]). The rest is here.
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
//! | file | what |
//! |------|------|
//! | `server.rs` | a server: which tables it has, opening one |
//! | `lookups.rs` | look-ups in an open table: chunks, keys that the server lacks, new epochs |
//! | `answers.rs` | the answers of one request, until they are decoded |
//! | `hint.rs` | the hint: downloaded, resumed, verified |
//! | `link.rs` | requests, retries, bounded bodies |
//! | `problem.rs` | what refusals mean |
//! | `relay.rs` | Oblivious HTTP: requests through a relay |
//! | `seal.rs` | the seal of these requests |
//! | `pieces.rs` | a file through a relay, in pieces |
//! | `task.rs` | the machine: what to do next, and what came of it |
//! | `message.rs`, `url.rs` | requests and responses, the server's URL |
//! | `host.rs` | what a session needs of the program around it |
//! | `keys.rs` | the evaluation keys of a session |
//! | `kept_keys.rs` | the records of keys, as hosts keep them |
//! | `kind.rs` | what bindings of a language make of an error |
//! | `options.rs` | what can be chosen, and what is reported |
//! | `stats.rs` | bytes and seconds |
//!
//! What is sent depends on the table and on the number of look-ups alone. Look-ups that are sent again, after a
//! failure or a new epoch, are encrypted again under fresh secrets. New evaluation keys are uploaded before the first look-up under
//! them, and count look-ups, not what came of these.

mod answers;
mod error;
mod hint;
mod host;
pub mod kept_keys;
mod keys;
mod kind;
mod link;
mod lookups;
mod message;
mod options;
mod pieces;
mod problem;
mod relay;
mod seal;
mod server;
mod stats;
mod task;
mod url;

pub use answers::Answers;
pub use error::{CacheError, SessionError, TransportFailure};
pub use host::{CachedHint, CheckedHint, Hint, Host, Need, PartialHint, Seed};
pub use kept_keys::{KeptKeys, KeyNote, KeyRequest};
pub use kind::{ErrorKind, camel_case};
pub use lookups::Session;
pub use message::{Head, Method, Request};
pub use options::{
    DEFAULT_LOOKUPS_PER_KEY, DEFAULT_MAX_HINT_BYTES, Event, MAX_LOOKUPS_PER_KEY, RelayOptions, RetryPolicy,
    SessionOptions,
};
#[cfg(feature = "http")]
pub(crate) use problem::on_the_way;
pub use server::{Server, TableInfo};
pub use stats::{Seconds, Stats};
pub use task::{Action, Task};
pub use url::ServerUrl;
