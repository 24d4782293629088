//! Uploaded keys in one redb file, or in memory.
//!
//! The file has five tables: entries, bytes in pieces, bodies that queries have used by the time of their last use, other bodies
//! by the time of their upload, and the bytes of all together. Every change is one transaction, so a crash leaves the state
//! before or after it.

use std::{
    fmt, io,
    path::Path,
    time::{Duration, SystemTime},
};

use hush_protocol::{wire::KEY_ID_BYTES, wording::Wording};
use redb::{
    ReadableDatabase, ReadableTable, ReadableTableMetadata, Table, TableDefinition, WriteTransaction,
};
use thiserror::Error;

use super::database::KeyDatabase;
use crate::{
    config::{Clock, ServerConfig},
    error::ServerError,
};

/// The name of a body: its BLAKE3 hash.
pub(crate) type KeyId = [u8; KEY_ID_BYTES];

/// Milliseconds since 1970.
pub(crate) type Millis = u64;

/// The entries: the name of the parameter set, the bytes of the body, and its last use, by a query or else an upload.
const ENTRIES: TableDefinition<&KeyId, (&str, u64, Millis)> = TableDefinition::new("entries");
/// The bodies, cut into pieces of [`PIECE_BYTES`].
const PIECES: TableDefinition<(&KeyId, u32), &[u8]> = TableDefinition::new("pieces");
/// The bytes of each body that a query has used, by the time of the last use: the oldest comes first.
const BY_USE: ByTime = TableDefinition::new("by use");
/// The bytes of each body that no query has used, by time. Such bodies go first: uploads alone push out nothing in use.
const UNUSED: ByTime = TableDefinition::new("unused");
/// The bytes of all bodies, each with [`ENTRY_BYTES`].
const TOTAL: TableDefinition<(), u64> = TableDefinition::new("total");

type ByTime = TableDefinition<'static, (Millis, &'static KeyId), u64>;

/// The bytes of a piece. A value, with what the file adds to it, takes a power of two: a value as long as a body would leave up
/// to half of its space empty.
const PIECE_BYTES: usize = (64 << 10) - 256;
/// The bytes that an entry counts beside its body.
const ENTRY_BYTES: u64 = 512;
/// The most bodies that one transaction removes when the store is tidied up.
const TIDY_BATCH: usize = 64;

/// Why the store did not do what it was asked.
#[derive(Debug, Error)]
pub(crate) enum StoreError {
    /// A body that never fits.
    #[error("a body of {bytes} bytes does not fit into a store of {max} bytes")]
    TooLarge { bytes: u64, max: u64 },
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] redb::Error),
}

type Result<T> = std::result::Result<T, redb::Error>;

/// Bodies by their hash, bounded in bytes and in time.
pub(crate) struct KeyStore {
    database: KeyDatabase,
    lifetime: Duration,
    clock: Clock,
    max_bytes: u64,
}

/// A body and what is known of it.
pub(crate) struct StoredKeys {
    pub(crate) preset: String,
    pub(crate) last_used: Millis,
    /// Whether a query has ever used it.
    pub(crate) is_used: bool,
    pub(crate) body: Vec<u8>,
}

/// An upload of a body: the client, and what is known of it.
#[derive(Default)]
pub(crate) struct KeyUpload<'a> {
    /// The bodies of the same client. If the new body makes them more than the client's share, they make room for it.
    pub(crate) own: &'a [KeyId],
    /// The bytes that the client's bodies count.
    pub(crate) own_bytes: u64,
    /// The most bytes that they may count, unless there is only one.
    pub(crate) share: u64,
    /// The uses by queries that the store does not know of.
    pub(crate) uses: Vec<(KeyId, Millis)>,
}

/// The outcome of a change.
#[derive(Debug, Default)]
pub(crate) struct StoreChange {
    /// Whether a body was added.
    pub(crate) added: bool,
    /// The bodies that were removed to make room.
    pub(crate) evicted: Vec<KeyId>,
    /// The bodies that were removed because no query had used them for long.
    pub(crate) expired: Vec<KeyId>,
    /// The number of bodies after the change.
    pub(crate) keys: u64,
    /// The bytes that all bodies count after the change.
    pub(crate) bytes: u64,
}

