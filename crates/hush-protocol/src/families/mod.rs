//! Code that several pages share. Each family has a page helper (`page.rs`) and a table of checked parameters (`table.rs`).
//!
//! * [`lwe`]: protocols over LWE. [`ring`]: protocols over rings.
//! * [`pack`]: protocols whose answers are packed with a client's uploaded evaluation keys.
//! * [`mod@column`]: protocols whose answers are packed with keys that are part of the query.
//!
//! Three files serve more than one family. [`message`] unpacks queries and checks their lengths. [`response`] packs and
//! rounds answers over rings. [`online_rows`] computes the rows of a second fold from the answers of the first.

pub(crate) mod column;
pub(crate) mod lwe;
pub(crate) mod message;
pub(crate) mod online_rows;
pub(crate) mod pack;
pub(crate) mod response;
pub(crate) mod ring;
