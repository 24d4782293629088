//! A table is put where others fetch it: its files first, its header last.

use hush_store::{
    cancel::Cancelled,
    snapshot::{FileEntry, HEADER_FILE, Header, MappedFile, Snapshot, SnapshotError},
};

use super::{MirrorError, RemoteTable, remote_table::runtime};

impl RemoteTable {
    /// Returns the files of a table that are not there yet: files of other names or with another content.
    ///
    /// # Errors
    /// [`MirrorError`] if the files that are there cannot be read, or are not a table.
    pub fn lacks<'h>(&self, header: &'h Header) -> Result<Vec<&'h FileEntry>, MirrorError> {
        let there = match self.find_header()? {
            Ok(there) => there.files,
            Err(refused) if refused.is_missing() => Vec::new(),
            Err(refused) => return Err(self.refused(HEADER_FILE, refused)),
        };
        Ok(header.files.iter().filter(|file| !there.contains(file)).collect())
    }

    /// Puts a table there, which takes the place of what is there: `files` of it, and the header, once all of these are there.
    /// `put` is told of bytes that are, and may end it.
    ///
    /// # Errors
    /// [`MirrorError`]; what was there is then a table no more where its files had to be replaced: it is put there again.
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