pub(crate) fn millis(span: Duration) -> Millis {
    span.as_millis().try_into().unwrap_or(Millis::MAX)
}

impl KeyStore {
    /// Opens or creates the file of the configuration, readable by its owner alone, and checks it; or a store in memory.
    ///
    /// # Errors
    /// [`ServerError::KeyFile`] if the file is damaged, in use by another server, or cannot be opened or created.
    pub(crate) fn open(config: &ServerConfig) -> std::result::Result<KeyStore, ServerError> {
        let path = config.keys_path.as_deref();
        let created = path.filter(|path| !path.exists()).map_or(Ok(()), KeyDatabase::create);
        let opened = created.and_then(|()| KeyDatabase::open(path));
        let store = opened.and_then(|database| KeyStore::of(database, config));
        store.map_err(|error| {
            let path = path.unwrap_or(Path::new("(memory)"));
            ServerError::KeyFile { path: path.to_owned(), reason: advice(&error) }
        })
    }

    /// Opens the file in `path` as [`KeyStore::open`] does, without writing to it, and closes it. Returns whether no other server
    /// uses the file; a file in use is not read.
    ///
    /// # Errors
    /// [`ServerError::KeyFile`] if the file cannot be opened.
    pub(crate) fn try_open(path: &Path, config: &ServerConfig) -> std::result::Result<bool, ServerError> {
        match KeyDatabase::try_open(path).and_then(|database| KeyStore::of(database, config)) {
            Ok(_) => Ok(true),
            Err(error) if is_in_use(&error) => Ok(false),
            Err(error) => Err(ServerError::KeyFile { path: path.to_owned(), reason: advice(&error) }),
        }
    }

    /// Creates a store on a database, and its tables if it has none. Refuses the tables of another program.
    fn of(database: KeyDatabase, config: &ServerConfig) -> Result<KeyStore> {
        let (lifetime, clock) = (config.key_lifetime, config.key_clock.clone());
        let store = KeyStore { database, lifetime, clock, max_bytes: config.max_key_bytes };
        store.change(|_| Ok(()))?;
        Ok(store)
    }

    /// Adds a body. For room, others are evicted: first those of the same client beyond its share, then those that no query has
    /// used, then those used longest ago. A body that is there already lives as long as a new one. Fails if the body never fits.
    pub(crate) fn put(
        &self,
        id: &KeyId,
        preset: &str,
        body: &[u8],
        now: Millis,
        upload: KeyUpload<'_>,
    ) -> std::result::Result<StoreChange, StoreError> {
        let (bytes, max) = (counted(body), self.max_bytes);
        if bytes > max {
            return Err(StoreError::TooLarge { bytes, max });
        }
        let change = self.change(|ledger| {
            let mut change = StoreChange::default();
            for (used, time) in &upload.uses {
                ledger.touch(used, *time, true)?;
            }
            if !ledger.touch(id, now, false)? {
                change.evicted = ledger.make_room_among(upload.own, upload.own_bytes, upload.share, bytes)?;
                while ledger.total + bytes > max
                    && let Some(first) = ledger.first_to_go()?
                {
                    ledger.remove(&first)?;
                    change.evicted.push(first);
                }
                ledger.insert(id, preset, body, now)?;
                change.added = true;
            }
            ledger.report(change)
        })?;
        Ok(change)
    }

    /// Returns a body, whose hash the caller checks; `None` if it is not there or has expired.
    pub(crate) fn get(&self, id: &KeyId, now: Millis) -> Result<Option<StoredKeys>> {
        self.database.with(|database| {
            let transaction = database.begin_read()?;
            let Some(entry) = transaction.open_table(ENTRIES)?.get(id)? else { return Ok(None) };
            let (preset, _, last_used) = entry.value();
            if self.is_expired(last_used, now) {
                return Ok(None);
            }
            let mut body = Vec::new();
            for piece in transaction.open_table(PIECES)?.range((id, 0)..=(id, u32::MAX))? {
                body.extend_from_slice(piece?.1.value());
            }
            let is_used = transaction.open_table(BY_USE)?.get((last_used, id))?.is_some();
            Ok(Some(StoredKeys { preset: preset.to_owned(), last_used, is_used, body }))
        })
    }

