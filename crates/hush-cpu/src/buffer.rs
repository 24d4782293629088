//! Memory for kernels: aligned to cache lines, and on huge pages if it is large.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    ops::{Deref, DerefMut},
    ptr::NonNull,
};

/// The size in bytes of a cache line, and of the widest vector.
const LINE: usize = 64;
/// The size in bytes of a huge page of x86-64.
const HUGE_PAGE: usize = 2 << 20;

/// An integer type for which all bit patterns, including all zeros, are values.
pub trait Word: Copy + Send + Sync + sealed::Sealed {}

impl Word for u8 {}
impl Word for i32 {}
impl Word for u32 {}
impl Word for u64 {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u8 {}
    impl Sealed for i32 {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// A fixed-length buffer, aligned to 64 bytes. From 2 MiB on it is aligned to huge pages, and the kernel is asked to
/// use them. Without them a streaming kernel spends a tenth of its time on address translation.
pub struct AlignedBuffer<T: Word> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: the buffer owns its memory, and its integers are Send and Sync.
unsafe impl<T: Word> Send for AlignedBuffer<T> {}
// SAFETY: as above; shared access only reads.
unsafe impl<T: Word> Sync for AlignedBuffer<T> {}

impl<T: Word> AlignedBuffer<T> {
    /// Allocates a buffer of `len` zeros.
    ///
    /// # Panics
    /// If `len` words exceed the address space.
    pub fn zeroed(len: usize) -> Self {
        let mut buffer = UnwrittenBuffer::<T>::new(len);
        // SAFETY: the buffer has room for `len` words, all of which are written here.
        unsafe {
            buffer.as_mut_ptr().write_bytes(0, len);
            buffer.assume_written()
        }
    }

    fn layout(len: usize) -> Layout {
        let bytes = len.checked_mul(size_of::<T>()).expect("the buffer fits the address space");
        let align = if bytes >= HUGE_PAGE { HUGE_PAGE } else { LINE };
        Layout::from_size_align(bytes, align).expect("the buffer fits the address space")
    }
}

/// An [`AlignedBuffer`] before it is written.
pub(crate) struct UnwrittenBuffer<T: Word>(AlignedBuffer<T>);

impl<T: Word> From<AlignedBuffer<T>> for UnwrittenBuffer<T> {
    /// Takes a buffer whose content does not matter.
    fn from(buffer: AlignedBuffer<T>) -> Self {
        Self(buffer)
    }
}

impl<T: Word> UnwrittenBuffer<T> {
    /// Allocates uninitialised memory for `len` words.
    ///
    /// # Panics
    /// If `len` words exceed the address space.
    pub(crate) fn new(len: usize) -> Self {
        let layout = AlignedBuffer::<T>::layout(len);
        if layout.size() == 0 {
            return Self(AlignedBuffer { start: NonNull::dangling(), len });
        }
        // SAFETY: the layout has a size above 0.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        if layout.size() >= HUGE_PAGE {
            // The advice precedes every write, as the first touch picks the page size.
            // SAFETY: the range was just allocated.
            unsafe { advise_huge_range(start.as_ptr(), layout.size()) };
        }
        Self(AlignedBuffer { start: start.cast(), len })
    }

    /// Returns a pointer to the first word.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.0.start.as_ptr()
    }

    /// Returns the buffer.
    ///
    /// # Safety
    /// All words have been written, here or in the buffer that this was made from.
    pub(crate) unsafe fn assume_written(self) -> AlignedBuffer<T> {
        self.0
    }
}

impl<T: Word> Drop for AlignedBuffer<T> {
    fn drop(&mut self) {
        let layout = Self::layout(self.len);
        if layout.size() > 0 {
            // SAFETY: allocated in `UnwrittenBuffer::new` with this layout.
            unsafe { dealloc(self.start.as_ptr().cast(), layout) };
        }
    }
}

impl<T: Word> Deref for AlignedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `start` points to `len` initialised words that this buffer owns.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Word> DerefMut for AlignedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Word> AsRef<[T]> for AlignedBuffer<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

/// Allocates a vector of `len` zeros, on huge pages as far as it covers them.
pub(crate) fn zeroed_vec(len: usize) -> Vec<u32> {
    let words = vec![0; len];
    advise_huge(&words);
    words
}

/// Allocates an empty vector with a capacity of `len` words, on huge pages as far as it covers them.
pub(crate) fn empty_vec<T: Word>(len: usize) -> Vec<T> {
    let words = Vec::with_capacity(len);
    advise_huge(&words);
    words
}

/// Asks for huge pages for the memory of `words`.
fn advise_huge<T: Word>(words: &Vec<T>) {
    let first = words.as_ptr().addr();
    let end = (first + words.capacity() * size_of::<T>()) / HUGE_PAGE * HUGE_PAGE;
    let start = first.next_multiple_of(HUGE_PAGE);
    if start < end {
        // SAFETY: the range lies within the vector.
        unsafe { advise_huge_range(start as *mut u8, end - start) };
    }
}

/// Asks for huge pages for a range of memory. Systems other than Linux choose the pages themselves.
///
/// # Safety
/// The range is allocated.
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
unsafe fn advise_huge_range(start: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise. The call is advice: its failure changes nothing but speed.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_zero() {
        for len in [0, 1, 63, 4096, HUGE_PAGE / 4, HUGE_PAGE / 4 + 1] {
            let mut buffer = AlignedBuffer::<u32>::zeroed(len);
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|&word| word == 0));
            if len > 0 {
                assert!(buffer.as_ptr().addr().is_multiple_of(LINE));
            }
            if len * 4 >= HUGE_PAGE {
                assert!(buffer.as_ptr().addr().is_multiple_of(HUGE_PAGE));
            }
            buffer.fill(7);
            assert!(buffer.iter().all(|&word| word == 7));
        }
    }
}
