//! The slots, written by several threads in disjoint columns.

use std::{marker::PhantomData, ops::Range};

/// A row-major matrix of slots, lent to the threads that solve its stripes.
pub(super) struct SharedSlots<'a> {
    start: *mut u8,
    slots: usize,
    size: usize,
    lent: PhantomData<&'a mut [u8]>,
}

// SAFETY: the bytes are only reached through `columns_mut`, whose callers keep their columns disjoint.
unsafe impl Send for SharedSlots<'_> {}
// SAFETY: as above.
unsafe impl Sync for SharedSlots<'_> {}

impl<'a> SharedSlots<'a> {
    /// `bytes` as slots of `size` bytes.
    pub(super) fn new(bytes: &'a mut [u8], size: usize) -> Self {
        let slots = bytes.len().checked_div(size).unwrap_or(0);
        Self { start: bytes.as_mut_ptr(), slots, size, lent: PhantomData }
    }

    /// Bytes `columns` of slot `slot`.
    ///
    /// # Safety
    /// Nothing else may access these columns of the slot while the slice lives.
    #[expect(clippy::mut_from_ref, reason = "disjoint columns are the caller's promise")]
    pub(super) unsafe fn columns_mut(&self, slot: usize, columns: Range<usize>) -> &mut [u8] {
        assert!(slot < self.slots && columns.start <= columns.end && columns.end <= self.size);
        // SAFETY: the range lies within the borrowed slots (just checked); exclusive by the caller's promise.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.start.add(slot * self.size + columns.start),
                columns.end - columns.start,
            )
        }
    }
}
