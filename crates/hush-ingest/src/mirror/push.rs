//! The upload of a table to where others fetch it: its files first, its header last.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use hush_protocol::Name;
use hush_store::{
    cancel::Cancelled,
    snapshot::{FileEntry, HEADER_FILE, Header, MappedFile, Snapshot, SnapshotError},
};
use tokio::runtime::Runtime;

use super::{
    MirrorError, RemoteTable,
    download::{Objects, object},
    remote_table::{refused_at, runtime},
};
use crate::remote::{Listed, Refused};

/// The hex digits of a file's digest in the name of its object.
const DIGEST_DIGITS: usize = 16;
/// The time for which an object stays although no table needs it. Another push may use it, or a server may be fetching an older
/// table.
const STAYS: Duration = Duration::from_secs(3600);

/// A plan of an upload. The object of a file has the file's digest in its name. So an upload replaces no object by another one,
/// neither of the table that is there nor of an upload at the same time, and what a stopped upload has put there is used.
pub struct PushPlan<'s> {
    snapshot: &'s Snapshot,
    /// The files whose objects are not there.
    files: Vec<&'s FileEntry>,
    objects: Objects,
    /// The objects of the table that is there.
    before: BTreeSet<Name>,
}

/// Objects that no table needs and that could not be removed.
#[derive(Debug)]
pub struct LeftObjects {
    /// The number of objects.
    pub count: usize,
    /// The bytes of all of them.
    pub bytes: u64,
    /// The reason why the first one could not be removed.
    pub reason: String,
}

impl PushPlan<'_> {
    /// Returns the number of bytes to upload, without the header.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

impl RemoteTable {
    /// Plans the upload of a table in place of the remote one: of the files whose objects are not there, or with `resend` of all
    /// files.
    ///
    /// # Errors
    /// [`MirrorError`] if the URL is not that of an object store, if the store cannot be read, or if its `header.json` is not the
    /// header of a table.
    pub fn plan_push<'s>(&self, snapshot: &'s Snapshot, resend: bool) -> Result<PushPlan<'s>, MirrorError> {
        let there = self.list(&self.runtime()?)?;
        let before = match self.find_header() {
            Ok(Ok(header)) => Some(header),
            Ok(Err(refused)) if refused.is_missing() => None,
            Ok(Err(refused)) => return Err(self.refused(HEADER_FILE, refused)),
            Err(MirrorError::Snapshot(SnapshotError::Header { path, reason })) => {
                return Err(MirrorError::Occupied { path, reason });
            }
            Err(error) => return Err(error),
        };
        let (before, taken) = before.map(|header| (header.files, header.objects)).unwrap_or_default();
        let objects = name_objects(&snapshot.header().files, &before, &taken);
        let files = snapshot.header().files.iter();
        let files = files.filter(|file| resend || !is_there(&there, &objects, file)).collect();
        let before = before.iter().map(|file| object(&taken, file).clone()).collect();
        Ok(PushPlan { snapshot, files, objects, before })
    }

    /// Uploads the missing files of a table, then its header, then removes objects that no table needs. `put` is called with the
    /// bytes that have been sent, and may cancel the upload. Returns the objects that could not be removed.
    ///
    /// # Errors
    /// [`MirrorError`]. The table that was there before is then still there.
    pub fn push(
        &self,
        plan: &PushPlan<'_>,
        put: &dyn Fn(u64) -> Result<(), Cancelled>,
    ) -> Result<Option<LeftObjects>, MirrorError> {
        let runtime = self.runtime()?;
        for file in &plan.files {
            let content = MappedFile::open(&plan.snapshot.path(&file.name))?;
            let name = object(&plan.objects, file);
            let pushed = runtime.block_on(self.remote().child(name).put(content.as_ref(), put));
            pushed.map_err(SnapshotError::from)?.map_err(|refused| self.refused(name, refused))?;
        }
        let there = self.list(&runtime)?;
        let files = &plan.snapshot.header().files;
        if let Some(gone) = files.iter().find(|file| !is_there(&there, &plan.objects, file)) {
            let refused = Refused::new("it was removed during the upload", "push again");
            return Err(self.refused(object(&plan.objects, gone), refused));
        }
        let header = Header { objects: plan.objects.clone(), ..plan.snapshot.header().clone() }.to_text();
        let pushed = runtime.block_on(self.remote().child(HEADER_FILE).put(header.as_bytes(), &|_| Ok(())));
        let pushed = pushed.map_err(SnapshotError::from)?;
        pushed.map_err(|refused| self.refused(HEADER_FILE, refused))?;
        let mut left: Option<LeftObjects> = None;
        for old in there.iter().filter(|listed| is_useless(plan, listed, SystemTime::now())) {
            if let Err(refused) = runtime.block_on(self.remote().child(&old.name).remove()) {
                let reason = format!("{}: {}", old.name, refused.message);
                let left = left.get_or_insert(LeftObjects { count: 0, bytes: 0, reason });
                (left.count, left.bytes) = (left.count + 1, left.bytes + old.bytes);
            }
        }
        Ok(left)
    }

    fn runtime(&self) -> Result<Runtime, MirrorError> {
        Ok(runtime().map_err(SnapshotError::io(self.shown(), "put a table at"))?)
    }

    /// Lists the objects that are there. A connection works only while the runtime that opened it runs, so an upload has one
    /// runtime.
    fn list(&self, runtime: &Runtime) -> Result<Vec<Listed>, MirrorError> {
        runtime.block_on(self.remote().list()).map_err(|refused| refused_at(self.shown(), refused))
    }
}

