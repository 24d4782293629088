//! The program around a session: a clock, and the storage of hints, keys and serials.

use std::{sync::Arc, time::Duration};

use hush_protocol::descriptor::BlobRef;

use super::{CacheError, Event, KeptKeys, KeyNote, KeyRequest};

/// A hint in memory or in a mapped file.
pub type Hint = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A request that a session is about to make to its [`Host`].
pub enum Need<'a> {
    /// [`Host::hint`] of this file.
    Hint(&'a BlobRef),
    /// [`Host::keys`] for this request.
    Keys(&'a KeyRequest),
    /// [`Host::newest_serial`] of this publication and serial.
    Serial {
        /// The publication.
        publication: &'a str,
        /// A serial of the publication.
        serial: u64,
    },
}

/// The program around a session. Its functions return soon, except to wait until another process has downloaded a hint.
pub trait Host: Send + Sync {
    /// Returns the time since some fixed moment, by a monotonic clock.
    fn now(&self) -> Duration;

    /// Returns the time since 1970, by this machine's clock.
    fn date(&self) -> Duration;

    /// Receives an event.
    fn report(&self, event: &Event<'_>);

    /// Returns whether the host can answer `need` at once. A host whose storage is asynchronous starts to fetch it, and
    /// returns `false`. The task then asks its driver for a wait of zero, and calls this again after it.
    fn is_ready(&self, _need: &Need<'_>) -> bool {
        true
    }

    /// Returns the hint `blob` if it is cached, or else the storage into which it is to be downloaded.
    fn hint(&self, blob: &BlobRef) -> Result<CachedHint, CacheError>;

    /// Returns keys from the record that `request` names ([`KeptKeys::draw`]). Stores the record before it returns, so the
    /// look-ups are counted even if the program ends during the call.
    ///
    /// # Errors
    /// [`CacheError`] if the host cannot read or store the record.
    fn keys(&self, request: &KeyRequest) -> Result<KeptKeys, CacheError>;

    /// Records an event of `keys` in the record `name` ([`KeptKeys::note`]).
    ///
    /// # Errors
    /// [`CacheError`] if the host cannot read or store the record.
    fn note(&self, name: &str, keys: &KeptKeys, note: KeyNote) -> Result<(), CacheError>;

    /// Stores `serial`, and returns the greatest serial ever given for `publication`, including this one. Two calls at the
    /// same time both count.
    fn newest_serial(&self, publication: &str, serial: u64) -> Result<u64, CacheError>;
}

/// A hint in the cache, whole or in part.
pub enum CachedHint {
    /// The whole hint.
    Whole(CheckedHint),
    /// The first bytes of the hint, or none.
    Part(Box<dyn PartialHint>),
}

/// A hint whose length and hash were checked. A session uses no other hint, so it need not trust the files of its host.
pub struct CheckedHint(Hint);

impl CheckedHint {
    /// Checks that `hint` has the length and the hash of `blob`. Returns `None` if it has not.
    pub fn new(hint: Hint, blob: &BlobRef) -> Option<Self> {
        let bytes = (*hint).as_ref();
        let is_right = bytes.len() as u64 == blob.bytes
            && blake3::Hasher::new().update_rayon(bytes).finalize() == blake3::Hash::from_bytes(blob.blake3);
        is_right.then_some(Self(hint))
    }

    pub(super) fn into_hint(self) -> Hint {
        self.0
    }
}

/// The first bytes of a hint that is being downloaded. No one else writes to them. If the value is dropped, a host with
/// persistent storage keeps them for the next download.
pub trait PartialHint: Send {
    /// Returns the number of bytes that are present.
    fn present(&self) -> Result<u64, CacheError>;

    /// Appends the bytes that follow.
    fn append(&mut self, bytes: &[u8]) -> Result<(), CacheError>;

    /// Deletes all bytes.
    fn clear(&mut self) -> Result<(), CacheError>;

    /// Returns the bytes that are present. No bytes are added or removed until the result is dropped. If it is the whole
    /// hint, none are ever added or removed.
    fn read(&self) -> Result<Hint, CacheError>;

    /// Keeps the bytes, which are the whole hint.
    fn keep(self: Box<Self>) -> Result<(), CacheError>;

    /// Deletes the storage.
    fn discard(self: Box<Self>) -> Result<(), CacheError>;
}
