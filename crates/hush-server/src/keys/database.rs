//! A redb database that is opened again after its file has failed.
//!
//! After the first error of the file system, for instance a full disk, redb refuses all further work on a database. Committed
//! data is on disk, and a database that is opened again goes on from there. A panic inside redb is treated alike.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::Duration,
};

use parking_lot::RwLock;
use redb::{
    Builder, Database, DatabaseError, Error, StorageBackend,
    backends::{FileBackend, InMemoryBackend},
};
use tokio::time::Instant;

use super::trial::Untouched;

/// The memory for cached parts of the file, in bytes.
const CACHE_BYTES: usize = 16 << 20;
/// The least time between two attempts to open a file again: each reads all of it.
pub(crate) const PAUSE: Duration = Duration::from_secs(10);

type OpenDatabase = dyn Fn() -> Result<Database, DatabaseError> + Send + Sync;

/// A database, with the function that opens it again.
pub(super) struct KeyDatabase {
    open: Box<OpenDatabase>,
    state: RwLock<DatabaseState>,
    pause: Duration,
}

struct DatabaseState {
    /// `None` if it could not be opened again.
    database: Option<Database>,
    /// The time of the last attempt to open the database.
    opened: Instant,
}

impl KeyDatabase {
    /// Opens the database in a file, or one in memory if `path` is `None`. A file that does not exist is created for its owner
    /// alone; an existing one is checked in full. Fails with the error of redb.
    pub(super) fn open(path: Option<&Path>) -> Result<KeyDatabase, Error> {
        match path.map(Path::to_owned) {
            // A database in memory is never opened again: it would be empty.
            None => KeyDatabase::new(|| build(InMemoryBackend::new()), Duration::MAX),
            Some(path) => KeyDatabase::new(move || build(open_file(&path)?), PAUSE),
        }
    }

    /// Creates the file of a database. It has its name only once it is whole, so that a process that ends meanwhile leaves no file
    /// that looks damaged. Fails with the error of redb.
    pub(super) fn create(path: &Path) -> Result<(), Error> {
        let unfinished = path.with_added_extension(std::process::id().to_string());
        let _ = fs::remove_file(&unfinished);
        let named = open_file(&unfinished).and_then(build).and_then(|_| {
            let linked = fs::hard_link(&unfinished, path);
            // Another server may be faster, and a file system may have no links.
            Ok(linked.or_else(|_| if path.exists() { Ok(()) } else { fs::rename(&unfinished, path) })?)
        });
        let _ = fs::remove_file(&unfinished);
        Ok(named?)
    }

    /// Opens the database in a file, without writing to the file. Fails with the error of redb.
    pub(super) fn try_open(path: &Path) -> Result<KeyDatabase, Error> {
        let path = path.to_owned();
        KeyDatabase::new(move || build(Untouched::new(open_file(&path)?)?), PAUSE)
    }

    fn new(
        open: impl Fn() -> Result<Database, DatabaseError> + Send + Sync + 'static,
        pause: Duration,
    ) -> Result<KeyDatabase, Error> {
        let state = RwLock::new(DatabaseState { database: Some(open()?), opened: Instant::now() });
        Ok(KeyDatabase { open: Box::new(open), state, pause })
    }

    /// Runs `work` on the database. If the file fails or redb panics, `work` fails and the file is opened again: see
    /// [`has_failed`].
    pub(super) fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T, Error>) -> Result<T, Error> {
        let state = self.state.read();
        let database = state.database.as_ref().ok_or(Error::DatabaseClosed);
        // Whatever a panic leaves half done is closed with the database.
        let outcome = database.and_then(|database| {
            catch_unwind(AssertUnwindSafe(|| work(database))).unwrap_or(Err(Error::PreviousIo))
        });
        drop(state);
        if outcome.as_ref().is_err_and(has_failed) {
            self.open_again();
        }
        outcome
    }

    /// Opens the file again, unless the last attempt was less than `pause` ago.
    fn open_again(&self) {
        let mut state = self.state.write();
        if state.opened.elapsed() < self.pause {
            return;
        }
        state.opened = Instant::now();
        // Closes the file before it is opened: an open file is locked.
        state.database = None;
        state.database = (self.open)()
            .inspect_err(|error| tracing::error!(%error, "cannot open the file of evaluation keys again"))
            .ok();
        state.opened = Instant::now();
    }
}

