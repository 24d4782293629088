//! A table in a folder of an object store or a web server.

use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
};

use hush_protocol::{InvalidName, Name};
use hush_store::snapshot::{HEADER_FILE, Header, MAX_HEADER_BYTES, SnapshotError};
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};

use crate::remote::{FIRST_ATTEMPTS, Refused, Remote, RemoteUrl, Scheme, SourcePolicy, is_page, persist};

pub(super) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// The reason why there is no copy.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum MirrorError {
    #[error("{}: no table is fetched from there: name one at s3://, gs://, az:// or https://", path.display())]
    Scheme { path: PathBuf },
    #[error("{}: {message}; {advice}", path.display())]
    Refused { path: PathBuf, message: String, advice: &'static str },
    #[error(
        "{}: the checksum of bytes {} to {} differs: it is damaged there, or another table is being put in its place: put all of \
         it there again, its header last",
        path.display(), range.start, range.end
    )]
    Differs { path: PathBuf, range: Range<u64> },
    #[error("{}: no table can be put there: {reason}; remove that object, or choose another URL", path.display())]
    Occupied { path: PathBuf, reason: String },
    /// A fault of the copy, or of the table that is pushed.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// A remote table: the files of a snapshot, by their names, in a folder of an object store or a web server.
pub struct RemoteTable {
    url: RemoteUrl,
    remote: Remote,
}

impl RemoteTable {
    /// Returns the table at `place`; `None` if `place` is a path.
    ///
    /// # Errors
    /// No table can be at a URL of this scheme, or the URL leads nowhere.
    pub fn of(place: &Path) -> Result<Option<Self>, MirrorError> {
        Self::under(place, &SourcePolicy::default())
    }

    /// Returns the table at `place` under a policy; `None` if `place` is a path.
    ///
    /// # Errors
    /// No table can be there, or the policy does not allow it.
    pub fn under(place: &Path, policy: &SourcePolicy) -> Result<Option<Self>, MirrorError> {
        let Some(url) = place.to_str().and_then(RemoteUrl::of) else { return Ok(None) };
        let url = url.under(policy);
        let scheme = url.scheme().ok().filter(|scheme| *scheme != Scheme::Postgres);
        let scheme = scheme.ok_or_else(|| MirrorError::Scheme { path: url.shown().into() })?;
        let remote = Remote::folder(&url, scheme).map_err(|refused| refused_at(url.shown(), refused))?;
        Ok(Some(Self { url, remote }))
    }

    /// Returns the URL of the table, without its secrets.
    pub fn shown(&self) -> &Path {
        self.url.shown()
    }

    /// Returns the last part of the URL as a name, or [`InvalidName`] if it is not a valid name of a table.
    pub fn name(&self) -> Result<Name, InvalidName> {
        Name::last_of(self.shown())
    }

    /// Returns the folder in `cache` for the copy of this table. People can recognize the table by the name of the folder.
    pub fn place_in(&self, cache: &Path) -> PathBuf {
        let hash = blake3::hash(self.shown().as_os_str().as_encoded_bytes()).to_hex();
        let name = self.name().map_or_else(|_| "table".into(), String::from);
        cache.join(format!("{name}-{}", &hash[..16]))
    }

    pub(super) fn remote(&self) -> &Remote {
        &self.remote
    }

    pub(super) fn refused(&self, name: &str, refused: Refused) -> MirrorError {
        refused_at(&self.shown().join(name), refused)
    }

    /// Fetches the header of the table that is there now.
    ///
    /// # Errors
    /// [`MirrorError`], including the absence of a table.
    pub fn header(&self) -> Result<Header, MirrorError> {
        self.find_header()?.map_err(|refused| self.refused(HEADER_FILE, refused))
    }

    /// Fetches the header, as [`RemoteTable::header`] does, but returns a refusal by the server as a value.
    pub(super) fn find_header(&self) -> Result<Result<Header, Refused>, MirrorError> {
        let runtime = runtime().map_err(SnapshotError::io(self.shown(), "fetch"))?;
        let file = self.remote.child(HEADER_FILE);
        let fetched = runtime.block_on(persist(FIRST_ATTEMPTS, || file.clone().whole(MAX_HEADER_BYTES)));
        let content = match fetched {
            Ok(content) if is_page(&content) => return Ok(Err(Refused::page())),
            Ok(content) => content,
            Err(refused) => return Ok(Err(refused)),
        };
        Ok(Ok(Header::parse(&content, &self.shown().join(HEADER_FILE))?))
    }
}

pub(super) fn refused_at(path: &Path, refused: Refused) -> MirrorError {
    let advice = refused.last_advice("try again later");
    MirrorError::Refused { path: path.into(), message: refused.message, advice }
}
