//! The greatest serials seen so far, one file for each publisher and name. The number in a file only grows.

use std::{
    collections::HashMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::{
    HintCache,
    file_cache_error::FileCacheError,
    private::sync_folder,
    secrets::{folder, lock, private_directory},
};

/// The store of the greatest serials.
pub(super) struct SerialStore {
    /// The folder of the files. `None` keeps the serials in memory.
    directory: Option<PathBuf>,
    /// The serials of this process, if there is no directory.
    seen: Mutex<HashMap<String, u64>>,
}

impl SerialStore {
    pub(super) fn new(cache: &HintCache) -> Result<Self, FileCacheError> {
        Ok(Self { directory: folder(cache, "serials")?, seen: Mutex::default() })
    }

    /// Records `serial`, and returns the greatest serial of `publication` so far, including this one.
    pub(super) fn newest(&self, publication: &str, serial: u64) -> Result<u64, FileCacheError> {
        let Some(directory) = &self.directory else {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let newest = seen.entry(publication.to_owned()).or_default();
            *newest = serial.max(*newest);
            return Ok(*newest);
        };
        private_directory(directory).map_err(|source| FileCacheError::at(directory, source))?;
        // With the lock, the serials of two processes at the same time both count.
        let _lock = lock(&directory.join("lock"))?;
        let path = directory.join(format!("{publication}.serial"));
        newest_of(&path, directory, serial).map_err(|source| FileCacheError::at(&path, source))
    }
}

/// Returns the greater of the number in a file and `serial`, and writes it to the file. A missing file counts as 0.
fn newest_of(path: &Path, directory: &Path, serial: u64) -> io::Result<u64> {
    let kept: Option<u64> = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        text => Some(
            text?
                .trim()
                .parse()
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it has no serial: delete it"))?,
        ),
    };
    if let Some(kept) = kept.filter(|kept| *kept >= serial) {
        return Ok(kept);
    }
    // The file is written in full under another name, then renamed.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    writeln!(file, "{serial}")?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    sync_folder(directory)?;
    Ok(serial)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tempfile::tempdir;

    use super::*;

    fn store(path: &Path) -> SerialStore {
        SerialStore::new(&HintCache::Directory(path.to_owned())).unwrap()
    }

    #[test]
    fn a_serial_only_grows() {
        let folder = tempdir().unwrap();
        let off = SerialStore::new(&HintCache::Off).unwrap();
        for (serial, newest) in [(5, 5), (4, 5), (5, 5), (u64::MAX, u64::MAX), (6, u64::MAX)] {
            // Each iteration stands for another process.
            assert_eq!(store(folder.path()).newest("one", serial).unwrap(), newest);
            assert_eq!(off.newest("one", serial).unwrap(), newest);
        }
        assert_eq!(store(folder.path()).newest("other", 1).unwrap(), 1);
        assert_eq!(SerialStore::new(&HintCache::Off).unwrap().newest("one", 1).unwrap(), 1);
    }

    #[test]
    fn the_greatest_of_many_at_a_time_is_kept() {
        let folder = tempdir().unwrap();
        let path = folder.path();
        thread::scope(|scope| {
            for serial in 1..=16 {
                scope.spawn(move || store(path).newest("one", serial).unwrap());
            }
        });
        assert_eq!(store(path).newest("one", 0).unwrap(), 16);
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let folder = tempdir().unwrap();
        store(folder.path()).newest("one", 7).unwrap();
        let file = folder.path().join("serials").join("one.serial");
        for bad in ["", "-1", "7 8", "18446744073709551616"] {
            fs::write(&file, bad).unwrap();
            let error = store(folder.path()).newest("one", 9).unwrap_err().to_string();
            assert!(error.contains("one.serial") && error.contains("delete it"), "{error}");
        }
    }
}
