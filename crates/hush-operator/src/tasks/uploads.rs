//! The files that are uploaded in parts, for tasks to read. Each upload has a folder, whose name is its ID, and in it the file
//! under its given name, and its acknowledged length. An ID ends with the ID of the token that owns the upload.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use hush_math::csprng::Csprng;
use hush_protocol::Name;
use hush_server::{Caller, OperatorError, Scope, Upload};
use hush_store::{
    durable::{create_folders, sync_folder},
    whole_file,
};

/// The number of random bytes of an ID.
const RANDOM_BYTES: usize = 16;
/// The character between the random part of an ID and the ID of its token.
const OWNED_BY: char = '-';
/// The file with the acknowledged length, in decimal. A loss of power may leave more in the upload's file: bytes that were never
/// written, in a length that was. No [`Name`] begins with a dot.
const LENGTH: &str = ".length";

/// The folder of the uploads.
pub(super) struct Uploads(PathBuf);

impl Uploads {
    pub(super) fn new(root: PathBuf) -> io::Result<Self> {
        create_folders(&root)?;
        let uploads = Self(root);
        uploads.cut_to_lengths()?;
        Ok(uploads)
    }

    /// Removes what was not acknowledged from the ends of all files.
    fn cut_to_lengths(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let Ok(id) = Name::last_of(&entry?.path()) else { continue };
            let Ok((upload, path)) = self.find(&id) else { continue };
            if path.metadata()?.len() > upload.bytes {
                OpenOptions::new().write(true).open(&path)?.set_len(upload.bytes)?;
            }
        }
        Ok(())
    }

    /// Begins an upload, which belongs to a token if the caller has one.
    pub(super) fn begin(&self, token: Option<&str>, name: &Name) -> Result<Upload, OperatorError> {
        let mut random = [0; RANDOM_BYTES];
        Csprng::from_os().fill_bytes(&mut random);
        let mut id = hex::encode(random);
        if let Some(token) = token {
            id.push(OWNED_BY);
            id.push_str(token);
        }
        let id = id.parse::<Name>().map_err(|error| {
            OperatorError::Refused(format!("the token's ID cannot be part of an upload's: {error}"))
        })?;
        let folder = self.0.join(&id);
        let created = fs::create_dir(&folder)
            .and_then(|()| OpenOptions::new().write(true).create_new(true).open(folder.join(name)).map(drop))
            .and_then(|()| keep_length(&folder, 0))
            .and_then(|()| sync_folder(&self.0));
        created.map_err(|error| OperatorError::Refused(format!("no place for an upload: {error}")))?;
        Ok(Upload { id, name: name.clone(), bytes: 0 })
    }

    /// Returns an upload and its file.
    pub(super) fn find(&self, id: &Name) -> Result<(Upload, PathBuf), OperatorError> {
        let unknown = || OperatorError::Unknown("upload");
        let folder = self.0.join(id);
        let mut files = fs::read_dir(&folder).map_err(|_| unknown())?.flatten();
        let named = files.find_map(|file| Some((Name::last_of(&file.path()).ok()?, file.path())));
        let (name, path) = named.ok_or_else(unknown)?;
        let bytes = path.metadata().map_err(|_| unknown())?.len().min(length_of(&folder));
        Ok((Upload { id: id.clone(), name, bytes }, path))
    }

    /// Refuses an upload of another caller, unless the caller operates all tables.
    pub(super) fn check(&self, caller: &Caller, id: &Name) -> Result<(), OperatorError> {
        let owner = id.split_once(OWNED_BY).map(|(_, token)| token);
        let is_own = owner.is_some() && owner == caller.token_id();
        if is_own || caller.may_all(Scope::Admin) { Ok(()) } else { Err(OperatorError::Unknown("upload")) }
    }

    /// Appends a part, durably. If `offset` is not the length, as after a lost answer, the error has the offset to go on from.
    pub(super) fn append(&self, id: &Name, offset: u64, part: &[u8]) -> Result<Upload, OperatorError> {
        let (upload, path) = self.find(id)?;
        if upload.bytes != offset {
            return Err(OperatorError::Refused(format!(
                "the upload has {} bytes: go on from there",
                upload.bytes
            )));
        }
        let appended = OpenOptions::new().write(true).open(&path).and_then(|mut file| {
            let written = io::Seek::seek(&mut file, io::SeekFrom::Start(offset))
                .and_then(|_| file.write_all(part))
                .and_then(|()| file.sync_all());
            if written.is_err() {
                // Half a part is removed.
                file.set_len(offset)?;
            }
            written
        });
        let bytes = offset + part.len() as u64;
        appended
            .and_then(|()| keep_length(&self.0.join(id), bytes))
            .map_err(|error| OperatorError::Refused(format!("the part was not kept: {error}")))?;
        Ok(Upload { bytes, ..upload })
    }

    /// Removes the uploads without new parts for longer than `lifetime`, except those that are `needed`.
    pub(super) fn remove_old(&self, lifetime: Duration, needed: impl Fn(&Name) -> bool) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let Ok(id) = Name::last_of(&entry.path()) else { continue };
            // A folder without a file is left of an upload that was interrupted at its beginning.
            let written = self.find(&id).ok().and_then(|(_, file)| file.metadata().ok());
            let written = written.or_else(|| entry.metadata().ok()).and_then(|file| file.modified().ok());
            let is_old = written.is_some_and(|at| at.elapsed().is_ok_and(|age| age > lifetime));
            if is_old && !needed(&id) {
                match fs::remove_dir_all(entry.path()) {
                    Ok(()) => tracing::info!(
                        upload = &*id,
                        "removed an upload that no task used within its lifetime"
                    ),
                    Err(error) => {
                        tracing::warn!(upload = &*id, %error, "cannot remove an upload whose lifetime has ended; the server tries again")
                    }
                }
            }
        }
    }

    /// Removes an upload.
    pub(super) fn remove(&self, id: &Name) -> Result<(), OperatorError> {
        self.find(id)?;
        fs::remove_dir_all(self.0.join(id))
            .and_then(|()| sync_folder(&self.0))
            .map_err(|error| OperatorError::Refused(format!("the upload was not removed: {error}")))
    }
}

