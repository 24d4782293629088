//! The identity of a device, by which memory names its device.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of an opened device. It is unique: the same GPU, opened again, has another number and its own order of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceId(u64);

impl DeviceId {
    /// Returns an ID that no device has yet.
    pub(super) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
