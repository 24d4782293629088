//! Requests to object stores and web servers. A request returns bytes, and the version that identifies the object meanwhile.
//!
//! A program without the feature `remote` has `no_remote.rs` in place of these clients, which need much to compile. It refuses
//! every remote input and says why.

#[cfg_attr(not(feature = "remote"), path = "no_remote.rs")]
mod object;
mod patience;
#[cfg(feature = "remote")]
mod policy;
mod refused;
#[cfg(feature = "remote")]
mod settings;
mod url;

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};
use tokio::time::timeout;

pub(crate) use object::Remote;
pub use object::SourcePolicy;
pub(crate) use patience::{FIRST_ATTEMPTS, Patience, persist};
#[cfg(feature = "remote")]
pub(crate) use refused::AUTHORITY_AS_SERVER;
pub(crate) use refused::{Refused, SILENT, TOO_SOON, is_page};
pub use url::RemoteUrl;
pub(crate) use url::Scheme;

/// The longest time that a server may be silent.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);

/// An object in a folder of a store.
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// The time at which it was put there, by the clock of the store.
    pub(crate) modified: SystemTime,
}

/// The response to a request.
pub(crate) struct Part {
    /// The offset of the first byte in the object.
    pub(crate) start: u64,
    /// The length of the whole object in bytes.
    pub(crate) size: Option<u64>,
    /// The version of the object, which changes with its content.
    pub(crate) version: Option<String>,
    pub(crate) bytes: BoxStream<'static, Result<Bytes, Refused>>,
}

impl Part {
    /// Returns the next bytes; `None` at the end. Refuses a server that is silent.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, Refused>> {
        timeout(SILENCE, self.bytes.next()).await.unwrap_or_else(|_| Some(Err(Refused::for_now(SILENT))))
    }

    /// Reads the bytes up to `limit`. Returns them, and whether they are all.
    async fn collect(mut self, limit: u64) -> Result<(Vec<u8>, bool), Refused> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next().await {
            let bytes = bytes?;
            let room = limit as usize - all.len();
            all.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if bytes.len() > room {
                return Ok((all, false));
            }
        }
        Ok((all, true))
    }
}
