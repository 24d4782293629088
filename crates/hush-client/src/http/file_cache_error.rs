//! The errors of the cache's files.

use std::{
    io,
    path::{Path, PathBuf},
};

use hush_protocol::wording::Wording;
use thiserror::Error;

/// The reason why the files of the cache cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum FileCacheError {
    #[error(
        "cannot use the cache at {path}: {source} ({})",
        Wording("set XDG_CACHE_HOME, or use {no-cache=true}")
    )]
    File { path: PathBuf, source: io::Error },
    #[error(
        "no home directory is known to keep the hint in: {}",
        Wording("set XDG_CACHE_HOME, or use {no-cache=true}")
    )]
    NoDirectory,
}

impl FileCacheError {
    pub(super) fn at(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }
}
