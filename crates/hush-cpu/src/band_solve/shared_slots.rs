//! The slots of a solution, written by several threads in disjoint columns.

use std::{marker::PhantomData, ops::Range};

/// A row-major matrix of slots, lent to the threads that solve its stripes.
pub(super) struct SharedSlots<'a, S> {
    start: *mut S,
    slots: usize,
    size: usize,
    lent: PhantomData<&'a mut [S]>,
}

// SAFETY: the symbols are reached only through `columns_mut`, whose callers keep their columns disjoint.
unsafe impl<S: Send> Send for SharedSlots<'_, S> {}
// SAFETY: as above.
unsafe impl<S: Send> Sync for SharedSlots<'_, S> {}

impl<'a, S> SharedSlots<'a, S> {
    /// Lends `symbols` as slots of `size` symbols.
    pub(super) fn new(symbols: &'a mut [S], size: usize) -> Self {
        let slots = symbols.len().checked_div(size).unwrap_or(0);
        Self { start: symbols.as_mut_ptr(), slots, size, lent: PhantomData }
    }

    /// Returns symbols `columns` of slot `slot`.
    ///
    /// # Safety
    /// Nothing else may access these columns of the slot while the slice lives.
    #[expect(clippy::mut_from_ref, reason = "disjoint columns are the caller's promise")]
    pub(super) unsafe fn columns_mut(&self, slot: usize, columns: Range<usize>) -> &mut [S] {
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
