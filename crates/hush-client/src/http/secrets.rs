//! Records of evaluation keys: one for each combination of server, route to it and parameter set.
//!
//! The seed in a record yields the secret key and the evaluation keys that were uploaded, so the next process does not upload them
//! again. A record is a file that only its owner can read, in a folder that only its owner can enter. Look-ups are counted in the
//! record before they are sent. A file is replaced whole. It is flushed to the disk when the keys are suspect, and when a 16th of
//! their look-ups is used: a loss of power forgets no more. A record is replaced by a new one, at the cost of an upload, if a loss
//! of power damaged it, it has another name or owner, or it is readable by others.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use etcetera::BaseStrategy;
use zeroize::Zeroizing;

use super::{
    HintCache,
    file_cache_error::FileCacheError,
    lock,
    private::{self, Owner, is_open_to_others},
};
use crate::session::{
    KeptKeys, KeyNote, KeyRequest,
    kept_keys::{LIFETIME, RECORD_BYTES},
};

/// The store of the records of keys.
pub(super) struct SecretStore {
    /// The folder of the records. `None` keeps no records.
    directory: Option<PathBuf>,
}

impl SecretStore {
    pub(super) fn new(cache: &HintCache) -> Result<Self, FileCacheError> {
        Ok(Self { directory: folder(cache, "secrets")? })
    }

    /// Returns keys for the look-ups of `request`, and counts these in the record.
    pub(super) fn draw(&self, request: &KeyRequest) -> Result<KeptKeys, FileCacheError> {
        let now = SystemTime::now();
        let Some(directory) = &self.directory else { return Ok(KeptKeys::draw(None, request, seconds(now))) };
        self.locked(directory, &request.name, |kept, file| {
            let is_first = kept.is_none();
            let keys = KeptKeys::draw(kept, request, seconds(now));
            file.write(&keys, keys.passes_mark(request))?;
            if is_first {
                remove_old(directory, now);
            }
            Ok(keys)
        })
    }

    /// Records an event of `keys`, if the record still has these keys.
    pub(super) fn note(&self, name: &str, keys: &KeptKeys, note: KeyNote) -> Result<(), FileCacheError> {
        let Some(directory) = &self.directory else { return Ok(()) };
        self.locked(directory, name, |kept, file| {
            let Some(mut kept) = kept else { return Ok(()) };
            if kept.note(keys, note) { file.write(&kept, matches!(note, KeyNote::Suspect)) } else { Ok(()) }
        })
    }

    /// Calls `change` with the record `name`. Until it returns, no other process reads or writes a record, so that all
    /// processes use the same keys and every look-up is counted.
    fn locked<T>(
        &self,
        directory: &Path,
        name: &str,
        change: impl FnOnce(Option<KeptKeys>, &RecordFile<'_>) -> io::Result<T>,
    ) -> Result<T, FileCacheError> {
        let user = private_directory(directory).map_err(|source| FileCacheError::at(directory, source))?;
        let _lock = lock(&directory.join("lock"))?;
        let file = RecordFile { directory, name };
        let changed = file.read(user).and_then(|kept| change(kept, &file));
        changed.map_err(|source| FileCacheError::at(&file.path(), source))
    }
}

/// Returns the folder `name` of the cache, or `None` if the cache is off.
pub(super) fn folder(cache: &HintCache, name: &str) -> Result<Option<PathBuf>, FileCacheError> {
    Ok(match cache {
        HintCache::Off => None,
        HintCache::Directory(path) => Some(path.join(name)),
        HintCache::User => {
            let base = etcetera::choose_base_strategy().map_err(|_| FileCacheError::NoDirectory)?;
            Some(base.cache_dir().join("hushdb").join(name))
        }
    })
}

/// Locks a file in the cache until the returned file is dropped.
pub(super) fn lock(path: &Path) -> Result<File, FileCacheError> {
    let error = |source| FileCacheError::at(path, source);
    let file = private::new_file().open(path).map_err(error)?;
    lock::lock(&file).map_err(error)?;
    Ok(file)
}

/// Creates a directory for this user alone, durably, or checks that it is one. Returns the user.
pub(super) fn private_directory(directory: &Path) -> io::Result<Owner> {
    let missing = directory.ancestors().take_while(|folder| !folder.is_dir()).count();
    private::new_folder().create(directory)?;
    directory.ancestors().skip(1).take(missing).try_for_each(private::sync_folder)?;
    let user = Owner::of_new_files(directory)?;
    close_to_others(directory, user)?;
    Ok(user)
}

/// Makes sure that only `user` can list, read or add files.
fn close_to_others(directory: &Path, user: Owner) -> io::Result<()> {
    let metadata = fs::symlink_metadata(directory)?;
    if !metadata.is_dir() || !user.owns(&metadata) {
        let reason = "it is not a folder of the user who runs this: secret keys are not kept in it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    if is_open_to_others(&metadata) {
        private::close(directory)?;
    }
    Ok(())
}

/// The file that holds a record.
struct RecordFile<'a> {
    directory: &'a Path,
    name: &'a str,
}