/// Returns the names of the objects of `files`. A file of the table that is there keeps its object.
fn name_objects(files: &[FileEntry], before: &[FileEntry], taken: &Objects) -> Objects {
    let named = files.iter().map(|file| {
        let there = before.iter().find(|entry| *entry == file);
        (file.name.clone(), there.map_or_else(|| object_name(file), |entry| object(taken, entry).clone()))
    });
    named.filter(|(own, name)| own != name).collect()
}

/// Returns the name of the object of a new file.
fn object_name(file: &FileEntry) -> Name {
    let digest = hex::encode(file.digest());
    // The names of files are far shorter than the longest name.
    format!("{}.{}", file.name, &digest[..DIGEST_DIGITS]).parse().unwrap_or_else(|_| file.name.clone())
}

/// Returns whether the object of a file is there, in full length.
fn is_there(there: &[Listed], objects: &Objects, file: &FileEntry) -> bool {
    let name = object(objects, file);
    there.iter().any(|listed| listed.name == **name && listed.bytes == file.bytes)
}

/// Returns whether an upload put an object there that neither the table of `plan` needs nor the one before.
fn is_useless(plan: &PushPlan<'_>, listed: &Listed, now: SystemTime) -> bool {
    let is_digest =
        |end: &str| end.len() == DIGEST_DIGITS && end.bytes().all(|digit| digit.is_ascii_hexdigit());
    let is_ours =
        listed.name.rsplit_once('.').is_some_and(|(file, end)| file.contains('.') && is_digest(end));
    let is_old = now.duration_since(listed.modified).is_ok_and(|age| age > STAYS);
    let is_needed = |name: &Name| **name == listed.name;
    is_ours && is_old && !plan.objects.values().chain(&plan.before).any(is_needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, content: u8) -> FileEntry {
        FileEntry { name: name.parse().unwrap(), bytes: 1, chunk_bytes: 1, chunks: vec![content; 32] }
    }

    #[test]
    fn an_object_has_one_content_for_ever() {
        let [one, two] = [1, 2].map(|content| [file("db.bin", content), file("1.db.bin", content)]);
        let first = name_objects(&one, &[], &Objects::new());
        let second = name_objects(&two, &one, &first);
        assert!(
            first.values().all(|name| !second.values().any(|other| other == name)),
            "{first:?} {second:?}"
        );
        assert_eq!(name_objects(&one, &two, &second), first, "a table that comes back has its objects");
        // A table that some other tool has put there has the names of its files.
        assert_eq!(name_objects(&one, &one, &Objects::new()), Objects::new());
        assert_eq!(name_objects(&two, &one, &Objects::new()), second);
    }

    #[test]
    fn what_is_there_is_of_full_length() {
        let objects = Objects::new();
        let listed = |name: &str, bytes| Listed { name: name.into(), bytes, modified: SystemTime::now() };
        let there = [listed("db.bin", 1), listed("keys.bin", 2)];
        assert!(is_there(&there, &objects, &file("db.bin", 1)));
        assert!(!is_there(&there, &objects, &file("keys.bin", 1)));
        assert!(!is_there(&there, &objects, &file("none.bin", 1)));
    }
}
