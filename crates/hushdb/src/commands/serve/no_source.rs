//! In programs that fetch no tables.

use std::path::{Path, PathBuf};

use hush_engine::Progress;
use hush_protocol::{InvalidName, Name};

/// Copies are kept nowhere.
pub(super) fn tables_cache() -> Option<PathBuf> {
    None
}

/// There is none.
pub(super) enum Source {}

impl Source {
    pub(super) fn of(place: &Path, _: Option<&Path>) -> Result<Option<Self>, String> {
        if place.to_string_lossy().contains("://") {
            return Err(format!("{}: this program fetches no tables: name a folder", place.display()));
        }
        Ok(None)
    }

    pub(super) fn name(&self) -> Result<Name, InvalidName> {
        match *self {}
    }

    pub(super) fn dir(&self) -> &Path {
        match *self {}
    }

    pub(super) fn shown(&self) -> &Path {
        match *self {}
    }

    pub(super) fn is_due(&self) -> bool {
        match *self {}
    }

    pub(super) fn copy(&mut self, _: bool, _: &dyn Progress) -> Result<(), String> {
        match *self {}
    }

    pub(super) fn is_news(&mut self, _: bool) -> bool {
        match *self {}
    }
}
