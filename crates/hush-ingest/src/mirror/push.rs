//! The upload of a table to where others fetch it: its files first, its header last.

use hush_protocol::Name;
use hush_store::{
    cancel::Cancelled,
    snapshot::{FileEntry, HEADER_FILE, Header, MappedFile, Snapshot, SnapshotError},
};

use super::{
    MirrorError, RemoteTable,
    download::{Objects, object},
    remote_table::runtime,
};

/// A plan of an upload: it changes no object of the table that is there, so that one is whole until the new header is there.
pub struct PushPlan<'s> {
    snapshot: &'s Snapshot,
    /// The files that the remote table lacks.
    files: Vec<&'s FileEntry>,
    objects: Objects,
}

impl PushPlan<'_> {
    /// Returns the number of bytes to upload, without the header.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

impl RemoteTable {
    /// Plans the upload of a table in place of the remote one.
    ///
    /// # Errors
    /// [`MirrorError`] if the remote header cannot be fetched or is malformed.
    pub fn plan_push<'s>(&self, snapshot: &'s Snapshot) -> Result<PushPlan<'s>, MirrorError> {
        let there = match self.find_header()? {
            Ok(there) => Some(there),
            Err(refused) if refused.is_missing() => None,
            Err(refused) => return Err(self.refused(HEADER_FILE, refused)),
        };
        let (before, taken) = there.map(|there| (there.files, there.objects)).unwrap_or_default();
        let (files, objects) = missing(&snapshot.header().files, &before, &taken);
        Ok(PushPlan { snapshot, files, objects })
    }

    /// Uploads the missing files of a table, then its header. `put` is called with the bytes that have been sent, and may cancel
    /// the upload.
    ///
    /// # Errors
    /// [`MirrorError`]. The table that was there before is then still there.
    pub fn push(
        &self,
        plan: &PushPlan<'_>,
        put: &dyn Fn(u64) -> Result<(), Cancelled>,
    ) -> Result<(), MirrorError> {
        let runtime = runtime().map_err(SnapshotError::io(self.shown(), "put a table at"))?;
        for file in &plan.files {
            let content = MappedFile::open(&plan.snapshot.path(&file.name))?;
            let name = object(&plan.objects, file);
            let pushed = runtime.block_on(self.remote().child(name).put(content.as_ref(), put));
            pushed.map_err(SnapshotError::from)?.map_err(|refused| self.refused(name, refused))?;
        }
        let header = Header { objects: plan.objects.clone(), ..plan.snapshot.header().clone() }.to_text();
        let pushed = runtime.block_on(self.remote().child(HEADER_FILE).put(header.as_bytes(), &|_| Ok(())));
        let pushed = pushed.map_err(SnapshotError::from)?;
        pushed.map_err(|refused| self.refused(HEADER_FILE, refused))
    }
}

/// Returns the files that the remote table lacks, and the names of objects that differ from those of their files. `before` are
/// the remote files, and `taken` the names of their objects.
fn missing<'f>(
    files: &'f [FileEntry],
    before: &[FileEntry],
    taken: &Objects,
) -> (Vec<&'f FileEntry>, Objects) {
    let mut missing = Vec::new();
    let mut objects = Objects::new();
    for file in files {
        let own = &file.name;
        let name = match before.iter().find(|entry| *entry == file) {
            Some(entry) => object(taken, entry).clone(),
            None => {
                missing.push(file);
                match before.iter().any(|entry| object(taken, entry) == own) {
                    true => other(own),
                    false => own.clone(),
                }
            }
        };
        if name != *own {
            objects.insert(own.clone(), name);
        }
    }
    (missing, objects)
}

/// Returns the name of a file's object beside one that has the file's own name.
fn other(own: &Name) -> Name {
    // The names of files are far shorter than the longest name.
    format!("{own}.b").parse().unwrap_or_else(|_| own.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_object_of_the_table_before_is_replaced() {
        let file = |name: &str, content: u8| FileEntry {
            name: name.parse().unwrap(),
            bytes: 1,
            chunk_bytes: 1,
            chunks: vec![content; 32],
        };
        let (mut before, mut taken) = (Vec::new(), Objects::new());
        // For each table: its files, those that are sent, and the names of all objects.
        for (files, sent, names) in [
            (vec![file("db", 1), file("1.db", 1)], vec!["db", "1.db"], ["db", "1.db"]),
            (vec![file("db", 1), file("1.db", 2)], vec!["1.db"], ["db", "1.db.b"]),
            (vec![file("db", 1), file("1.db", 2)], vec![], ["db", "1.db.b"]),
            (vec![file("db", 2), file("1.db", 3)], vec!["db", "1.db"], ["db.b", "1.db"]),
            (vec![file("db", 2), file("2.db", 3)], vec!["2.db"], ["db.b", "2.db"]),
            (vec![file("db", 1), file("1.db", 1)], vec!["db", "1.db"], ["db", "1.db"]),
        ] {
            let (missing, objects) = missing(&files, &before, &taken);
            assert_eq!(missing.iter().map(|file| &*file.name).collect::<Vec<_>>(), sent);
            assert_eq!(files.iter().map(|file| &**object(&objects, file)).collect::<Vec<_>>(), names);
            (before, taken) = (files, objects);
        }
    }
}