impl RecordFile<'_> {
    fn path(&self) -> PathBuf {
        self.directory.join(self.name)
    }

    /// Returns the record, if it exists and is valid, and only `user` could read or write it.
    fn read(&self, user: Owner) -> io::Result<Option<KeptKeys>> {
        let mut file = match File::open(self.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            outcome => outcome?,
        };
        let metadata = file.metadata()?;
        if metadata.len() != RECORD_BYTES as u64 || !user.owns(&metadata) || is_open_to_others(&metadata) {
            return Ok(None);
        }
        let mut bytes = Zeroizing::new([0; RECORD_BYTES]);
        file.read_exact(&mut *bytes)?;
        Ok(KeptKeys::decode(&bytes, self.name))
    }

    /// Writes a temporary file and renames it. The file's time is set to the creation of the keys, by which old files are deleted.
    /// With `is_durable`, the record survives a loss of power.
    fn write(&self, keys: &KeptKeys, is_durable: bool) -> io::Result<()> {
        // A temporary file is its owner's alone.
        let mut file = tempfile::NamedTempFile::new_in(self.directory)?;
        file.write_all(&*keys.encode(self.name))?;
        if let Some(made) = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(keys.made())) {
            file.as_file().set_modified(made)?;
        }
        if is_durable {
            file.as_file().sync_all()?;
        }
        file.persist(self.path())?;
        if is_durable { private::sync_folder(self.directory) } else { Ok(()) }
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Deletes records whose keys are too old. Ignores errors.
fn remove_old(directory: &Path, now: SystemTime) {
    let is_old = |path: &Path| {
        let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
        modified.is_ok_and(|modified| now.duration_since(modified).is_ok_and(|age| age > LIFETIME))
    };
    let paths = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let records = paths.filter(|path| path.extension().is_some_and(|extension| extension == "seed"));
    for path in records.filter(|path| is_old(path)) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        os::unix::fs::{MetadataExt, PermissionsExt},
        thread,
    };

    use tempfile::tempdir;

    use super::*;
    use crate::session::kept_keys::record_name;

    const URL: &str = "http://localhost:7700";

    fn store(path: &Path) -> SecretStore {
        SecretStore::new(&HintCache::Directory(path.to_owned())).unwrap()
    }

    fn request(preset: &str) -> KeyRequest {
        KeyRequest { name: record_name(URL, "", preset), held: None, lookups: 1, limit: 1000 }
    }

    impl SecretStore {
        /// Returns the seed for one more look-up.
        fn obtain(&self, preset: &str) -> [u8; 32] {
            **self.draw(&request(preset)).unwrap().seed()
        }
    }

    /// Returns the only record under `path`.
    fn record_file(path: &Path) -> PathBuf {
        let entries = fs::read_dir(path.join("secrets")).unwrap().map(|entry| entry.unwrap().path());
        let mut records: Vec<_> =
            entries.filter(|path| path.extension().is_some_and(|e| e == "seed")).collect();
        assert_eq!(records.len(), 1);
        records.remove(0)
    }

    #[test]
    fn keys_are_made_once_for_each_name() {
        let folder = tempdir().unwrap();
        let store = store(folder.path());
        let seed = store.obtain("toy");
        assert_eq!(store.obtain("toy"), seed);
        assert_ne!(store.obtain("other"), seed);
    }

    #[test]
    fn every_look_up_of_every_process_counts() {
        let folder = tempdir().unwrap();
        let draw = |lookups| {
            let request = KeyRequest { lookups, limit: 8, ..request("toy") };
            **store(folder.path()).draw(&request).unwrap().seed()
        };
        let mut seen = HashSet::new();
        for _ in 0..3 {
            let seed = draw(3);
            assert!(seen.insert(seed), "fresh keys");
            assert_eq!([draw(4), draw(1)], [seed; 2]);
        }
        let seeds: Vec<_> = thread::scope(|scope| {
            let all: Vec<_> = (0..16).map(|_| scope.spawn(|| draw(1))).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for seed in seeds.iter().collect::<HashSet<_>>() {
            assert_eq!(seeds.iter().filter(|other| *other == seed).count(), 8);
        }
    }

    #[test]
    fn what_became_of_keys_is_for_all_processes() {
        let folder = tempdir().unwrap();
        let keys = store(folder.path()).draw(&request("toy")).unwrap();
        let name = request("toy").name;
        store(folder.path()).note(&name, &keys, KeyNote::Uploaded).unwrap();
        assert!(store(folder.path()).draw(&request("toy")).unwrap().is_uploaded());
        store(folder.path()).note(&name, &keys, KeyNote::Suspect).unwrap();
        let held = KeyRequest { held: Some(keys.clone()), ..request("toy") };
        assert!(store(folder.path()).draw(&held).unwrap().is_same(&keys), "the session goes on");
        let fresh = store(folder.path()).draw(&request("toy")).unwrap();
        assert!(!fresh.is_same(&keys) && !fresh.is_uploaded());
        store(folder.path()).note(&name, &keys, KeyNote::Suspect).unwrap();
        assert!(store(folder.path()).draw(&request("toy")).unwrap().is_same(&fresh), "a note on others");
    }

    #[test]
    fn nobody_else_can_read_it() {
        let folder = tempdir().unwrap();
        store(folder.path()).obtain("toy");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder.path().join("secrets")), 0o700);
        assert_eq!(mode(&record_file(folder.path())), 0o600);
    }

    #[test]
    fn a_directory_that_others_can_enter_is_closed() {
        let folder = tempdir().unwrap();
        let directory = folder.path().join("secrets");
        fs::create_dir(&directory).unwrap();
        let obtain = |mode| {
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
            let seed = store(folder.path()).obtain("toy");
            assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
            seed
        };
        let seed = obtain(0o755);
        assert!([0o770, 0o701, 0o700].iter().all(|&mode| obtain(mode) == seed));
    }

    #[test]
    fn what_belongs_to_others_is_not_used() {
        let folder = tempdir().unwrap();
        store(folder.path()).obtain("toy");
        let directory = folder.path().join("secrets");
        let user = private_directory(&directory).unwrap();
        let file = RecordFile { directory: &directory, name: &request("toy").name };
        assert!(file.read(user).unwrap().is_some());
        let other = Owner(user.0 + 1);
        assert!(file.read(other).unwrap().is_none());
        let error = close_to_others(&directory, other).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);

        let link = folder.path().join("elsewhere").join("secrets");
        fs::create_dir(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&directory, &link).unwrap();
        assert!(private_directory(&link).is_err());
    }

    #[test]
    fn the_keys_of_another_server_are_not_used() {
        let folder = tempdir().unwrap();
        let store = store(folder.path());
        let seed = store.obtain("toy");
        let path = record_file(folder.path());
        fs::copy(&path, path.with_file_name(request("other").name)).unwrap();
        assert_ne!(store.obtain("other"), seed);
        assert_eq!(store.obtain("toy"), seed);
    }

    #[test]
    fn damaged_and_exposed_files_are_replaced() {
        let folder = tempdir().unwrap();
        let store = store(folder.path());
        let mut seen = HashSet::from([store.obtain("toy")]);
        let path = record_file(folder.path());
        let good = fs::read(&path).unwrap();
        let mut flipped = good.clone();
        flipped[20] ^= 1;
        let mut renamed = good.clone();
        renamed[0] ^= 1;
        for bad in [&flipped[..], &renamed, &good[..RECORD_BYTES - 1], &[&good[..], b"x"].concat(), b""] {
            fs::write(&path, bad).unwrap();
            let seed = store.obtain("toy");
            assert!(seen.insert(seed), "a new one");
            assert_eq!(store.obtain("toy"), seed);
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(seen.insert(store.obtain("toy")));
    }

    #[test]
    fn old_keys_are_replaced_and_deleted() {
        let folder = tempdir().unwrap();
        let store = store(folder.path());
        let directory = folder.path().join("secrets");
        let file = RecordFile { directory: &directory, name: &request("toy").name };
        let user = private_directory(&directory).unwrap();
        let made = |seconds_ago: u64| {
            let keys = KeptKeys::draw(None, &request("toy"), seconds(SystemTime::now()) - seconds_ago);
            file.write(&keys, false).unwrap();
            **keys.seed()
        };
        let young = made(LIFETIME.as_secs() - 60);
        assert_eq!(store.obtain("toy"), young);
        let old = made(LIFETIME.as_secs() + 60);
        assert!(file.read(user).unwrap().is_some());
        store.obtain("other");
        assert!(file.read(user).unwrap().is_none(), "with the first keys of another name");
        made(LIFETIME.as_secs() + 60);
        assert_ne!(store.obtain("toy"), old);
    }

    #[test]
    fn those_who_start_together_get_the_same_keys() {
        let folder = tempdir().unwrap();
        let seeds: HashSet<_> = thread::scope(|scope| {
            let all: Vec<_> = (0..16).map(|_| scope.spawn(|| store(folder.path()).obtain("toy"))).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(seeds.len(), 1);
    }

    #[test]
    fn without_a_cache_every_session_has_new_keys() {
        let store = SecretStore::new(&HintCache::Off).unwrap();
        let keys = store.draw(&request("toy")).unwrap();
        assert!(!store.draw(&request("toy")).unwrap().is_same(&keys));
        let held = KeyRequest { held: Some(keys.clone()), ..request("toy") };
        assert!(store.draw(&held).unwrap().is_same(&keys));
    }
}
