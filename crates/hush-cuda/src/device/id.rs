//! Which device memory is on.

use std::sync::atomic::{AtomicU64, Ordering};

/// A device, as opened: no other has its number, not even the same GPU opened again, whose work is done in an order of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceId(u64);

impl DeviceId {
    /// Returns an ID that no device has yet.
    pub(super) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