    /// Returns whether a body is there.
    pub(crate) fn contains(&self, id: &KeyId, now: Millis) -> Result<bool> {
        self.database.with(|database| {
            let entry = database.begin_read()?.open_table(ENTRIES)?.get(id)?;
            Ok(entry.is_some_and(|entry| !self.is_expired(entry.value().2, now)))
        })
    }

    /// Notes when queries used bodies. Ignores bodies that are not there.
    pub(crate) fn note(&self, uses: &[(KeyId, Millis)]) -> Result<()> {
        self.change(|ledger| uses.iter().try_for_each(|(id, time)| ledger.touch(id, *time, true).map(drop)))
    }

    /// Removes a body that turned out to be unusable.
    pub(crate) fn remove(&self, id: &KeyId) -> Result<StoreChange> {
        self.change(|ledger| {
            ledger.remove(id)?;
            ledger.report(StoreChange::default())
        })
    }

    /// Removes some of the bodies that have expired or exceed a lowered bound. The caller repeats it until nothing changes.
    pub(crate) fn tidy(&self, now: Millis) -> Result<StoreChange> {
        self.change(|ledger| {
            let mut change = StoreChange::default();
            for _ in 0..TIDY_BATCH {
                let mut oldest = ledger.oldest()?.into_iter().flatten();
                let expired = oldest.find(|&(last_used, _)| self.is_expired(last_used, now));
                let (removed, id) = if let Some((_, id)) = expired {
                    (&mut change.expired, id)
                } else if ledger.total > self.max_bytes
                    && let Some(first) = ledger.first_to_go()?
                {
                    (&mut change.evicted, first)
                } else {
                    break;
                };
                ledger.remove(&id)?;
                removed.push(id);
            }
            ledger.report(change)
        })
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> Millis {
        millis(self.clock.date().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
    }

    /// Returns whether a body that was last used at `last_used` has expired at `now`.
    pub(crate) fn is_expired(&self, last_used: Millis, now: Millis) -> bool {
        now.saturating_sub(last_used) > millis(self.lifetime)
    }

    /// Runs `work` in one transaction.
    fn change<T>(&self, work: impl FnOnce(&mut Ledger<'_>) -> Result<T>) -> Result<T> {
        self.database.with(|database| {
            let mut transaction = database.begin_write()?;
            // Strangers choose what is written: a crash must not depend on a checksum that they can forge.
            transaction.set_two_phase_commit(true);
            let outcome = {
                let mut ledger = Ledger::open(&transaction)?;
                let outcome = work(&mut ledger)?;
                ledger.close()?;
                outcome
            };
            transaction.commit()?;
            Ok(outcome)
        })
    }
}

/// The tables inside a transaction.
struct Ledger<'t> {
    entries: Table<'t, &'static KeyId, (&'static str, u64, Millis)>,
    pieces: Table<'t, (&'static KeyId, u32), &'static [u8]>,
    by_use: Table<'t, (Millis, &'static KeyId), u64>,
    unused: Table<'t, (Millis, &'static KeyId), u64>,
    totals: Table<'t, (), u64>,
    total: u64,
}

