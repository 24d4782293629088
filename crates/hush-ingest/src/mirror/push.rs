//! A table is put where others fetch it: its files first, its header last.

use hush_store::{
    cancel::Cancelled,
    snapshot::{FileEntry, HEADER_FILE, Header, MappedFile, Snapshot, SnapshotError},
};
use object_store::{ObjectStoreExt, PutPayload, WriteMultipart};

use super::{MirrorError, RemoteTable, download::runtime};
use crate::remote::{Refused, Remote, store_refused};

/// Bytes of a part, at least: a store takes 10,000 of them.
const PART_BYTES: u64 = 8 << 20;
const MAX_PARTS: u64 = 10_000;
/// Parts that are under way at a time.
const AT_A_TIME: usize = 8;

impl RemoteTable {
    /// What of a table is not there yet: files of other names or with another content.
    ///
    /// # Errors
    /// [`MirrorError`], if what is there is not to be had, or is no table.
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
            let pushed = runtime.block_on(put_file(&self.remote().child(&file.name), content.as_ref(), put));
            pushed.map_err(SnapshotError::from)?.map_err(|refused| self.refused(&file.name, refused))?;
        }
        let header = snapshot.header().to_text();
        let pushed = runtime.block_on(async {
            let Remote::Store(store, path) = self.remote().child(HEADER_FILE) else { return Err(no_store()) };
            store.put(&path, PutPayload::from(header)).await.map(drop).map_err(store_refused)
        });
        pushed.map_err(|refused| self.refused(HEADER_FILE, refused))
    }
}

fn no_store() -> Refused {
    Refused::new("a web server takes no tables", "name a place at s3://, gs:// or az://")
}

/// Puts a file there, in parts if it is long.
async fn put_file(
    to: &Remote,
    content: &[u8],
    put: &dyn Fn(u64) -> Result<(), Cancelled>,
) -> Result<Result<(), Refused>, Cancelled> {
    let Remote::Store(store, path) = to else { return Ok(Err(no_store())) };
    let part = PART_BYTES.max((content.len() as u64).div_ceil(MAX_PARTS)) as usize;
    if content.len() <= part {
        let done = store.put(path, PutPayload::from(content.to_vec())).await;
        put(content.len() as u64)?;
        return Ok(done.map(drop).map_err(store_refused));
    }
    let mut upload = match store.put_multipart(path).await {
        Ok(upload) => WriteMultipart::new_with_chunk_size(upload, part),
        Err(error) => return Ok(Err(store_refused(error))),
    };
    for piece in content.chunks(part) {
        if let Err(error) = upload.wait_for_capacity(AT_A_TIME).await {
            return Ok(Err(store_refused(error)));
        }
        upload.write(piece);
        if let Err(cancelled) = put(piece.len() as u64) {
            // If this fails too, the store keeps parts that are of no use until its own rules remove them.
            let _ = upload.abort().await;
            return Err(cancelled);
        }
    }
    Ok(upload.finish().await.map(drop).map_err(store_refused))
}
