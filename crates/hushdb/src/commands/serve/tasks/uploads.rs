//! Files that come in parts, for tasks to read: a folder each, in it the file under the name that it was given.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::PathBuf,
};

use hush_math::csprng::Csprng;
use hush_server::{OperatorError, Upload};

/// Bytes of an ID.
const ID_BYTES: usize = 16;

/// All of them.
pub(super) struct Uploads(PathBuf);

impl Uploads {
    pub(super) fn new(root: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&root)?;
        Ok(Self(root))
    }

    /// Begins one.
    pub(super) fn begin(&self, name: &str) -> Result<Upload, OperatorError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !(1..=128).contains(&name.len()) || !name.bytes().all(allowed) || name.starts_with('.') {
            return Err(OperatorError::Invalid(
                "the name of an upload has letters, digits, dots, dashes and underscores, as people.csv.gz"
                    .into(),
            ));
        }
        let mut id = [0; ID_BYTES];
        Csprng::from_os().fill_bytes(&mut id);
        let id = hex::encode(id);
        let folder = self.0.join(&id);
        let created = fs::create_dir(&folder)
            .and_then(|()| OpenOptions::new().write(true).create_new(true).open(folder.join(name)).map(drop));
        created.map_err(|error| OperatorError::Refused(format!("no place for an upload: {error}")))?;
        Ok(Upload { id, name: name.to_owned(), bytes: 0 })
    }

    /// One, and its file.
    pub(super) fn find(&self, id: &str) -> Result<(Upload, PathBuf), OperatorError> {
        let unknown = || OperatorError::Unknown("upload");
        let is_id = id.len() == 2 * ID_BYTES && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let folder = Some(self.0.join(id)).filter(|_| is_id).ok_or_else(unknown)?;
        let file = fs::read_dir(folder).ok().and_then(|mut files| files.next()?.ok()).ok_or_else(unknown)?;
        let bytes = file.metadata().map_err(|_| unknown())?.len();
        let name = file.file_name().to_string_lossy().into_owned();
        Ok((Upload { id: id.to_owned(), name, bytes }, file.path()))
    }

    /// Adds a part. What has come twice, after a lost answer, is refused with where to go on.
    pub(super) fn append(&self, id: &str, offset: u64, part: &[u8]) -> Result<Upload, OperatorError> {
        let (upload, path) = self.find(id)?;
        if upload.bytes != offset {
            return Err(OperatorError::Refused(format!(
                "the upload has {} bytes: go on from there",
                upload.bytes
            )));
        }
        let appended = OpenOptions::new().write(true).open(&path).and_then(|mut file| {
            let written =
                io::Seek::seek(&mut file, io::SeekFrom::Start(offset)).and_then(|_| file.write_all(part));
            if written.is_err() {
                // Half a part is none.
                file.set_len(offset)?;
            }
            written
        });
        appended.map_err(|error| OperatorError::Refused(format!("the part was not kept: {error}")))?;
        Ok(Upload { bytes: offset + part.len() as u64, ..upload })
    }

    /// Removes one.
    pub(super) fn remove(&self, id: &str) -> Result<(), OperatorError> {
        self.find(id)?;
        fs::remove_dir_all(self.0.join(id))
            .map_err(|error| OperatorError::Refused(format!("the upload was not removed: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_added_in_order_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let uploads = Uploads::new(dir.path().join("uploads")).unwrap();
        let id = uploads.begin("a.csv").unwrap().id;
        assert_eq!(uploads.append(&id, 0, b"key,").unwrap().bytes, 4);
        let again = uploads.append(&id, 0, b"key,").unwrap_err();
        assert_eq!(again.to_string(), "the upload has 4 bytes: go on from there");
        uploads.append(&id, 4, b"value\n").unwrap();
        let (upload, path) = uploads.find(&id).unwrap();
        assert_eq!((upload.name.as_str(), upload.bytes), ("a.csv", 10));
        assert_eq!(fs::read(path).unwrap(), b"key,value\n");
        uploads.remove(&id).unwrap();
        assert_eq!(uploads.find(&id).unwrap_err(), OperatorError::Unknown("upload"));
    }

    #[test]
    fn names_stay_in_their_folder() {
        let dir = tempfile::tempdir().unwrap();
        let uploads = Uploads::new(dir.path().join("uploads")).unwrap();
        for name in ["", "..", "../a.csv", "a/b", ".hidden", "a\0", &"a".repeat(129)] {
            assert!(uploads.begin(name).is_err(), "{name}");
        }
        for id in ["", "..", "../uploads", &"0".repeat(31), &"0".repeat(32)] {
            assert!(uploads.find(id).is_err(), "{id}");
        }
    }
}
