//! A table that is served from a copy: where it comes from, and where the copy is.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use hush_build::mirror;
use hush_engine::Progress;
use hush_ingest::mirror::RemoteTable;
use hush_protocol::{InvalidName, Name};
use hush_store::snapshot::Trust;

/// How often it is looked whether there is another one.
const LOOK: Duration = Duration::from_secs(10);

/// A table that is elsewhere.
pub struct Source {
    table: RemoteTable,
    dir: PathBuf,
    looked: Option<Instant>,
    /// Whether it was not to be had the last time.
    has_failed: bool,
}

impl Source {
    /// Returns the table at `place`, if that is a URL. Its copy is kept in the folder that `cache` returns.
    ///
    /// # Errors
    /// If no table can be there; those of `cache`.
    pub fn of(place: &Path, cache: impl FnOnce() -> Result<PathBuf, String>) -> Result<Option<Self>, String> {
        let Some(table) = RemoteTable::of(place).map_err(|error| error.to_string())? else { return Ok(None) };
        let dir = table.place_in(&cache()?);
        Ok(Some(Self { table, dir, looked: None, has_failed: false }))
    }

    /// Returns the name of a table, by where it is.
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

    /// Returns whether it is time to look again.
    pub fn is_due(&self) -> bool {
        self.looked.is_none_or(|looked| looked.elapsed() >= LOOK)
    }

    /// Brings the copy up to date; where it `is_damaged`, by what is in it.
    pub fn copy(&mut self, is_damaged: bool, progress: &dyn Progress) -> Result<(), String> {
        let trust = if is_damaged { Trust::Nothing } else { Trust::Copy };
        let copied = mirror(&self.table, &self.dir, trust, progress);
        self.looked = Some(Instant::now());
        copied.map(drop).map_err(|error| error.to_string())
    }

    /// Notes how it went; whether it has failed for the first time since it last went well.
    pub fn is_news(&mut self, has_failed: bool) -> bool {
        let had_failed = std::mem::replace(&mut self.has_failed, has_failed);
        has_failed && !had_failed
    }
}