/// Returns whether the file failed, now or before, so that the database is opened again.
pub(super) fn has_failed(error: &Error) -> bool {
    matches!(error, Error::Io(_) | Error::PreviousIo | Error::DatabaseClosed)
}

fn open_file(path: &Path) -> Result<FileBackend, DatabaseError> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    FileBackend::new(file)
}

fn build(backend: impl StorageBackend) -> Result<Database, DatabaseError> {
    Builder::new().set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true).create_with_backend(backend)
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
    };

    use redb::{ReadableDatabase, TableDefinition};
    use tempfile::tempdir;

    use super::*;

    const TABLE: TableDefinition<u64, u64> = TableDefinition::new("numbers");

    /// A disk that can be full.
    #[derive(Debug)]
    struct Disk {
        file: FileBackend,
        full: Arc<AtomicBool>,
    }

    impl StorageBackend for Disk {
        fn len(&self) -> io::Result<u64> {
            self.file.len()
        }
        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.file.read(offset, out)
        }
        fn set_len(&self, len: u64) -> io::Result<()> {
            self.file.set_len(len)
        }
        fn sync_data(&self) -> io::Result<()> {
            self.file.sync_data()
        }
        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            if self.full.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.file.write(offset, data)
        }
    }

    fn add(database: &KeyDatabase, number: u64) -> Result<(), Error> {
        database.with(|database| {
            let transaction = database.begin_write()?;
            transaction.open_table(TABLE)?.insert(number, number)?;
            Ok(transaction.commit()?)
        })
    }

    fn has(database: &KeyDatabase, number: u64) -> Result<bool, Error> {
        database.with(|database| Ok(database.begin_read()?.open_table(TABLE)?.get(number)?.is_some()))
    }

    fn on_disk(pause: Duration) -> (KeyDatabase, Arc<AtomicBool>, tempfile::TempDir) {
        let folder = tempdir().unwrap();
        let full = Arc::new(AtomicBool::new(false));
        let path = folder.path().join("keys");
        let disk_full = full.clone();
        let database =
            KeyDatabase::new(move || build(Disk { file: open_file(&path)?, full: disk_full.clone() }), pause);
        (database.unwrap(), full, folder)
    }

    #[test]
    fn work_goes_on_when_the_disk_has_room_again() {
        let (database, full, _folder) = on_disk(Duration::ZERO);
        add(&database, 1).unwrap();
        full.store(true, Ordering::Relaxed);
        for number in 2..5 {
            assert!(add(&database, number).is_err());
        }
        full.store(false, Ordering::Relaxed);
        // A failure may be left over from before.
        assert!((0..2).any(|_| add(&database, 9).is_ok()));
        assert!(has(&database, 1).unwrap() && has(&database, 9).unwrap());
        assert!(!has(&database, 2).unwrap());
    }

    #[test]
    fn a_file_that_keeps_failing_is_not_read_again_and_again() {
        let (database, full, _folder) = on_disk(Duration::from_secs(3600));
        full.store(true, Ordering::Relaxed);
        assert!(add(&database, 1).is_err());
        full.store(false, Ordering::Relaxed);
        assert!(add(&database, 1).is_err(), "not opened again yet");
    }

    #[test]
    fn work_goes_on_after_a_panic() {
        let (database, _full, _folder) = on_disk(Duration::ZERO);
        add(&database, 1).unwrap();
        let panics = |database: &KeyDatabase| {
            database.with(|database| -> Result<(), Error> {
                let transaction = database.begin_write()?;
                transaction.open_table(TABLE)?.insert(2, 2)?;
                panic!("asked to panic")
            })
        };
        for _ in 0..2 {
            assert!(panics(&database).as_ref().is_err_and(has_failed));
            assert!(has(&database, 1).unwrap() && !has(&database, 2).unwrap());
        }
        add(&database, 2).unwrap();

        let memory = KeyDatabase::open(None).unwrap();
        add(&memory, 1).unwrap();
        assert!(panics(&memory).is_err());
        assert!(has(&memory, 1).unwrap());
    }
}
