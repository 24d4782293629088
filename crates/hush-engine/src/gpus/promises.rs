//! Memory of a device that its tables take later than when they are loaded.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What a table may take once it is loaded.
#[derive(Debug)]
pub(crate) struct Promise {
    /// Bytes of its largest batches, as many as are under way at once.
    pub(crate) batch: usize,
    /// Bytes of the keys of all clients that may have theirs in memory.
    pub(crate) keys: usize,
}

/// What is promised to the tables that there are: a promise ends when it is dropped.
#[derive(Default)]
pub(crate) struct Promises(Mutex<Vec<Weak<Promise>>>);

impl Promises {
    pub(crate) fn make(&self, promise: Promise) -> Arc<Promise> {
        let promise = Arc::new(promise);
        let mut promises = self.lock();
        promises.retain(|promise| promise.strong_count() > 0);
        promises.push(Arc::downgrade(&promise));
        promise
    }

    /// Bytes of batches: all tables may have theirs at once.
    pub(crate) fn batches(&self) -> usize {
        self.lock().iter().filter_map(Weak::upgrade).map(|promise| promise.batch).sum()
    }

    /// Bytes of keys: as many clients as may have theirs in memory, whichever tables they ask, with the longest keys of all.
    pub(crate) fn keys(&self) -> usize {
        self.lock().iter().filter_map(Weak::upgrade).map(|promise| promise.keys).max().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Promise>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room of a device for one table: what is promised to it. When it is dropped, nothing of the table stays: what the device keeps
/// for later goes back to the driver.
pub(crate) struct Room {
    cuda: Arc<hush_cuda::Cuda>,
    _promise: Arc<Promise>,
}

impl Room {
    pub(crate) fn new(cuda: Arc<hush_cuda::Cuda>, promise: Arc<Promise>) -> Self {
        Self { cuda, _promise: promise }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.cuda.release_unused();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_add_up_and_keys_are_shared() {
        let promises = Promises::default();
        assert_eq!((promises.batches(), promises.keys()), (0, 0));
        let _one = promises.make(Promise { batch: 5, keys: 100 });
        let two = promises.make(Promise { batch: 7, keys: 300 });
        assert_eq!((promises.batches(), promises.keys()), (12, 300));
        drop(two);
        assert_eq!((promises.batches(), promises.keys()), (5, 100));
        let _three = promises.make(Promise { batch: 1, keys: 0 });
        assert_eq!((promises.batches(), promises.keys()), (6, 100));
    }
}
