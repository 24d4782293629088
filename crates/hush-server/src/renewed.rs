//! Values read from files, and read again when the files change.

use std::{error::Error, fs::File, io::Read, path::Path, sync::Arc};

use parking_lot::{Mutex, RwLock};
use zeroize::Zeroizing;

/// The bytes of a file, which may be secret.
pub(crate) type FileBytes = Zeroizing<Vec<u8>>;

/// Files that hold a value.
pub(crate) trait Source {
    /// The value that the files hold.
    type Value;
    /// The error of files that hold no value.
    type Error: Error;

    /// Returns the bytes of each file. Fails if one cannot be read.
    fn read(&self) -> Result<Vec<FileBytes>, Self::Error>;

    /// Parses the files into a value. `before` is the last valid value, if there is one. Fails if the files are malformed.
    fn parse(&self, files: &[FileBytes], before: Option<&Self::Value>) -> Result<Self::Value, Self::Error>;
}

/// The last valid value of some files.
pub(crate) struct Renewed<S: Source> {
    source: S,
    current: RwLock<Arc<S::Value>>,
    seen: Mutex<SeenFiles>,
}

/// The state of the files at the last look. Each state is logged once.
#[derive(PartialEq)]
enum SeenFiles {
    /// The hash of the bytes of readable files, valid or not.
    Read(blake3::Hash),
    /// The reason why the files could not be read.
    Unreadable(String),
}

impl<S: Source> Renewed<S> {
    /// Reads and parses the files. Fails if they cannot be read or are malformed.
    pub(crate) fn open(source: S) -> Result<Self, S::Error> {
        let files = source.read()?;
        let current = RwLock::new(Arc::new(source.parse(&files, None)?));
        Ok(Self { source, current, seen: Mutex::new(SeenFiles::Read(hash(&files))) })
    }

    /// Returns the value of the files, or the last valid one.
    pub(crate) fn current(&self) -> Arc<S::Value> {
        self.current.read().clone()
    }

    /// Reads the files again. Returns whether they changed. Fails if the new files cannot be read or are malformed, once for each
    /// state of the files; the current value then stays.
    pub(crate) fn reload(&self) -> Result<bool, S::Error> {
        let files = self.source.read();
        let now = match &files {
            Ok(files) => SeenFiles::Read(hash(files)),
            Err(error) => SeenFiles::Unreadable(error.to_string()),
        };
        let mut seen = self.seen.lock();
        if *seen == now {
            return Ok(false);
        }
        *seen = now;
        let value = self.source.parse(&files?, Some(&*self.current()))?;
        *self.current.write() = Arc::new(value);
        Ok(true)
    }

    /// Reads the files again, and logs the outcome. `what` names the files in a word or two.
    pub(crate) fn take_up(&self, what: &str) {
        match self.reload() {
            Ok(true) => tracing::info!("{what}: read new files, and use them from now on"),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "{what}: cannot use the new files, and keep the current ones")
            }
        }
    }
}

fn hash(files: &[FileBytes]) -> blake3::Hash {
    let hashes: Vec<[u8; 32]> = files.iter().map(|file| *blake3::hash(file).as_bytes()).collect();
    blake3::hash(hashes.as_flattened())
}

/// Returns the bytes of a file. Fails with the reason if the file cannot be read or has more than `most` bytes.
pub(crate) fn read_file(path: &Path, most: u64) -> Result<FileBytes, String> {
    let mut bytes = Zeroizing::new(Vec::new());
    let read = File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    match read {
        Ok(count) if count as u64 > most => Err(format!("it has more than {most} bytes")),
        Ok(_) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use thiserror::Error;

    use super::*;

    struct Number(PathBuf);

    #[derive(Debug, Error)]
    #[error("{0}")]
    struct NoNumber(String);

    impl Source for Number {
        type Value = u32;
        type Error = NoNumber;

        fn read(&self) -> Result<Vec<FileBytes>, NoNumber> {
            Ok(vec![read_file(&self.0, 5).map_err(NoNumber)?])
        }

        fn parse(&self, files: &[FileBytes], before: Option<&u32>) -> Result<u32, NoNumber> {
            let text = String::from_utf8_lossy(&files[0]);
            let number: u32 = text.parse().map_err(|_| NoNumber(text.into()))?;
            Ok(number + before.unwrap_or(&0))
        }
    }

    #[test]
    fn what_files_say_is_kept_until_they_say_something_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("number");
        assert!(Renewed::open(Number(path.clone())).is_err());
        fs::write(&path, "5").unwrap();
        let renewed = Renewed::open(Number(path.clone())).ok().unwrap();
        assert_eq!((renewed.reload().unwrap(), *renewed.current()), (false, 5));
        fs::write(&path, "6").unwrap();
        assert_eq!((renewed.reload().unwrap(), *renewed.current()), (true, 11));
        // A fault is reported once.
        for wrong in [Some("x"), Some("123456"), None] {
            match wrong {
                Some(text) => fs::write(&path, text).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            assert!(renewed.reload().is_err(), "{wrong:?}");
            assert_eq!((renewed.reload().unwrap(), *renewed.current()), (false, 11));
        }
        fs::write(&path, "6").unwrap();
        assert_eq!((renewed.reload().unwrap(), *renewed.current()), (true, 17));
    }
}
