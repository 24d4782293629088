//! The client: bytes in, bytes out. It makes no request itself; [`http`] (feature `http`) adds a transport.

mod error;
mod lookup;
mod table;

#[cfg(feature = "http")]
pub mod http;

pub use error::ClientError;
pub use lookup::{Found, Wanted};
pub use table::{KeyId, PendingLookup, Table};
