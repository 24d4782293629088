//! How much a decoder allocates: an allocator that counts.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Room for what does not depend on the input: errors, paths, buffers of files.
pub(crate) const FIXED: usize = 1 << 20;

/// Bytes that are allocated, and the most that were since it was last set.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

impl Counting {
    fn add(bytes: usize) {
        let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
        if live > MOST.load(Relaxed) {
            MOST.fetch_max(live, Relaxed);
        }
    }

    fn remove(bytes: usize) {
        LIVE.fetch_sub(bytes, Relaxed);
    }
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::remove(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::add(size);
        // SAFETY: as the caller promises.
        let pointer = unsafe { System.realloc(pointer, layout, size) };
        Self::remove(layout.size());
        pointer
    }
}

/// Runs `work`.
///
/// # Panics
/// If more than `limit` bytes, beside those that were before, are allocated at any time, on any thread.
pub(crate) fn bounded<T>(limit: usize, work: impl FnOnce() -> T) -> T {
    let before = LIVE.load(Relaxed);
    MOST.store(before, Relaxed);
    let result = work();
    let taken = MOST.load(Relaxed).saturating_sub(before);
    assert!(taken <= limit, "{taken} bytes were allocated, {limit} at most are allowed");
    result
}
