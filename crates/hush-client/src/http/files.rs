//! A host of sessions that stores hints, keys and serials in files.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hush_protocol::descriptor::BlobRef;

use super::{HintCache, Observer, hint::HintStore, secrets::SecretStore, serials::SerialStore};
use crate::session::{CacheError, CachedHint, Event, Host, KeptKeys, KeyNote, KeyRequest};

/// A host of sessions that stores hints, keys and serials in files ([`HintCache`]), for this driver and others.
pub struct FileHost {
    start: Instant,
    hints: HintStore,
    secrets: SecretStore,
    serials: SerialStore,
    observer: Observer,
}

impl FileHost {
    /// Creates a host whose files are where `cache` says. Fails if no folder for them is known. `observer` receives events.
    pub fn new(cache: &HintCache, observer: Observer) -> Result<Self, CacheError> {
        let hints = HintStore::new(cache)?;
        let secrets = SecretStore::new(cache)?;
        let serials = SerialStore::new(cache)?;
        Ok(Self { start: Instant::now(), hints, secrets, serials, observer })
    }
}

impl Host for FileHost {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn date(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn report(&self, event: &Event<'_>) {
        (self.observer)(event);
    }

    fn hint(&self, blob: &BlobRef) -> Result<CachedHint, CacheError> {
        Ok(self.hints.find(blob, || self.report(&Event::HintLocked))?)
    }

    fn keys(&self, request: &KeyRequest) -> Result<KeptKeys, CacheError> {
        Ok(self.secrets.draw(request)?)
    }

    fn note(&self, name: &str, keys: &KeptKeys, note: KeyNote) -> Result<(), CacheError> {
        Ok(self.secrets.note(name, keys, note)?)
    }

    fn newest_serial(&self, publication: &str, serial: u64) -> Result<u64, CacheError> {
        Ok(self.serials.newest(publication, serial)?)
    }
}
