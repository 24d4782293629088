//! Requests on their way, and what comes back.
//!
//! * [`message`]: requests and responses, without a transport. [`url`]: the URL of a server.
//! * [`link`]: sends requests, with retries and bounded bodies. [`problem`]: what a response other than a success means.

pub(super) mod link;
pub(super) mod message;
pub(super) mod problem;
pub(super) mod url;
