//! Seeds of evaluation keys: one for each server and parameter set, made once and kept for a month.
//!
//! A seed yields the secret key and the evaluation keys that were uploaded, so that the next process need not upload
//! them again. It is a file that only its owner can read, in a folder that only its owner can enter, written whole or
//! not at all. Seeds are made anew when they are old, damaged, under another name, another user's, or were readable by
//! others: what that costs is an upload.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

use etcetera::BaseStrategy;
use zeroize::Zeroizing;

use super::{HintCache, files::FileCacheError, lock};
use crate::session::{
    Seed,
    kept_seed::{FILE_BYTES, LIFETIME, encode, file_name, fresh, parse},
};

/// Where seeds are kept.
pub(super) struct SecretStore {
    /// `None`: they go with the process.
    directory: Option<PathBuf>,
}

impl SecretStore {
    pub(super) fn new(cache: &HintCache) -> Result<Self, FileCacheError> {
        let directory = match cache {
            HintCache::Off => None,
            HintCache::Directory(path) => Some(path.join("secrets")),
            HintCache::User => {
                let base = etcetera::choose_base_strategy().map_err(|_| FileCacheError::NoDirectory)?;
                Some(base.cache_dir().join("hushdb").join("secrets"))
            }
        };
        Ok(Self { directory })
    }

    /// The seed for `preset` at the server `origin`; a new one if there is none yet.
    pub(super) fn obtain(&self, origin: &str, preset: &str) -> Result<Seed, FileCacheError> {
        let Some(directory) = &self.directory else { return Ok(fresh()) };
        let user = private_directory(directory).map_err(|source| FileCacheError::at(directory, source))?;
        // Until this function ends no other process makes a seed, so that both use the same.
        let _lock = lock(&directory.join("lock"))?;
        let file = SeedFile { directory, name: &file_name(origin, preset) };
        let failed = |source| FileCacheError::at(&file.path(), source);
        let now = SystemTime::now();
        if let Some(seed) = file.read(user, now).map_err(failed)? {
            return Ok(seed);
        }
        let seed = fresh();
        file.write(&seed, now).map_err(failed)?;
        remove_old(directory, now);
        Ok(seed)
    }
}

fn lock(path: &Path) -> Result<File, FileCacheError> {
    let error = |source| FileCacheError::at(path, source);
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(path).map_err(error)?;
    lock::lock(&file).map_err(error)?;
    Ok(file)
}

/// Makes a directory for this user alone, or makes sure that it is one. Returns the user.
fn private_directory(directory: &Path) -> io::Result<u32> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    // Whose a new file is says who this is.
    let user = tempfile::tempfile_in(directory)?.metadata()?.uid();
    close_to_others(directory, user)?;
    Ok(user)
}

/// Nobody but `user` shall list, read or add files.
fn close_to_others(directory: &Path, user: u32) -> io::Result<()> {
    let metadata = fs::symlink_metadata(directory)?;
    if !metadata.is_dir() || metadata.uid() != user {
        let reason = "it is not a folder of the user who runs this: secret keys are not kept in it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    if is_open_to_others(&metadata) {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn is_open_to_others(metadata: &fs::Metadata) -> bool {
    metadata.mode() & 0o077 != 0
}

/// A file for the seed of one server and parameter set.
struct SeedFile<'a> {
    directory: &'a Path,
    name: &'a str,
}

