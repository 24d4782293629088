//! Solved filters in a scratch file, written and read by many threads.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The slots of all blocks, as relaxed atomic words, which compile to plain loads and stores.
pub(in crate::builder) struct WordSlots<'a> {
    words: &'a [AtomicU32],
    block_words: usize,
}

impl<'a> WordSlots<'a> {
    /// Creates the slots of blocks of `block_words` words over `words`.
    pub(in crate::builder) fn new(words: &'a mut [u32], block_words: usize) -> Self {
        // SAFETY: AtomicU32 has the size, alignment and validity of u32; the borrow is exclusive.
        let words = unsafe { &*(std::ptr::from_mut(words) as *const [AtomicU32]) };
        Self { words, block_words }
    }

    /// Writes all words of `block`.
    pub(in crate::builder) fn write(&self, block: usize, words: &[u32]) {
        assert_eq!(words.len(), self.block_words);
        let to = &self.words[block * self.block_words..][..words.len()];
        to.iter().zip(words).for_each(|(to, &word)| to.store(word, Relaxed));
    }

    /// Reads words of `block` into `words`, starting at word `first` of the block.
    pub(in crate::builder) fn read(&self, block: usize, first: usize, words: &mut [u32]) {
        let from = &self.words[block * self.block_words + first..][..words.len()];
        words.iter_mut().zip(from).for_each(|(word, from)| *word = from.load(Relaxed));
    }
}
