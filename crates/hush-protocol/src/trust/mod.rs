//! Protection of people beside the protocols.
//!
//! * [`signature`]: who published a table.
//! * [`ohttp`]: Oblivious HTTP, which hides from a server who asks.
//! * [`shown_url`]: shows URLs without passwords, queries and fragments.

pub mod ohttp;
pub(crate) mod shown_url;
pub mod signature;
