//! The upload of a table to where others fetch it: its files first, its header last.

use hush_store::{
    cancel::Cancelled,
    snapshot::{FileEntry, HEADER_FILE, Header, MappedFile, Snapshot, SnapshotError},
};

use super::{MirrorError, RemoteTable, remote_table::runtime};

impl RemoteTable {
    /// Returns the files of a table that the remote table lacks: files of other names or with other content.
    ///
    /// # Errors
    /// [`MirrorError`] if the remote header cannot be fetched or is malformed.
    pub fn lacks<'h>(&self, header: &'h Header) -> Result<Vec<&'h FileEntry>, MirrorError> {
        let there = match self.find_header()? {
            Ok(there) => there.files,
            Err(refused) if refused.is_missing() => Vec::new(),
            Err(refused) => return Err(self.refused(HEADER_FILE, refused)),
        };
        Ok(header.files.iter().filter(|file| !there.contains(file)).collect())
    }

    /// Uploads a table in place of the remote one: `files` of it, then the header. `put` is called with the bytes that have been
    /// sent, and may cancel the upload.
    ///
    /// # Errors
    /// [`MirrorError`]. If some files were replaced, the remote table is then unusable until it is pushed again.
    pub fn push(
        &self,
        snapshot: &Snapshot,
        files: &[&FileEntry],
        put: &dyn Fn(u64) -> Result<(), Cancelled>,
    ) -> Result<(), MirrorError> {
        let runtime = runtime().map_err(SnapshotError::io(self.shown(), "put a table at"))?;
        for file in files {
            let content = MappedFile::open(&snapshot.path(&file.name))?;
            let pushed = runtime.block_on(self.remote().child(&file.name).put(content.as_ref(), put));
            pushed.map_err(SnapshotError::from)?.map_err(|refused| self.refused(&file.name, refused))?;
        }
        let header = snapshot.header().to_text();
        let pushed = runtime.block_on(self.remote().child(HEADER_FILE).put(header.as_bytes(), &|_| Ok(())));
        let pushed = pushed.map_err(SnapshotError::from)?;
        pushed.map_err(|refused| self.refused(HEADER_FILE, refused))
    }
}
