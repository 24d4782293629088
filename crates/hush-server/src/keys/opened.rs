//! Keys that are ready for the engine: a bounded number, the last used ones.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use hush_engine::{ClientKeys, Device, KeySpec};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::store::{KeyId, Millis};

/// The keys of a client in memory. Queries that wait for a scan hold the keys that they name.
pub(crate) struct OpenedKeys {
    pub(crate) keys: ClientKeys,
    /// The parameter set of the keys.
    pub(crate) spec: KeySpec,
    /// The time of the last use that the store knows of.
    noted: AtomicU64,
    /// Whether the store knows that a query has used the keys.
    is_used: AtomicBool,
    _permit: Permit,
}

/// A slot for one [`OpenedKeys`], free again when the last query that uses the keys is answered.
pub(super) struct Permit(#[expect(dead_code, reason = "held, not used")] OwnedSemaphorePermit);

/// The keys in memory. However many queries with different keys wait, there are never more keys than slots.
pub(super) struct OpenedCache {
    places: Arc<Semaphore>,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// The opened keys. All tables on the same devices share them.
    by_id: HashMap<(KeyId, Arc<[Device]>), CachedKeys>,
    /// Counts uses.
    clock: u64,
}

struct CachedKeys {
    opened: Arc<OpenedKeys>,
    last_use: u64,
}

impl OpenedKeys {
    /// Creates opened keys of `spec`. `noted` is the time of the last use that the store knows of, and `is_used` whether a query
    /// made it.
    pub(super) fn new(
        keys: ClientKeys,
        spec: &KeySpec,
        (noted, is_used): (Millis, bool),
        permit: Permit,
    ) -> Arc<OpenedKeys> {
        Arc::new(OpenedKeys {
            keys,
            spec: spec.clone(),
            noted: noted.into(),
            is_used: is_used.into(),
            _permit: permit,
        })
    }

    /// Returns whether the store must be told of a use by a query at `now`, and takes it as told. The store need not be told if
    /// it knows of a use by a query within the last `note_after`.
    pub(super) fn is_to_be_noted(&self, now: Millis, note_after: Millis) -> bool {
        if self.is_used.load(Ordering::Relaxed) && now.saturating_sub(self.noted()) < note_after {
            return false;
        }
        self.noted.store(now, Ordering::Relaxed);
        self.is_used.store(true, Ordering::Relaxed);
        true
    }

    pub(super) fn noted(&self) -> Millis {
        self.noted.load(Ordering::Relaxed)
    }
}

impl OpenedCache {
    pub(super) fn new(places: usize) -> OpenedCache {
        let places = Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
        OpenedCache { places, entries: Mutex::default() }
    }

    /// Returns the keys `id`, opened on `devices`.
    pub(super) fn get(&self, id: &KeyId, devices: &Arc<[Device]>) -> Option<Arc<OpenedKeys>> {
        let mut entries = self.entries.lock();
        entries.clock += 1;
        let now = entries.clock;
        let entry = entries.by_id.get_mut(&(*id, devices.clone()))?;
        entry.last_use = now;
        Some(entry.opened.clone())
    }

    /// Allocates a slot. If none is free, evicts the keys that were used longest ago and that no query holds. Returns `None` if
    /// queries hold all keys.
    pub(super) fn permit(&self) -> Option<Permit> {
        loop {
            if let Ok(permit) = self.places.clone().try_acquire_owned() {
                return Some(Permit(permit));
            }
            drop(self.remove_oldest()?);
        }
    }

    /// Removes the keys that were used longest ago and that no query holds. The caller drops them, without the
    /// lock: the backend may have to wait for that.
    fn remove_oldest(&self) -> Option<CachedKeys> {
        let mut entries = self.entries.lock();
        let idle = entries.by_id.iter().filter(|(_, entry)| Arc::strong_count(&entry.opened) == 1);
        let oldest = idle.min_by_key(|(_, entry)| entry.last_use).map(|(id, _)| id.clone())?;
        entries.by_id.remove(&oldest)
    }

    /// Adds keys, unless keys with this ID are there on the same devices. Returns the keys that are there.
    pub(super) fn insert(&self, id: KeyId, opened: Arc<OpenedKeys>) -> Arc<OpenedKeys> {
        let mut entries = self.entries.lock();
        entries.clock += 1;
        let last_use = entries.clock;
        entries
            .by_id
            .entry((id, opened.spec.devices.clone()))
            .or_insert(CachedKeys { opened, last_use })
            .opened
            .clone()
    }

    /// Removes keys, on all devices.
    pub(super) fn remove(&self, ids: &[KeyId]) {
        let mut entries = self.entries.lock();
        let removed: Vec<_> = entries.by_id.extract_if(|(id, _), _| ids.contains(id)).collect();
        drop(entries);
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: Device = Device::Cpu;
    const GPU: Device = Device::Gpu(0);

    fn on(device: Device) -> Arc<[Device]> {
        Arc::new([device])
    }

    fn open_on(cache: &OpenedCache, id: u8, device: Device) -> Option<Arc<OpenedKeys>> {
        let spec = KeySpec { preset: "toy".into(), bytes: 1, devices: on(device) };
        let keys = ClientKeys { devices: on(device), keys: Arc::new(id) };
        let opened = OpenedKeys::new(keys, &spec, (0, true), cache.permit()?);
        Some(cache.insert([id; 32], opened))
    }

    fn open(cache: &OpenedCache, id: u8) -> Option<Arc<OpenedKeys>> {
        open_on(cache, id, CPU)
    }

    #[test]
    fn a_use_is_noted_once_in_a_while() {
        let cache = OpenedCache::new(1);
        let spec = KeySpec { preset: "toy".into(), bytes: 1, devices: on(CPU) };
        let keys = ClientKeys { devices: on(CPU), keys: Arc::new(1) };
        let opened = OpenedKeys::new(keys, &spec, (100, false), cache.permit().unwrap());
        let told = [100, 109, 110, 119, 131].map(|now| opened.is_to_be_noted(now, 10));
        assert_eq!(told, [true, false, true, false, true], "the first use, then after 10 ms each");
        assert_eq!(opened.noted(), 131);
    }

    #[test]
    fn the_keys_used_longest_ago_make_room() {
        let cache = OpenedCache::new(2);
        assert!(open(&cache, 1).is_some() && open(&cache, 2).is_some());
        assert!(cache.get(&[1; 32], &on(CPU)).is_some());
        assert!(open(&cache, 3).is_some());
        assert!(cache.get(&[2; 32], &on(CPU)).is_none());
        assert!(cache.get(&[1; 32], &on(CPU)).is_some() && cache.get(&[3; 32], &on(CPU)).is_some());
    }

    #[test]
    fn keys_that_queries_hold_keep_their_places() {
        let cache = OpenedCache::new(2);
        let first = open(&cache, 1);
        let second = open(&cache, 2);
        assert!(open(&cache, 3).is_none());
        assert!(cache.get(&[1; 32], &on(CPU)).is_some() && cache.get(&[2; 32], &on(CPU)).is_some());
        // Removed from the cache, but still in use: the place is not free.
        cache.remove(&[[1; 32]]);
        assert!(open(&cache, 3).is_none());
        drop(first);
        assert!(open(&cache, 3).is_some());
        drop(second);
        assert!(open(&cache, 4).is_some());
    }

    #[test]
    fn the_first_of_two_that_open_the_same_keys_stays() {
        let cache = OpenedCache::new(2);
        let first = open(&cache, 1).unwrap();
        let again = open(&cache, 1).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert!(open(&cache, 2).is_some());
    }

    #[test]
    fn keys_are_opened_for_each_device() {
        let cache = OpenedCache::new(3);
        let on_cpu = open(&cache, 1).unwrap();
        assert!(cache.get(&[1; 32], &on(GPU)).is_none(), "opened elsewhere");
        let on_gpu = open_on(&cache, 1, GPU).unwrap();
        let on_other = open_on(&cache, 1, Device::Gpu(1)).unwrap();
        assert!(!Arc::ptr_eq(&on_cpu, &on_gpu) && !Arc::ptr_eq(&on_gpu, &on_other));
        for (device, opened) in [(CPU, &on_cpu), (GPU, &on_gpu), (Device::Gpu(1), &on_other)] {
            assert!(Arc::ptr_eq(&cache.get(&[1; 32], &on(device)).unwrap(), opened));
        }
        cache.remove(&[[1; 32]]);
        assert!([CPU, GPU, Device::Gpu(1)].iter().all(|&device| cache.get(&[1; 32], &on(device)).is_none()));
    }
}
