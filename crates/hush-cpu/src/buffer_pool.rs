//! A pool of buffers that calls leave for later calls.

use std::sync::{Arc, Mutex, PoisonError};

use crate::buffer::{AlignedBuffer, UnwrittenBuffer, Word};

/// The most buffers that a pool keeps: that many calls, or queries of a batch, run without an allocation.
const KEPT: usize = 8;
/// The most bytes that a pool keeps: the selectors of a batch of eight under the default set that packs.
const KEPT_BYTES: usize = 640 << 20;

/// The words of a pooled buffer, which returns to its pool when they are dropped. Used for results that are made again and again:
/// the kernel clears pages of new memory, which takes about as long as most steps need to fill them.
pub(crate) struct LentBuffer<T: Word> {
    /// The buffer; `None` once it is dropped.
    buffer: Option<AlignedBuffer<T>>,
    len: usize,
    pool: Arc<BufferPool<T>>,
}

impl<T: Word> LentBuffer<T> {
    /// Takes `len` words from `pool`, with arbitrary content.
    pub(crate) fn new(pool: &Arc<BufferPool<T>>, len: usize) -> Self {
        Self::of(pool.take(len), len, pool)
    }

    /// Lends the first `len` words of `buffer`, which goes to `pool` afterwards.
    pub(crate) fn of(buffer: AlignedBuffer<T>, len: usize, pool: &Arc<BufferPool<T>>) -> Self {
        Self { buffer: Some(buffer), len, pool: pool.clone() }
    }
}

impl<T: Word> AsRef<[T]> for LentBuffer<T> {
    fn as_ref(&self) -> &[T] {
        self.buffer.as_ref().map_or(&[], |buffer| &buffer[..self.len])
    }
}

impl<T: Word> AsMut<[T]> for LentBuffer<T> {
    fn as_mut(&mut self) -> &mut [T] {
        self.buffer.as_mut().map_or(&mut [], |buffer| &mut buffer[..self.len])
    }
}

impl<T: Word> Drop for LentBuffer<T> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.pool.give_back(buffer);
        }
    }
}

/// A pool of buffers of any size, with arbitrary content.
pub(crate) struct BufferPool<T: Word> {
    kept: Mutex<Vec<AlignedBuffer<T>>>,
}

impl<T: Word> BufferPool<T> {
    pub(crate) fn new() -> Self {
        Self { kept: Mutex::new(Vec::new()) }
    }

    /// Returns a buffer of at least `len` words.
    pub(crate) fn take(&self, len: usize) -> AlignedBuffer<T> {
        // A new buffer is zeroed without the lock: it can be tens of MiB.
        self.take_kept(len).unwrap_or_else(|| AlignedBuffer::zeroed(len))
    }

    /// Returns a buffer of at least `len` words for a result that writes all of it.
    pub(crate) fn take_unwritten(&self, len: usize) -> UnwrittenBuffer<T> {
        self.take_kept(len).map_or_else(|| UnwrittenBuffer::new(len), UnwrittenBuffer::from)
    }

    fn take_kept(&self, len: usize) -> Option<AlignedBuffer<T>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = (0..kept.len()).filter(|&index| kept[index].len() >= len);
        let smallest = fitting.min_by_key(|&index| kept[index].len())?;
        Some(kept.swap_remove(smallest))
    }

    /// Keeps a buffer for a later call, unless it exceeds [`KEPT_BYTES`]. Beyond [`KEPT`] buffers, the smallest is freed.
    pub(crate) fn give_back(&self, buffer: AlignedBuffer<T>) {
        let bytes = |buffer: &AlignedBuffer<T>| size_of_val(&buffer[..]);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.iter().map(bytes).sum::<usize>() + bytes(&buffer) > KEPT_BYTES {
            return;
        }
        kept.push(buffer);
        if kept.len() > KEPT {
            let smallest = (0..kept.len()).min_by_key(|&index| kept[index].len());
            kept.swap_remove(smallest.unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_words_are_lent_again() {
        let pool = Arc::new(BufferPool::<u32>::new());
        let lend = |len| LentBuffer::new(&pool, len);
        let large = lend(1000);
        let mut small = lend(100);
        small.as_mut().fill(7);
        let addresses = [&large, &small].map(|lent| lent.as_ref().as_ptr());
        drop((large, small));
        let small = lend(99);
        assert!(small.as_ref() == [7; 99] && small.as_ref().as_ptr() == addresses[1]);
        assert_eq!(lend(101).as_ref().as_ptr(), addresses[0]);
    }
}
