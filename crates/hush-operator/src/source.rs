//! The source of a served copy: the remote table, and the folder of the copy.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use hush_build::mirror;
use hush_engine::Progress;
use hush_ingest::mirror::RemoteTable;
use hush_protocol::{InvalidName, Name};
use hush_store::snapshot::Trust;

/// The interval at which the remote table is checked for changes.
const LOOK: Duration = Duration::from_secs(10);

/// A remote table, of which a copy is served.
pub struct Source {
    table: RemoteTable,
    dir: PathBuf,
    looked: Option<Instant>,
    /// Whether the last attempt to fetch failed.
    has_failed: bool,
}

impl Source {
    /// Returns the table at `place`, if that is a URL. Its copy is in the folder that `cache` returns.
    ///
    /// # Errors
    /// No table can be there; those of `cache`.
    pub fn of(place: &Path, cache: impl FnOnce() -> Result<PathBuf, String>) -> Result<Option<Self>, String> {
        let Some(table) = RemoteTable::of(place).map_err(|error| error.to_string())? else { return Ok(None) };
        let dir = table.place_in(&cache()?);
        Ok(Some(Self { table, dir, looked: None, has_failed: false }))
    }

    /// Returns the name of the table, which is the last part of its URL, or [`InvalidName`] if that is not a valid name.
    pub fn name(&self) -> Result<Name, InvalidName> {
        self.table.name()
    }

    /// Returns the folder of the copy.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the URL without its secrets.
    pub fn shown(&self) -> &Path {
        self.table.shown()
    }

    /// Returns whether it is time for another check.
    pub fn is_due(&self) -> bool {
        self.looked.is_none_or(|looked| looked.elapsed() >= LOOK)
    }

    /// Fetches the difference to the remote table. With `is_damaged`, the content of the copy is not trusted. Fails with a message
    /// if the table cannot be fetched, or the copy cannot be written.
    pub fn copy(&mut self, is_damaged: bool, progress: &dyn Progress) -> Result<(), String> {
        let trust = if is_damaged { Trust::Nothing } else { Trust::Copy };
        let copied = mirror(&self.table, &self.dir, trust, progress);
        self.looked = Some(Instant::now());
        copied.map(drop).map_err(|error| error.to_string())
    }

    /// Records the outcome of an attempt. Returns whether it is the first failure since the last success.
    pub fn is_news(&mut self, has_failed: bool) -> bool {
        let had_failed = std::mem::replace(&mut self.has_failed, has_failed);
        has_failed && !had_failed
    }
}
