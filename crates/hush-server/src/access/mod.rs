//! The rights of callers: who may ask for what.
//!
//! * [`caller`]: the caller of a request, and the tables that it may act on. [`client`]: what counts as one client.
//! * [`tokens`]: bearer tokens, their scopes and their rates.
//! * [`gateway`]: the keys of the gateway of Oblivious HTTP. [`replays`]: the requests that it has opened, so that none is
//!   answered twice.

pub(crate) mod caller;
pub(crate) mod client;
pub(crate) mod gateway;
pub(crate) mod replays;
pub(crate) mod tokens;