impl<'t> Ledger<'t> {
    fn open(transaction: &'t WriteTransaction) -> Result<Ledger<'t>> {
        let totals = transaction.open_table(TOTAL)?;
        let total = totals.get(())?.map_or(0, |total| total.value());
        Ok(Ledger {
            entries: transaction.open_table(ENTRIES)?,
            pieces: transaction.open_table(PIECES)?,
            by_use: transaction.open_table(BY_USE)?,
            unused: transaction.open_table(UNUSED)?,
            totals,
            total,
        })
    }

    fn close(mut self) -> Result<()> {
        self.totals.insert((), self.total)?;
        Ok(())
    }

    fn report(&self, change: StoreChange) -> Result<StoreChange> {
        Ok(StoreChange { keys: self.entries.len()?, bytes: self.total, ..change })
    }

    fn insert(&mut self, id: &KeyId, preset: &str, body: &[u8], now: Millis) -> Result<()> {
        let bytes = body.len() as u64;
        for (number, piece) in (0..).zip(body.chunks(PIECE_BYTES)) {
            self.pieces.insert((id, number), piece)?;
        }
        self.entries.insert(id, (preset, bytes, now))?;
        self.unused.insert((now, id), bytes)?;
        self.total += bytes + ENTRY_BYTES;
        Ok(())
    }

    /// Removes a body. Returns whether it was there.
    fn remove(&mut self, id: &KeyId) -> Result<bool> {
        let removed = self.entries.remove(id)?.map(|entry| (entry.value().1, entry.value().2));
        let Some((bytes, last_used)) = removed else { return Ok(false) };
        self.by_use.remove((last_used, id))?;
        self.unused.remove((last_used, id))?;
        self.pieces.retain_in((id, 0)..=(id, u32::MAX), |_, _| false)?;
        self.total = self.total.saturating_sub(bytes + ENTRY_BYTES);
        Ok(true)
    }

    /// Renews the time of a body, for a use by a query or another upload. Returns whether the body is there.
    fn touch(&mut self, id: &KeyId, now: Millis, by_query: bool) -> Result<bool> {
        let entry = self.entries.get(id)?.map(|entry| {
            let (preset, bytes, last_used) = entry.value();
            (preset.to_owned(), bytes, last_used)
        });
        let Some((preset, bytes, last_used)) = entry else { return Ok(false) };
        let now = now.max(last_used);
        let was_used = self.by_use.remove((last_used, id))?.is_some();
        self.unused.remove((last_used, id))?;
        let by_time = if was_used || by_query { &mut self.by_use } else { &mut self.unused };
        by_time.insert((now, id), bytes)?;
        self.entries.insert(id, (preset.as_str(), bytes, now))?;
        Ok(true)
    }

    /// Returns the oldest body of each class: never used, and used.
    fn oldest(&self) -> Result<[Option<(Millis, KeyId)>; 2]> {
        let first = |table: &Table<'_, (Millis, &'static KeyId), u64>| {
            let first = table.first()?;
            Result::Ok(first.map(|(key, _)| (key.value().0, *key.value().1)))
        };
        Ok([first(&self.unused)?, first(&self.by_use)?])
    }

    /// Returns the body that is evicted before all others.
    fn first_to_go(&self) -> Result<Option<KeyId>> {
        Ok(self.oldest()?.into_iter().flatten().next().map(|(_, id)| id))
    }

    /// Removes bodies of `own`, which count `own_bytes`, until `bytes` more are within `share`. Returns which: first those that
    /// no query has used, then those that were used longest ago.
    fn make_room_among(
        &mut self,
        own: &[KeyId],
        mut own_bytes: u64,
        share: u64,
        bytes: u64,
    ) -> Result<Vec<KeyId>> {
        if own_bytes + bytes <= share {
            return Ok(Vec::new());
        }
        let mut in_order = Vec::with_capacity(own.len());
        for id in own {
            let Some((body, time)) = self.entries.get(id)?.map(|entry| (entry.value().1, entry.value().2))
            else {
                continue;
            };
            in_order.push((self.by_use.get((time, id))?.is_some(), time, body + ENTRY_BYTES, *id));
        }
        in_order.sort_unstable();
        let mut removed = Vec::new();
        for (_, _, body, id) in in_order {
            if own_bytes + bytes <= share {
                break;
            }
            self.remove(&id)?;
            own_bytes = own_bytes.saturating_sub(body);
            removed.push(id);
        }
        Ok(removed)
    }
}

/// Returns the bytes that a body counts, its entry included.
pub(crate) fn counted(body: &[u8]) -> u64 {
    body.len() as u64 + ENTRY_BYTES
}

/// Returns whether another process has the file.
fn is_in_use(error: &redb::Error) -> bool {
    matches!(error, redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch)
}

/// Returns the reason of an error of the file, and the remedy.
fn advice(error: &redb::Error) -> String {
    match error {
        error if is_in_use(error) => Wording("another server uses it: give each its own {keys}").to_string(),
        redb::Error::Io(error) if error.kind() != io::ErrorKind::InvalidData => {
            format!("{error}: {}", Wording("choose another file with {keys}"))
        }
        error => damaged(error),
    }
}

