//! Values read from files, and read again when the files change.

use std::{error::Error, fs::File, io::Read, path::Path, sync::Arc};

use parking_lot::{Mutex, RwLock};
use zeroize::Zeroizing;

/// The bytes of a file, which may be secret.
pub(crate) type FileBytes = Zeroizing<Vec<u8>>;

/// Files, and what they say.
pub(crate) trait Source {
    /// The value that the files hold.
    type Value;
    /// Why they say nothing.
    type Error: Error;

    /// Returns the bytes of all of them.
    fn read(&self) -> Result<Vec<FileBytes>, Self::Error>;

    /// Parses the files; `before` is the value that they held before.
    fn parse(&self, files: &[FileBytes], before: Option<&Self::Value>) -> Result<Self::Value, Self::Error>;
}

/// The value of some files, as of the last time that they were valid.
pub(crate) struct Renewed<S: Source> {
    source: S,
    current: RwLock<Arc<S::Value>>,
    seen: Mutex<SeenFiles>,
}

/// The files as they were last looked at: each state of them is logged once.
#[derive(PartialEq)]
enum SeenFiles {
    /// The hash of their bytes, good or bad.
    Read(blake3::Hash),
    /// The files could not be read, and why.
    Unreadable(String),
}

impl<S: Source> Renewed<S> {
    /// Reads the files.
    pub(crate) fn open(source: S) -> Result<Self, S::Error> {
        let files = source.read()?;
        let current = RwLock::new(Arc::new(source.parse(&files, None)?));
        Ok(Self { source, current, seen: Mutex::new(SeenFiles::Read(hash(&files))) })
    }

    /// Returns the value of the files, or the last valid one.
    pub(crate) fn current(&self) -> Arc<S::Value> {
        self.current.read().clone()
    }

    /// Reads the files again. Whether they say something else.
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

/// Returns the bytes of a file of at most `most` bytes.
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
