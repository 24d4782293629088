//! An open table.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hush_client::{
    Found,
    http::{CallOptions, Cancel, HttpError, HttpTable},
};

use crate::{
    Facts, HushError, Key, Stats,
    thread::{guarded, on_thread},
};

/// A table that can be looked up. Threads may share it: their look-ups come one after another. A look-up that meets a newer epoch
/// fetches it.
#[derive(uniffi::Object)]
pub struct Table {
    name: String,
    open: Arc<Open>,
}

/// The state that look-ups share.
struct Open {
    http: Mutex<HttpTable>,
    /// The facts and stats, apart, so that a caller who asks for them does not wait for a look-up.
    told: Mutex<(Facts, Stats)>,
}

impl Open {
    fn prepare(&self, count: u32) -> Result<u32, HushError> {
        let mut http = held(&self.http);
        let ready = http.prepare(count as usize);
        *held(&self.told) = told(&http);
        Ok(ready? as u32)
    }

    fn look_up(&self, keys: Vec<Key>, cancel: &Cancel) -> Result<Vec<Found>, HushError> {
        let mut http = held(&self.http);
        let descriptor = http.table().descriptor();
        let wanted = keys.into_iter().map(|key| key.wanted(descriptor)).collect::<Result<Vec<_>, _>>();
        let wanted = wanted.map_err(HttpError::from)?;
        let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
        let found = http.lookup_with(&wanted, &options);
        *held(&self.told) = told(&http);
        Ok(found?)
    }
}

fn told(http: &HttpTable) -> (Facts, Stats) {
    (http.table().into(), http.stats())
}

/// Locks a mutex, even a poisoned one: a failed look-up leaves a state from which the next one can begin.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the value of the only key.
fn only(found: Vec<Found>) -> Found {
    found.into_iter().next().flatten()
}

impl Table {
    pub(crate) fn new(http: HttpTable) -> Arc<Self> {
        let name = http.name().to_owned();
        let told = Mutex::new(told(&http));
        Arc::new(Self { name, open: Arc::new(Open { http: Mutex::new(http), told }) })
    }
}

#[uniffi::export]
impl Table {
    /// Returns the value of a key, or nothing if the table has no such key. The server learns neither the key, nor whether it was
    /// found. Throws an error if the key does not fit the table, or a request fails.
    pub async fn get(&self, key: Key) -> Result<Option<Vec<u8>>, HushError> {
        Ok(only(self.get_many(vec![key]).await?))
    }

    /// Returns the values of several keys, in the order of the keys, all from one epoch. The server learns how many keys there are.
    /// Throws the errors of `get`.
    pub async fn get_many(&self, keys: Vec<Key>) -> Result<Vec<Option<Vec<u8>>>, HushError> {
        let open = self.open.clone();
        on_thread(move |cancel| open.look_up(keys, cancel)).await
    }

    /// Prepares queries, so that up to `count` are ready and take less time when they are asked. Works in tables of simple, frodo
    /// and double. Each query serves one look-up; together they take at most 256 MiB. Returns the number that is ready. Throws an
    /// error if the table's protocol prepares nothing.
    pub async fn prepare(&self, count: u32) -> Result<u32, HushError> {
        let open = self.open.clone();
        on_thread(move |_| open.prepare(count)).await
    }

    /// Looks a record up like `get`, and blocks. Throws the same errors.
    pub fn get_blocking(&self, key: Key) -> Result<Option<Vec<u8>>, HushError> {
        Ok(only(self.get_many_blocking(vec![key])?))
    }

    /// Looks records up like `getMany`, and blocks. Throws the same errors.
    pub fn get_many_blocking(&self, keys: Vec<Key>) -> Result<Vec<Option<Vec<u8>>>, HushError> {
        guarded(|| self.open.look_up(keys, &Cancel::default()))
    }

    /// Returns the name of the table on the server.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Returns the facts of the table.
    pub fn facts(&self) -> Facts {
        held(&self.open.told).0.clone()
    }

    /// Returns the cost of the table since it was opened.
    pub fn stats(&self) -> Stats {
        held(&self.open.told).1
    }
}