/// Returns the reason, and the remedy, for a file that this program cannot have written.
pub(super) fn damaged(reason: impl fmt::Display) -> String {
    format!(
        "it is damaged or no file of keys ({reason}): move it away and start again; clients upload their keys \
         again by themselves"
    )
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::MetadataExt};

    use tempfile::tempdir;

    use super::*;

    const DAY: Millis = 24 * 3600 * 1000;

    fn store(path: Option<&Path>, max_key_bytes: u64) -> std::result::Result<KeyStore, ServerError> {
        let keys_path = path.map(Path::to_owned);
        KeyStore::open(&ServerConfig { keys_path, max_key_bytes, ..ServerConfig::default() })
    }

    fn add(store: &KeyStore, number: u8, bytes: usize, now: Millis) -> StoreChange {
        store.put(&[number; 32], "toy", &vec![number; bytes], now, KeyUpload::default()).unwrap()
    }

    /// Notes that a query uses a body.
    fn touch(store: &KeyStore, number: u8, now: Millis) {
        store.note(&[([number; 32], now)]).unwrap();
    }

    fn numbers(store: &KeyStore, now: Millis) -> Vec<u8> {
        (0..100).filter(|&number| store.contains(&[number; 32], now).unwrap()).collect()
    }

    #[test]
    fn bodies_of_every_length_come_back() {
        let store = store(None, 1 << 30).unwrap();
        let lengths = [1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES, 2_200_000];
        for (number, bytes) in (0..).zip(lengths) {
            assert!(add(&store, number, bytes, 5).added);
        }
        for (number, bytes) in (0..).zip(lengths) {
            let stored = store.get(&[number; 32], 6).unwrap().unwrap();
            assert_eq!((stored.preset.as_str(), stored.last_used), ("toy", 5));
            assert_eq!(stored.body, vec![number; bytes]);
        }
        let change = store.remove(&[5; 32]).unwrap();
        let expected = lengths[..5].iter().map(|&bytes| bytes as u64 + ENTRY_BYTES).sum::<u64>();
        assert_eq!((change.keys, change.bytes), (5, expected));
        assert!(store.get(&[5; 32], 6).unwrap().is_none());
    }

    #[test]
    fn those_used_longest_ago_go_first() {
        let store = store(None, 3 * (100 + ENTRY_BYTES)).unwrap();
        for number in 0..3 {
            assert_eq!(add(&store, number, 100, number.into()).evicted, Vec::<KeyId>::new());
            touch(&store, number, number.into());
        }
        touch(&store, 0, 10);
        assert!(!add(&store, 1, 100, 11).added);
        assert_eq!(add(&store, 3, 100, 12).evicted, [[2; 32]]);
        touch(&store, 3, 12);
        assert_eq!(numbers(&store, 12), [0, 1, 3]);
        // A body that needs the room of several.
        assert_eq!(add(&store, 4, 700, 13).evicted, [[0; 32], [1; 32]]);
        assert_eq!(numbers(&store, 13), [3, 4]);
        let error = store.put(&[5; 32], "toy", &[0; 2000], 14, KeyUpload::default()).unwrap_err();
        assert!(matches!(error, StoreError::TooLarge { bytes: 2512, max: 1836 }));
        assert_eq!(numbers(&store, 14), [3, 4]);
    }

    #[test]
    fn uploads_that_no_query_used_go_first() {
        let store = store(None, 4 * (100 + ENTRY_BYTES)).unwrap();
        for number in 0..4 {
            add(&store, number, 100, number.into());
        }
        touch(&store, 0, 4);
        touch(&store, 1, 5);
        assert!(store.get(&[1; 32], 9).unwrap().unwrap().is_used);
        assert!(!store.get(&[2; 32], 9).unwrap().unwrap().is_used);
        // A second upload is no use.
        assert!(!add(&store, 2, 100, 9).added);
        for (number, goes) in [(10, 3), (11, 2), (12, 10), (13, 11)] {
            assert_eq!(add(&store, number, 100, number.into()).evicted, [[goes; 32]]);
        }
        assert_eq!(numbers(&store, 20), [0, 1, 12, 13]);
    }

    #[test]
    fn uses_count_that_are_told_with_an_upload() {
        let store = store(None, 2 * (100 + ENTRY_BYTES)).unwrap();
        add(&store, 0, 100, 0);
        add(&store, 1, 100, 1);
        let upload = KeyUpload { uses: vec![([0; 32], 2)], ..KeyUpload::default() };
        assert_eq!(store.put(&[2; 32], "toy", &[2; 100], 3, upload).unwrap().evicted, [[1; 32]]);
    }

    #[test]
    fn a_client_with_its_share_makes_room_among_its_own() {
        let entry = 100 + ENTRY_BYTES;
        let store = store(None, 100 * entry).unwrap();
        for number in 0..6 {
            add(&store, number, 100, number.into());
        }
        touch(&store, 1, 7);
        let own = [[1; 32], [4; 32], [3; 32], [77; 32]];
        let evicted = |bytes| {
            let upload = KeyUpload { own: &own, own_bytes: 3 * entry, share: 3 * entry, uses: Vec::new() };
            store.put(&[9; 32], "toy", &vec![9; bytes], 9, upload).unwrap().evicted
        };
        assert_eq!(evicted(100), [[3; 32]]);
        store.remove(&[9; 32]).unwrap();
        // A body that is larger than the share has it alone.
        assert_eq!(evicted(5000), [[4; 32], [1; 32]]);
        assert_eq!(numbers(&store, 9), [0, 2, 5, 9]);
    }

    #[test]
    fn bodies_expire_after_their_last_use() {
        let store = store(None, 1 << 20).unwrap();
        for number in 0..80 {
            add(&store, number, 100, 0);
        }
        touch(&store, 7, 20 * DAY);
        touch(&store, 99, 20 * DAY);
        assert_eq!(numbers(&store, 30 * DAY).len(), 80);
        assert_eq!(numbers(&store, 30 * DAY + 1), [7]);
        assert!(store.get(&[8; 32], 30 * DAY + 1).unwrap().is_none());
        let (first, second) = (store.tidy(31 * DAY).unwrap(), store.tidy(31 * DAY).unwrap());
        assert_eq!(
            (first.expired.len(), second.expired.len(), second.keys),
            (TIDY_BATCH, 79 - TIDY_BATCH, 1)
        );
        assert!(store.tidy(31 * DAY).unwrap().expired.is_empty());
        // A clock that went back makes nothing older.
        assert_eq!(numbers(&store, DAY), [7]);
    }

    #[test]
    fn a_lower_bound_is_kept_after_a_restart() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("keys");
        let first = store(Some(&path), 1 << 20).unwrap();
        for number in 0..5 {
            add(&first, number, 100, number.into());
        }
        drop(first);
        let second = store(Some(&path), 2 * (100 + ENTRY_BYTES)).unwrap();
        assert_eq!(second.tidy(10).unwrap().evicted, [[0; 32], [1; 32], [2; 32]]);
        assert_eq!(numbers(&second, 10), [3, 4]);
    }

    #[test]
    fn what_was_stored_before_a_crash_is_there_after_it() {
        let folder = tempdir().unwrap();
        let (path, image) = (folder.path().join("keys"), folder.path().join("image"));
        let store_before = store(Some(&path), 1 << 30).unwrap();
        for number in 0..10 {
            add(&store_before, number, 150_000, 1);
        }
        // The file that a process leaves behind if it is killed now.
        fs::copy(&path, &image).unwrap();
        let store_after = store(Some(&image), 1 << 30).unwrap();
        assert_eq!(numbers(&store_after, 2), (0..10).collect::<Vec<_>>());
        assert!(!add(&store_after, 3, 150_000, 3).added);
    }

    #[test]
    fn the_disk_holds_hardly_more_than_the_bound() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("keys");
        let max = 64 << 20;
        let store = store(Some(&path), max).unwrap();
        for number in 0..60 {
            add(&store, number, 2_200_000, number.into());
        }
        // The file has holes: it grows in large steps.
        let disk = 512 * fs::metadata(&path).unwrap().blocks();
        assert!(disk < max + max / 4, "{disk} bytes");
    }
}