impl SeedFile<'_> {
    fn path(&self) -> PathBuf {
        self.directory.join(self.name)
    }

    /// The seed, if it is there and good, and only `user` could read or write it.
    fn read(&self, user: u32, now: SystemTime) -> io::Result<Option<Seed>> {
        let mut file = match File::open(self.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            outcome => outcome?,
        };
        let metadata = file.metadata()?;
        if metadata.len() != FILE_BYTES as u64 || metadata.uid() != user || is_open_to_others(&metadata) {
            return Ok(None);
        }
        let mut bytes = Zeroizing::new([0; FILE_BYTES]);
        file.read_exact(&mut *bytes)?;
        Ok(parse(&bytes, self.name, seconds(now)))
    }

    /// Writes the whole file under another name first.
    fn write(&self, seed: &Seed, now: SystemTime) -> io::Result<()> {
        let private = fs::Permissions::from_mode(0o600);
        let mut file = tempfile::Builder::new().permissions(private).tempfile_in(self.directory)?;
        file.write_all(&*encode(seed, self.name, seconds(now)))?;
        file.as_file().sync_all()?;
        file.persist(self.path())?;
        Ok(())
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Deletes the seeds of servers that have not been asked for long, as far as that is possible.
fn remove_old(directory: &Path, now: SystemTime) {
    let is_old = |path: &Path| {
        let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
        modified.is_ok_and(|modified| now.duration_since(modified).is_ok_and(|age| age > LIFETIME))
    };
    let paths = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let seeds = paths.filter(|path| path.extension().is_some_and(|extension| extension == "seed"));
    for path in seeds.filter(|path| is_old(path)) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, thread, time::Duration};

    use tempfile::tempdir;

    use super::*;

    const URL: &str = "http://localhost:7700";

    fn store(path: &Path) -> SecretStore {
        SecretStore::new(&HintCache::Directory(path.to_owned())).unwrap()
    }

    /// The only seed file under `path`.
    fn seed_file(path: &Path) -> PathBuf {
        let entries = fs::read_dir(path.join("secrets")).unwrap().map(|entry| entry.unwrap().path());
        let mut seeds: Vec<_> =
            entries.filter(|path| path.extension().is_some_and(|e| e == "seed")).collect();
        assert_eq!(seeds.len(), 1);
        seeds.remove(0)
    }

    #[test]
    fn a_seed_is_made_once_for_each_server_and_parameter_set() {
        let folder = tempdir().unwrap();
        let store = store(folder.path());
        let seed = store.obtain(URL, "toy").unwrap();
        assert_eq!(store.obtain(URL, "toy").unwrap(), seed);
        assert_ne!(store.obtain(URL, "other").unwrap(), seed);
        assert_ne!(store.obtain("http://localhost:7701", "toy").unwrap(), seed);
        assert_ne!(store.obtain("http://localhost:7700t", "oy").unwrap(), seed);
    }

    #[test]
    fn nobody_else_can_read_it() {
        let folder = tempdir().unwrap();
        store(folder.path()).obtain(URL, "toy").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder.path().join("secrets")), 0o700);
        assert_eq!(mode(&seed_file(folder.path())), 0o600);
    }

    #[test]
    fn a_directory_that_others_can_enter_is_closed() {
        let folder = tempdir().unwrap();
        let directory = folder.path().join("secrets");
        fs::create_dir(&directory).unwrap();
        let obtain = |mode| {
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
            let seed = store(folder.path()).obtain(URL, "toy").unwrap();
            assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
            seed
        };
        let seed = obtain(0o755);
        assert!([0o770, 0o701, 0o700].iter().all(|&mode| obtain(mode) == seed));
    }

    #[test]
    fn what_belongs_to_others_is_not_used() {
        let folder = tempdir().unwrap();
        let store = store(folder.path());
        store.obtain(URL, "toy").unwrap();
        let (directory, now) = (folder.path().join("secrets"), SystemTime::now());
        let user = private_directory(&directory).unwrap();
        let file = SeedFile { directory: &directory, name: &file_name(URL, "toy") };
        assert!(file.read(user, now).unwrap().is_some());
        assert!(file.read(user + 1, now).unwrap().is_none());
        let error = close_to_others(&directory, user + 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);

        let link = folder.path().join("elsewhere").join("secrets");
        fs::create_dir(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&directory, &link).unwrap();
        assert!(private_directory(&link).is_err());
    }

    #[test]
    fn the_seed_of_another_server_is_not_used() {
        let folder = tempdir().unwrap();
        let store = store(folder.path());
        let seed = store.obtain(URL, "toy").unwrap();
        let path = seed_file(folder.path());
        let other = path.with_file_name(file_name(URL, "other"));
        fs::copy(&path, &other).unwrap();
        assert_ne!(store.obtain(URL, "other").unwrap(), seed);
        assert_eq!(store.obtain(URL, "toy").unwrap(), seed);
    }

    #[test]
    fn damaged_and_exposed_files_are_replaced() {
        let folder = tempdir().unwrap();
        let store = store(folder.path());
        let mut seen = HashSet::from([*store.obtain(URL, "toy").unwrap()]);
        let path = seed_file(folder.path());
        let good = fs::read(&path).unwrap();
        let mut flipped = good.clone();
        flipped[20] ^= 1;
        let mut renamed = good.clone();
        renamed[0] ^= 1;
        for bad in [&flipped[..], &renamed, &good[..79], &[&good[..], b"x"].concat(), b""] {
            fs::write(&path, bad).unwrap();
            let seed = store.obtain(URL, "toy").unwrap();
            assert!(seen.insert(*seed), "a new one");
            assert_eq!(store.obtain(URL, "toy").unwrap(), seed);
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(seen.insert(*store.obtain(URL, "toy").unwrap()));
    }

    #[test]
    fn old_seeds_are_replaced_and_deleted() {
        let folder = tempdir().unwrap();
        let store = store(folder.path());
        let (seed, directory) = (store.obtain(URL, "toy").unwrap(), folder.path().join("secrets"));
        let path = seed_file(folder.path());
        let file = SeedFile { directory: &directory, name: &file_name(URL, "toy") };
        let made = |seconds_ago: u64| {
            let time = SystemTime::now() - Duration::from_secs(seconds_ago);
            file.write(&seed, time).unwrap();
            File::open(&path).unwrap().set_modified(time).unwrap();
        };
        made(LIFETIME.as_secs() - 60);
        assert_eq!(store.obtain(URL, "toy").unwrap(), seed);
        made(LIFETIME.as_secs() + 60);
        store.obtain(URL, "other").unwrap();
        assert!(!path.exists());
        made(LIFETIME.as_secs() + 60);
        assert_ne!(store.obtain(URL, "toy").unwrap(), seed);
    }

    #[test]
    fn those_who_start_together_get_the_same_seed() {
        let folder = tempdir().unwrap();
        let obtain = || *store(folder.path()).obtain(URL, "toy").unwrap();
        let seeds: HashSet<_> = thread::scope(|scope| {
            let all: Vec<_> = (0..16).map(|_| scope.spawn(obtain)).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(seeds.len(), 1);
    }

    #[test]
    fn without_a_cache_every_seed_is_new() {
        let store = SecretStore::new(&HintCache::Off).unwrap();
        assert_ne!(store.obtain(URL, "toy").unwrap(), store.obtain(URL, "toy").unwrap());
    }
}
