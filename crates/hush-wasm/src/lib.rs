//! The session of a client ([`hush_client::session`]) for JavaScript, without I/O: requests out, responses in, progress, results.
//!
//! The driver is `clients/js`: it makes requests with `fetch`, waits, and keeps hints and seeds. What is here only translates: what
//! is sent, and when, is the session's alone.
//!
//! | file | what |
//! |------|------|
//! | `client.rs` | a server, an open table |
//! | `work.rs` | what is under way: the steps that a driver takes |
//! | `host.rs` | a clock, and places for hints and seeds that the driver fills |
//! | `error.rs` | errors with a code, and what to do about them in JavaScript |
//! | `object.rs` | JavaScript objects |
//!
//! Nothing here is a public interface of the package: that is what `clients/js` exports.

mod client;
mod error;
mod host;
mod object;
mod work;

use std::panic;

use hush_protocol::wording;
use wasm_bindgen::prelude::wasm_bindgen;

/// Makes a panic an exception with its message. The module is of no use after one: the driver drops it.
#[wasm_bindgen(start)]
pub fn start() {
    wording::speak(error::named);
    panic::set_hook(Box::new(|panic| wasm_bindgen::throw_str(&panic.to_string())));
}
