//! How much a decoder allocates: an allocator that counts.

use peak_alloc::PeakAlloc;

/// Room for what does not depend on the input: errors, paths, buffers of files.
pub(crate) const FIXED: usize = 1 << 20;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Runs `work`.
///
/// # Panics
/// If more than `limit` bytes, beside those that were before, are allocated at any time, on any thread.
pub(crate) fn bounded<T>(limit: usize, work: impl FnOnce() -> T) -> T {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = work();
    let taken = ALLOCATOR.peak_usage().saturating_sub(before);
    assert!(taken <= limit, "{taken} bytes were allocated, {limit} at most are allowed");
    result
}
