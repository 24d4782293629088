//! Evaluation keys of clients: uploaded once, named by their hash, kept until nobody uses them.
//!
//! | file | what |
//! |------|------|
//! | `database.rs` | a database that is opened again after its file has failed |
//! | `store.rs` | uploaded bodies on disk, bounded in bytes and in time |
//! | `trial.rs` | the file as it would be opened, with nothing written to it |
//! | `uploaders.rs` | who uploaded what, so that each has a share |
//! | `opened.rs` | keys that are ready for the engine, bounded in number |

mod database;
mod opened;
mod store;
mod trial;
mod uploaders;

use std::{
    collections::HashMap,
    convert::Infallible,
    fs, mem,
    path::{Path, PathBuf},
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::body::Bytes;
use hush_engine::{ClientKeys, Engine, EngineError, KeySpec};
use hush_protocol::wire::{self, WireError};
use parking_lot::Mutex;
use tokio::{sync::Semaphore, task::spawn_blocking};

pub(crate) use database::PAUSE as STORE_PAUSE;
pub(crate) use opened::OpenedKeys;
pub(crate) use store::KeyId;

use self::{
    opened::OpenedCache,
    store::{KeyStore, KeyUpload, Millis, StoreChange, StoreError, counted, millis},
    uploaders::Uploaders,
};
use crate::{
    access::client::ClientAddress,
    config::ServerConfig,
    error::ServerError,
    queue::limits::Reservation,
    state::{ResidentTable, Server},
    upkeep::Background,
};

/// The number of keys that are read, checked or written at once.
const AT_ONCE: usize = 4;
/// The interval at which expired keys are removed, and the longest delay with which a use is noted.
const HOUR: Duration = Duration::from_secs(3600);
/// The time after which keys that are used are noted again while the store is nearly full. A client that asks now
/// must not look like one that has not asked for an hour.
const NEARLY_FULL_NOTE_AFTER: Millis = 1000;

/// Why keys were not found or not taken.
#[derive(Debug)]
pub(crate) enum KeyError {
    /// The keys are not here, or not any more.
    NotFound,
    /// The keys belong to another parameter set than the table.
    OtherPreset,
    /// Queries hold as many keys as may be in memory.
    NoPlace,
    /// The body has another hash than its address.
    Mismatch,
    /// The body is malformed.
    Wire(WireError),
    /// No resident table has this parameter set. `served` are the sets of resident tables.
    UnknownPreset { served: Vec<String> },
    /// The body has another length than keys of the parameter set.
    Length { expected: usize, actual: usize },
    /// The engine refuses the keys.
    Refused { reason: String },
    /// The keys are larger than the store.
    TooLarge { max: u64 },
    /// The store's file has failed and will be opened again; the log says how.
    Unavailable,
    /// The store or the engine failed; the log says how.
    Internal,
    /// The GPU of the tables that need them has failed for good.
    DeviceLost,
}

/// The store of keys and the keys in memory.
pub(crate) struct Keys {
    store: KeyStore,
    opened: OpenedCache,
    /// The semaphore that limits the work on blocking threads to [`AT_ONCE`].
    work: Arc<Semaphore>,
    uploaders: Mutex<Uploaders>,
    uses: Mutex<Uses>,
    /// The age at which the last use that the store knows of is renewed: most queries write nothing.
    note_after: Millis,
    /// The bytes in the store at which it is nearly full.
    nearly_full: u64,
    /// The bytes in the store.
    bytes: AtomicU64,
}

/// Uses by queries that the store does not know of yet.
#[derive(Default)]
struct Uses {
    waiting: HashMap<KeyId, Millis>,
    /// Whether a task is telling the store, and will look here again.
    busy: bool,
}

impl Keys {
    /// Opens the store. Fails with [`ServerError::KeyFile`] as [`KeyStore::open`] does.
    pub(crate) async fn open(config: &ServerConfig) -> Result<Keys, ServerError> {
        if let Some(path) = &config.keys_path {
            tracing::info!(path = %path.display(), "checking the evaluation keys of clients");
        }
        let opened = config.clone();
        let store = spawn_blocking(move || KeyStore::open(&opened)).await.unwrap_or_else(|_| {
            let path = config.keys_path.as_deref().unwrap_or(Path::new("(memory)")).to_owned();
            Err(ServerError::KeyFile { path, reason: store::damaged("reading it panicked") })
        })?;
        Ok(Keys {
            store,
            opened: OpenedCache::new(config.open_keys),
            work: Arc::new(Semaphore::new(AT_ONCE)),
            uploaders: Mutex::default(),
            uses: Mutex::default(),
            note_after: millis(HOUR.min(config.key_lifetime / 24)),
            nearly_full: config.max_key_bytes / 4 * 3,
            bytes: AtomicU64::new(0),
        })
    }

    /// Opens the file that the configuration names as [`Keys::open`] does, and closes it. The file is neither created nor
    /// changed. Returns whether no other server uses the file; a file in use is not read.
    ///
    /// # Errors
    /// [`ServerError::KeyFile`] if the file cannot be opened or created.
    pub(crate) fn check(config: &ServerConfig) -> Result<bool, ServerError> {
        let Some(path) = &config.keys_path else { return Ok(true) };
        if path.exists() {
            return KeyStore::try_open(path, config);
        }
        // The check creates and removes another file in the same folder, so that a file that a server creates meanwhile stays.
        let mut trial = path.clone().into_os_string();
        trial.push(format!(".{}", process::id()));
        let keys_path = Some(PathBuf::from(trial));
        let tried = KeyStore::open(&ServerConfig { keys_path: keys_path.clone(), ..config.clone() });
        if tried.is_ok() {
            let _ = keys_path.map(fs::remove_file);
        }
        tried.map(|_| true).map_err(|error| match error {
            ServerError::KeyFile { reason, .. } => ServerError::KeyFile { path: path.clone(), reason },
            error => error,
        })
    }

    /// Returns the current age at which the last use that the store knows of is renewed.
    fn note_after(&self) -> Millis {
        let is_nearly_full = self.bytes.load(Ordering::Relaxed) >= self.nearly_full;
        if is_nearly_full { self.note_after.min(NEARLY_FULL_NOTE_AFTER) } else { self.note_after }
    }

    /// Returns the keys `id` if they are in memory, opened on the devices of `spec`, and have not expired.
    fn in_memory(&self, id: &KeyId, spec: &KeySpec, now: Millis) -> Option<Arc<OpenedKeys>> {
        let opened = self.opened.get(id, &spec.devices)?;
        if self.store.is_expired(opened.noted(), now) {
            self.opened.remove(&[*id]);
            return None;
        }
        Some(opened)
    }
}

/// Returns the keys `id` for queries of `table`, from memory or from the store. Fails if they are not found, of another parameter
/// set, or unusable, or if queries hold all slots.
pub(crate) async fn find(
    server: &Arc<Server>,
    table: &ResidentTable,
    spec: &KeySpec,
    id: &KeyId,
) -> Result<Arc<OpenedKeys>, KeyError> {
    let keys = &server.keys;
    let now = keys.store.now();
    let opened = match keys.in_memory(id, spec, now) {
        Some(opened) => opened,
        None => {
            let server = server.clone();
            let engine = table.engine.clone();
            let spec = spec.clone();
            let id = *id;
            blocking(keys, move || load(&server, &*engine, &spec, &id, now)).await?
        }
    };
    if opened.spec.preset != spec.preset {
        return Err(KeyError::OtherPreset);
    }
    note_use(server, id, &opened, now);
    Ok(opened)
}

/// Reads keys from the store and opens them. Damaged keys are removed, and the client uploads them again. Fails as [`find`] does.
fn load(
    server: &Server,
    engine: &dyn Engine,
    spec: &KeySpec,
    id: &KeyId,
    now: Millis,
) -> Result<Arc<OpenedKeys>, KeyError> {
    let keys = &server.keys;
    // Another query of the same client may have been first.
    if let Some(opened) = keys.in_memory(id, spec, now) {
        return Ok(opened);
    }
    let Some(stored) = keys.store.get(id, now).map_err(failed)? else {
        server.metrics.key_misses.inc();
        return Err(KeyError::NotFound);
    };
    if stored.preset != spec.preset {
        return Err(KeyError::OtherPreset);
    }
    let permit = keys.opened.permit().ok_or(KeyError::NoPlace)?;
    let checked = if blake3::hash(&stored.body) == *id {
        open(server, engine, &stored.body)
    } else {
        Err(KeyError::Mismatch)
    };
    match checked {
        Ok(client_keys) => {
            let opened = OpenedKeys::new(client_keys, spec, (stored.last_used, stored.is_used), permit);
            Ok(keys.opened.insert(*id, opened))
        }
        Err(error @ (KeyError::Internal | KeyError::DeviceLost)) => Err(error),
        Err(reason) => {
            tracing::warn!(?reason, "removed evaluation keys that fit no table any more");
            change_store(server, |uploaders| {
                uploaders.remove(&[*id]);
                keys.store.remove(id).map_err(failed)
            })?;
            server.metrics.key_misses.inc();
            Err(KeyError::NotFound)
        }
    }
}

/// Checks uploaded keys and stores them. Returns whether they are new. `memory` is the reservation of `body`. Fails if the keys
/// do not match `id`, or no table takes them, or the store fails.
pub(crate) async fn upload(
    server: &Arc<Server>,
    client: ClientAddress,
    id: KeyId,
    body: Bytes,
    memory: Reservation,
) -> Result<bool, KeyError> {
    let shared = server.clone();
    blocking(&server.keys, move || {
        // The body is in memory until this is done, even if the client goes.
        let _memory = memory;
        accept(&shared, client, &id, &body)
    })
    .await
}

/// Checks uploaded keys, stores them, and keeps them in memory if a slot is free. Returns whether they are new.
fn accept(server: &Server, client: ClientAddress, id: &KeyId, body: &Bytes) -> Result<bool, KeyError> {
    if blake3::hash(body) != *id {
        return Err(KeyError::Mismatch);
    }
    let preset = wire::decode_keys(body.clone()).map_err(KeyError::Wire)?.preset;
    let takers = server.tables.with_keys();
    // A table whose GPU has failed can open no keys, and is asked only if there is no other.
    let of_preset = takers.iter().filter(|(spec, _)| spec.preset == preset);
    let Some((spec, engine)) = of_preset.min_by_key(|(_, engine)| engine.lost().is_some()) else {
        let mut served: Vec<String> = takers.into_iter().map(|(spec, _)| spec.preset).collect();
        served.sort();
        served.dedup();
        return Err(KeyError::UnknownPreset { served });
    };
    if body.len() != spec.bytes {
        return Err(KeyError::Length { expected: spec.bytes, actual: body.len() });
    }
    let client_keys = open(server, &**engine, body)?;
    let now = server.keys.store.now();
    let change = change_store(server, |uploaders| put(server, uploaders, client, id, &preset, body, now))?;
    server.metrics.key_uploads.inc();
    // The client asks next. Without a slot, its first query opens the keys once more.
    if let Some(permit) = server.keys.opened.permit() {
        server.keys.opened.insert(*id, OpenedKeys::new(client_keys, spec, (now, false), permit));
    }
    Ok(change.added)
}

/// Stores keys of `client`. If the client has its share already, its own keys make room for them.
fn put(
    server: &Server,
    uploaders: &mut Uploaders,
    client: ClientAddress,
    id: &KeyId,
    preset: &str,
    body: &[u8],
    now: Millis,
) -> Result<StoreChange, KeyError> {
    let keys = &server.keys;
    let (own, own_bytes) = uploaders.of(client);
    let share = server.config.share_of(server.config.max_key_bytes as usize) as u64;
    let uses = mem::take(&mut keys.uses.lock().waiting).into_iter().collect();
    let change =
        keys.store.put(id, preset, body, now, KeyUpload { own, own_bytes, share, uses }).map_err(failed)?;
    if change.added {
        uploaders.add(client, *id, counted(body));
    }
    Ok(change)
}

/// Applies a change to the store. Changes are made one at a time, each recorded before the next. So two uploads of one client
/// both count, and the metrics tell the state after the last change.
fn change_store(
    server: &Server,
    change: impl FnOnce(&mut Uploaders) -> Result<StoreChange, KeyError>,
) -> Result<StoreChange, KeyError> {
    let mut uploaders = server.keys.uploaders.lock();
    let change = change(&mut uploaders)?;
    uploaders.remove(&change.evicted);
    uploaders.remove(&change.expired);
    record(server, &change);
    Ok(change)
}

/// Opens keys for the engine. Fails if the engine refuses them, has lost its GPU, or fails.
fn open(server: &Server, engine: &dyn Engine, body: &[u8]) -> Result<ClientKeys, KeyError> {
    engine.open_keys(body).map_err(|error| match error {
        EngineError::Keys { reason } => KeyError::Refused { reason },
        EngineError::Lost { reason } => {
            server.tell_lost(&reason);
            KeyError::DeviceLost
        }
        error => {
            tracing::error!(%error, "cannot open evaluation keys");
            KeyError::Internal
        }
    })
}

/// Returns whether the store has the keys `id`.
pub(crate) async fn contains(server: &Arc<Server>, id: KeyId) -> Result<bool, KeyError> {
    let shared = server.clone();
    blocking(&server.keys, move || {
        let store = &shared.keys.store;
        store.contains(&id, store.now()).map_err(failed)
    })
    .await
}

/// Removes expired keys, now and every hour.
pub(crate) async fn tidy_up(server: Arc<Server>) -> Infallible {
    let mut hours = tokio::time::interval(HOUR);
    loop {
        hours.tick().await;
        while let Ok(true) = tidy_some(&server).await {}
    }
}

/// Removes some expired keys. Returns whether there were any.
async fn tidy_some(server: &Arc<Server>) -> Result<bool, KeyError> {
    let shared = server.clone();
    blocking(&server.keys, move || {
        let store = &shared.keys.store;
        let change = change_store(&shared, |_| store.tidy(store.now()).map_err(failed))?;
        Ok(!change.expired.is_empty() || !change.evicted.is_empty())
    })
    .await
}

/// Brings the keys in memory and the metrics in line with the store.
fn record(server: &Server, change: &StoreChange) {
    server.keys.opened.remove(&change.evicted);
    server.keys.opened.remove(&change.expired);
    server.keys.bytes.store(change.bytes, Ordering::Relaxed);
    let metrics = &server.metrics;
    metrics.keys_evicted.inc_by(change.evicted.len() as u64);
    metrics.keys_expired.inc_by(change.expired.len() as u64);
    metrics.keys.set(change.keys as i64);
    metrics.key_bytes.set(change.bytes as i64);
}

/// Tells the store of a use by a query, unless the store knows of a recent one. Nobody waits for it: uses that come meanwhile are
/// written together next.
fn note_use(server: &Arc<Server>, id: &KeyId, opened: &OpenedKeys, now: Millis) {
    if !opened.is_to_be_noted(now, server.keys.note_after()) {
        return;
    }
    let mut uses = server.keys.uses.lock();
    uses.waiting.insert(*id, now);
    if !mem::replace(&mut uses.busy, true) {
        let server = server.clone();
        let upkeep = server.tables.upkeep().clone();
        spawn_blocking(move || upkeep.keep_thread(Background::Keys, || tell_store(&server.keys)));
    }
}

/// Tells the store of uses until there are none.
fn tell_store(keys: &Keys) {
    loop {
        let told: Vec<_> = {
            let mut uses = keys.uses.lock();
            uses.busy = !uses.waiting.is_empty();
            if !uses.busy {
                return;
            }
            uses.waiting.drain().collect()
        };
        if let Err(error) = keys.store.note(&told) {
            tracing::warn!(%error, "cannot write when evaluation keys were used last");
        }
    }
}

/// Runs `work` on a blocking thread, at most [`AT_ONCE`] at a time. A panic fails with [`KeyError::Internal`].
async fn blocking<T: Send + 'static>(
    keys: &Keys,
    work: impl FnOnce() -> Result<T, KeyError> + Send + 'static,
) -> Result<T, KeyError> {
    let permit = keys.work.clone().acquire_owned().await.expect("the semaphore is never closed");
    spawn_blocking(move || {
        let _permit = permit;
        work()
    })
    .await
    .unwrap_or_else(|_| {
        tracing::error!("a panic while evaluation keys were handled; the log has it above");
        Err(KeyError::Internal)
    })
}

fn failed(error: impl Into<StoreError>) -> KeyError {
    match error.into() {
        StoreError::TooLarge { max, .. } => KeyError::TooLarge { max },
        StoreError::File(error) => {
            tracing::error!(%error, "cannot read or write the file of evaluation keys");
            if database::has_failed(&error) { KeyError::Unavailable } else { KeyError::Internal }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::{
        http::{StatusCode, header::RETRY_AFTER},
        response::IntoResponse,
    };

    use super::*;
    use crate::problem::Problem;

    #[test]
    fn clients_are_told_to_come_back_when_the_file_has_failed() {
        let errors = [
            redb::Error::PreviousIo,
            redb::Error::DatabaseClosed,
            redb::Error::Io(std::io::ErrorKind::StorageFull.into()),
        ];
        for error in errors {
            let response = Problem::stored_keys(failed(error)).into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers()[RETRY_AFTER], "10");
        }
        let response = Problem::stored_keys(failed(redb::Error::Corrupted("a page".into()))).into_response();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