/// Keeps the acknowledged length of the upload in `folder`, durably.
fn keep_length(folder: &Path, bytes: u64) -> io::Result<()> {
    whole_file::write(&folder.join(LENGTH), &bytes.to_string(), 0o600)
}

/// Returns the acknowledged length of the upload in `folder`, in bytes; `u64::MAX` if none is kept, as version 0.1 kept none.
fn length_of(folder: &Path) -> u64 {
    let length = fs::read_to_string(folder.join(LENGTH));
    length.ok().and_then(|length| length.parse().ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn parts_are_added_in_order_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let uploads = Uploads::new(dir.path().join("uploads")).unwrap();
        let id = uploads.begin(None, &name("a.csv")).unwrap().id;
        assert_eq!(uploads.append(&id, 0, b"key,").unwrap().bytes, 4);
        let again = uploads.append(&id, 0, b"key,").unwrap_err();
        assert_eq!(again.to_string(), "the upload has 4 bytes: go on from there");
        uploads.append(&id, 4, b"value\n").unwrap();
        let (upload, path) = uploads.find(&id).unwrap();
        assert_eq!((&*upload.name, upload.bytes), ("a.csv", 10));
        assert_eq!(fs::read(path).unwrap(), b"key,value\n");
        uploads.remove(&id).unwrap();
        assert_eq!(uploads.find(&id).unwrap_err(), OperatorError::Unknown("upload"));
    }

    #[test]
    fn what_was_not_acknowledged_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("uploads");
        let uploads = Uploads::new(root.clone()).unwrap();
        let [id, empty] = [(); 2].map(|()| uploads.begin(None, &name("a.csv")).unwrap().id);
        uploads.append(&id, 0, b"key,").unwrap();
        // What a loss of power may leave of a part.
        for id in [&id, &empty] {
            OpenOptions::new().write(true).open(root.join(id).join("a.csv")).unwrap().set_len(100).unwrap();
        }
        assert_eq!(uploads.find(&id).unwrap().0.bytes, 4);
        let uploads = Uploads::new(root).unwrap();
        uploads.append(&id, 4, b"value\n").unwrap();
        uploads.append(&empty, 0, b"").unwrap();
        let kept = [&id, &empty].map(|id| fs::read(uploads.find(id).unwrap().1).unwrap());
        assert_eq!(kept, [&b"key,value\n"[..], b""]);
    }

    #[test]
    fn old_uploads_go_unless_they_are_needed() {
        let dir = tempfile::tempdir().unwrap();
        let uploads = Uploads::new(dir.path().join("uploads")).unwrap();
        let [old, needed, young] = [0, 1, 2].map(|_| uploads.begin(None, &name("a.csv")).unwrap().id);
        let hour = Duration::from_secs(3600);
        for id in [&old, &needed] {
            let file = OpenOptions::new().write(true).open(uploads.find(id).unwrap().1).unwrap();
            file.set_modified(SystemTime::now().checked_sub(2 * hour).unwrap()).unwrap();
        }
        let broken = dir.path().join("uploads").join("0".repeat(32));
        fs::create_dir(&broken).unwrap();
        uploads.remove_old(hour, |id| *id == needed);
        assert_eq!(uploads.find(&old).unwrap_err(), OperatorError::Unknown("upload"));
        assert!(uploads.find(&needed).is_ok() && uploads.find(&young).is_ok() && broken.exists());
        uploads.remove_old(Duration::ZERO, |_| false);
        assert_eq!(fs::read_dir(dir.path().join("uploads")).unwrap().count(), 0);
    }

    #[test]
    fn an_id_names_its_token() {
        let dir = tempfile::tempdir().unwrap();
        let uploads = Uploads::new(dir.path().join("uploads")).unwrap();
        let id = uploads.begin(Some("0123456789abcdef"), &name("a.csv")).unwrap().id;
        assert!(id.ends_with("-0123456789abcdef") && uploads.find(&id).is_ok(), "{id}");
        for token in ["", "../../tables"] {
            let begun = uploads.begin(Some(token), &name("a.csv"));
            assert_eq!(begun.is_ok(), token.is_empty(), "{token}");
        }
        assert_eq!(uploads.find(&name(&"0".repeat(32))).unwrap_err(), OperatorError::Unknown("upload"));
    }
}
