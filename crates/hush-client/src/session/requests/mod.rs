//! Requests and their responses.
//!
//! * [`message`]: requests and responses, without a transport. [`url`]: the URL of a server.
//! * [`link`]: sends requests, with retries and bounded bodies. [`problem`]: interprets error responses.

pub(super) mod link;
pub(super) mod message;
pub(super) mod problem;
pub(super) mod url;
