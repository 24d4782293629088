//! Memory of a device that its tables take only after they are loaded.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The bytes that are reserved for a table.
#[derive(Debug)]
pub(super) struct Reserved {
    /// The bytes of its largest batches, for as many as are in flight at once.
    pub(super) batch: usize,
    /// The bytes of the keys of all clients that may have theirs in memory.
    pub(super) keys: usize,
}

/// The reservations of all tables on a device. A reservation ends when it is dropped.
#[derive(Default)]
pub(super) struct Reservations(Mutex<Vec<Weak<Reserved>>>);

impl Reservations {
    pub(super) fn make(&self, reserved: Reserved) -> Arc<Reserved> {
        let reserved = Arc::new(reserved);
        let mut all = self.lock();
        all.retain(|reserved| reserved.strong_count() > 0);
        all.push(Arc::downgrade(&reserved));
        reserved
    }

    /// Returns the bytes of batches: all tables may have theirs at once.
    pub(super) fn batches(&self) -> usize {
        self.lock().iter().filter_map(Weak::upgrade).map(|reserved| reserved.batch).sum()
    }

    /// Returns the bytes of keys: as many clients as may have theirs in memory, whichever tables they ask, with the longest keys of
    /// all.
    pub(super) fn keys(&self) -> usize {
        self.lock().iter().filter_map(Weak::upgrade).map(|reserved| reserved.keys).max().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Reserved>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory that a device keeps for one table. When it is dropped, nothing of the table stays: memory that the device keeps for later
/// is returned to the driver.
pub(super) struct KeptMemory {
    pub(super) cuda: Arc<hush_cuda::Cuda>,
    pub(super) _reserved: Arc<Reserved>,
}

impl Drop for KeptMemory {
    fn drop(&mut self) {
        self.cuda.release_unused();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_add_up_and_keys_are_shared() {
        let all = Reservations::default();
        assert_eq!((all.batches(), all.keys()), (0, 0));
        let _one = all.make(Reserved { batch: 5, keys: 100 });
        let two = all.make(Reserved { batch: 7, keys: 300 });
        assert_eq!((all.batches(), all.keys()), (12, 300));
        drop(two);
        assert_eq!((all.batches(), all.keys()), (5, 100));
        let _three = all.make(Reserved { batch: 1, keys: 0 });
        assert_eq!((all.batches(), all.keys()), (6, 100));
    }
}
