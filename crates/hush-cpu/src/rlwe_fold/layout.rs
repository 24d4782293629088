//! The places that residues are read from and results are written to.

use std::{marker::PhantomData, mem::MaybeUninit};

use hush_ops::{
    contract::RLWE_POLYS,
    ntt_tiling::{GROUP_SLOTS, NttTiledDb, NttTiling},
};

use super::kernel::BLOCK_WORDS;

/// Returns the residues of a database.
pub(super) fn db_words(db: &NttTiledDb) -> &[u32] {
    // SAFETY: all bit patterns are words, in the machine's byte order. `align_to` splits where alignment requires,
    // which is nowhere in a database.
    let (head, words, tail) = unsafe { db.bytes().align_to::<u32>() };
    debug_assert!(head.is_empty() && tail.is_empty());
    words
}

/// Returns the slots of column `column` of a tile, polynomial number `index` of the batch, in the results of this tile,
/// `[query][poly][column, of 16][slot of the group]`.
pub(super) fn block_column(out: &[u32], index: usize, column: usize) -> &[u32; GROUP_SLOTS] {
    let (columns, _) = out[index * BLOCK_WORDS..].as_chunks();
    &columns[column]
}

/// The results of all queries, written by several threads in disjoint slots.
pub(super) struct SharedResults<'a> {
    starts: Vec<*mut u32>,
    words: usize,
    poly_words: usize,
    lent: PhantomData<&'a mut [u32]>,
}

// SAFETY: the words are reached only through `slots_mut`, whose callers keep their slots disjoint.
unsafe impl Sync for SharedResults<'_> {}

impl<'a> SharedResults<'a> {
    /// Shares the capacity of `results` of one query each, `[column][poly][limb][slot]`.
    pub(super) fn new(tiling: NttTiling, results: &'a mut [Vec<u32>]) -> Self {
        let words = tiling.columns() * RLWE_POLYS * tiling.poly_words();
        assert!(results.iter().all(|result| result.capacity() >= words));
        let starts = results.iter_mut().map(|result| result.as_mut_ptr()).collect();
        Self { starts, words, poly_words: tiling.poly_words(), lent: PhantomData }
    }

    /// Returns `groups` groups of slots of column `column`, polynomial number `index` of the batch, which begin at word
    /// `first` of the polynomial.
    ///
    /// # Safety
    /// Nothing else may access these slots of this polynomial while the slice lives.
    #[expect(clippy::mut_from_ref, reason = "disjoint slots are the caller's promise")]
    pub(super) unsafe fn slots_mut(
        &self,
        index: usize,
        column: usize,
        first: usize,
        groups: usize,
    ) -> &mut [MaybeUninit<[u32; GROUP_SLOTS]>] {
        let query = index / RLWE_POLYS;
        let poly = index % RLWE_POLYS;
        let at = (column * RLWE_POLYS + poly) * self.poly_words + first;
        assert!(at + groups * GROUP_SLOTS <= self.words);
        // SAFETY: within the borrowed result (just checked); exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.starts[query].add(at).cast(), groups) }
    }
}
