//! The program around a session: a clock, and places for hints and for keys.

use std::{sync::Arc, time::Duration};

use hush_protocol::descriptor::BlobRef;

use super::{CacheError, Event, KeptKeys, KeyNote, KeyRequest};

/// A hint in memory or in a mapped file.
pub type Hint = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A need that a session is about to ask its [`Host`] for.
pub enum Need<'a> {
    /// [`Host::hint`] of this.
    Hint(&'a BlobRef),
    /// [`Host::keys`] for this.
    Keys(&'a KeyRequest),
    /// [`Host::newest_serial`] of these.
    Serial {
        /// The publication.
        publication: &'a str,
        /// A serial of it.
        serial: u64,
    },
}

/// The program around a session. Its functions return soon, but for a wait until another process has fetched a hint.
pub trait Host: Send + Sync {
    /// Returns the time since some fixed moment, by a clock that does not go back.
    fn now(&self) -> Duration;

    /// Returns the time since 1970, by the clock of this machine.
    fn date(&self) -> Duration;

    /// Takes note of what happens.
    fn report(&self, event: &Event<'_>);

    /// Returns whether the host can say at once what it has of `need`. A host whose places answer later, in turns of an event
    /// loop, notes what is needed, and says no: the task then asks its driver for a wait of zero, and asks here again after it.
    fn is_ready(&self, _need: &Need<'_>) -> bool {
        true
    }

    /// Returns the hint `blob`, if it is here; otherwise the place to download it into.
    fn hint(&self, blob: &BlobRef) -> Result<CachedHint, CacheError>;

    /// Draws keys ([`KeptKeys::draw`]) from the record that `request` names, and keeps the record before it returns: a program
    /// that ends midway has counted its look-ups.
    ///
    /// # Errors
    /// An error if the host cannot read or keep the record.
    fn keys(&self, request: &KeyRequest) -> Result<KeptKeys, CacheError>;

    /// Notes an event of `keys` in the record `name` ([`KeptKeys::note`]).
    ///
    /// # Errors
    /// An error if the host cannot read or keep the record.
    fn note(&self, name: &str, keys: &KeptKeys, note: KeyNote) -> Result<(), CacheError>;

    /// Returns the greatest serial that was ever given for `publication`, this one included, and keeps it. Serials of two calls at
    /// a time are both counted.
    fn newest_serial(&self, publication: &str, serial: u64) -> Result<u64, CacheError>;
}

/// The cached part of a hint.
pub enum CachedHint {
    /// All of it.
    Whole(CheckedHint),
    /// Some of it, or nothing.
    Part(Box<dyn PartialHint>),
}

/// A hint that has its length and its hash. The files of others are none of a session's concern, so it makes no other.
pub struct CheckedHint(Hint);

impl CheckedHint {
    /// Checks that `hint` is `blob`.
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

/// The first bytes of a hint; nobody else writes to them. Dropped midway, it is there for the next download if its host
/// keeps things.
pub trait PartialHint: Send {
    /// Returns how many bytes are there.
    fn present(&self) -> Result<u64, CacheError>;

    /// Adds the bytes that follow.
    fn append(&mut self, bytes: &[u8]) -> Result<(), CacheError>;

    /// Throws all bytes away.
    fn clear(&mut self) -> Result<(), CacheError>;

    /// Reads what is cached. Until the result is dropped, or for good if it is the whole hint, nothing is added or
    /// removed.
    fn read(&self) -> Result<Hint, CacheError>;

    /// Keeps what is there: it is the whole hint.
    fn keep(self: Box<Self>) -> Result<(), CacheError>;

    /// Keeps nothing.
    fn discard(self: Box<Self>) -> Result<(), CacheError>;
}
