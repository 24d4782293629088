//! A table at a URL as a source of parts: only the byte ranges that the parts read are fetched.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    thread,
};

use hush_engine::{
    OpenError, free_disk,
    parts::{RemoteTable, SparseFiles},
};
use hush_ingest::mirror::{MirrorError as FetchError, RemoteTable as TableAt, SparseCopy};
use hush_protocol::descriptor::Descriptor;
use hush_store::snapshot::{FileEntry, SnapshotError};

use crate::mirror::{LOOK, MirrorError};

/// A table at a URL, with the folder that holds local copies of such tables.
pub struct RemoteSource {
    /// The URL.
    pub url: PathBuf,
    /// The folder of copies.
    pub cache: PathBuf,
}

impl RemoteSource {
    fn table(&self) -> Result<TableAt, MirrorError> {
        Ok(TableAt::of(&self.url)?.ok_or_else(|| FetchError::Scheme { path: self.url.clone() })?)
    }

    fn copy(&self) -> Result<SparseCopy, MirrorError> {
        let mut copies = self.table()?.place_in(&self.cache).into_os_string();
        copies.push(".parts");
        loop {
            match SparseCopy::begin(self.table()?, Path::new(&copies)) {
                Err(FetchError::Snapshot(SnapshotError::Busy(_))) => thread::sleep(LOOK),
                begun => return Ok(begun?),
            }
        }
    }
}

impl RemoteTable for RemoteSource {
    fn descriptor(&self) -> Result<Descriptor, OpenError> {
        let header = self.table()?.header().map_err(MirrorError::from)?;
        Ok(header.descriptor)
    }

    fn begin(&self) -> Result<Box<dyn SparseFiles>, OpenError> {
        Ok(Box::new(CopyOfParts(self.copy()?)))
    }
}

struct CopyOfParts(SparseCopy);

impl SparseFiles for CopyOfParts {
    fn folder(&self) -> &Path {
        self.0.folder()
    }

    /// Fetches the missing bytes of `ranges`. Waits while another process of this machine fetches from the same table.
    fn bring(&self, entry: &FileEntry, ranges: &[Range<usize>]) -> Result<(), OpenError> {
        let missing = loop {
            match self.0.missing(&entry.name, ranges) {
                Err(SnapshotError::Busy(_)) => thread::sleep(LOOK),
                missing => break missing?,
            }
        };
        let table = self.0.shown().into();
        let folder = self.folder().to_owned();
        let bytes = missing.bytes();
        if let Some(free) = free_disk(&folder).filter(|free| *free < bytes) {
            return Err(MirrorError::NoRoom { table, folder, missing: bytes, free }.into());
        }
        Ok(self.0.fetch(missing).map_err(MirrorError::from)?)
    }

    fn forget_others(&self) {
        self.0.forget_others();
    }
}
