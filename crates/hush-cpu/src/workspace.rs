//! Memory that a thread keeps between calls, so that a step allocates only its result.

use crate::buffer::AlignedBuffer;

/// The number of words of a huge page of x86-64.
const HUGE_PAGE_WORDS: usize = (2 << 20) / 4;

/// The buffers of one thread, which grow to the largest requested size.
pub(crate) struct Workspace {
    sums: AlignedBuffer<i32>,
    words: AlignedBuffer<u32>,
    wide: AlignedBuffer<u64>,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        Self {
            sums: AlignedBuffer::zeroed(0),
            words: AlignedBuffer::zeroed(0),
            wide: AlignedBuffer::zeroed(0),
        }
    }

    /// Returns `sums` partial sums and `words` words, with arbitrary content.
    pub(crate) fn fold_buffers(&mut self, sums: usize, words: usize) -> (&mut [i32], &mut [u32]) {
        if self.sums.len() < sums {
            self.sums = AlignedBuffer::zeroed(sums);
        }
        if self.words.len() < words {
            self.words = AlignedBuffer::zeroed(words);
        }
        (&mut self.sums[..sums], &mut self.words[..words])
    }

    /// Returns `words` words, with arbitrary content.
    pub(crate) fn words(&mut self, words: usize) -> &mut [u32] {
        if self.words.len() < words {
            self.words = AlignedBuffer::zeroed(words);
        }
        &mut self.words[..words]
    }

    /// Returns `words` words and `wide` words of 64 bits, with arbitrary content. The words are on huge pages.
    pub(crate) fn ring_buffers(&mut self, words: usize, wide: usize) -> (&mut [u32], &mut [u64]) {
        if self.words.len() < words {
            self.words = AlignedBuffer::zeroed(words.next_multiple_of(HUGE_PAGE_WORDS));
        }
        if self.wide.len() < wide {
            self.wide = AlignedBuffer::zeroed(wide);
        }
        (&mut self.words[..words], &mut self.wide[..wide])
    }
}
