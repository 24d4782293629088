//! The copies of a table: which of them answers a batch.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of batches that each copy of a table is answering.
pub(crate) struct Copies(Mutex<Vec<usize>>);

/// A copy that answers a batch, until this is dropped.
pub(crate) struct BusyCopy<'a> {
    copies: &'a Copies,
    number: usize,
}

impl Copies {
    /// Creates `count` copies, at least one, that answer nothing.
    pub(crate) fn new(count: usize) -> Self {
        Self(Mutex::new(vec![0; count]))
    }

    /// Takes the copy with the fewest batches among those that work; the first one if none works.
    pub(crate) fn take(&self, works: impl Fn(usize) -> bool) -> BusyCopy<'_> {
        let mut busy = self.lock();
        let working = (0..busy.len()).filter(|&copy| works(copy));
        let number = working.min_by_key(|&copy| busy[copy]).unwrap_or(0);
        busy[number] += 1;
        BusyCopy { copies: self, number }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BusyCopy<'_> {
    /// Returns the number of the copy, from 0.
    pub(crate) fn number(&self) -> usize {
        self.number
    }
}

impl Drop for BusyCopy<'_> {
    fn drop(&mut self) {
        self.copies.lock()[self.number] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_that_is_free_first_is_taken() {
        let copies = Copies::new(3);
        let all = |_| true;
        let taken = [0, 1, 2, 0].map(|number| {
            let copy = copies.take(all);
            assert_eq!(copy.number(), number);
            copy
        });
        assert_eq!(copies.take(|copy| copy != 1).number(), 2);
        assert_eq!(copies.take(|_| false).number(), 0);
        let [first, second, third, fourth] = taken;
        drop((first, fourth));
        assert_eq!(copies.take(all).number(), 0);
        drop((second, third));
        assert_eq!(*copies.lock(), [0, 0, 0]);
    }
}
