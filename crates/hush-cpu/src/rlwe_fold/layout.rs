//! Where selectors come from and results go to: one group of slots of many polynomials.

use std::marker::PhantomData;

use hush_ops::{
    ntt_tiling::{GROUP_SLOTS, NttTiledDb, NttTiling},
    reference::rlwe_fold::RLWE_POLYS,
};

/// The selectors of some queries at one group of slots.
pub(crate) struct GroupSelectors<'a> {
    /// The selectors of a query are `[row][poly][limb][slot]`.
    pub(super) queries: &'a [&'a [u32]],
    /// Rows (D0).
    pub(super) rows: usize,
    /// Words of a polynomial, over all limbs.
    pub(super) poly_words: usize,
    /// Position of the group in a polynomial.
    pub(super) first: usize,
}

impl GroupSelectors<'_> {
    /// The group of polynomial `poly` of the selector of row `row`, query `query`; zeros beyond the last row.
    pub(super) fn group(&self, query: usize, row: usize, poly: usize) -> &[u32; GROUP_SLOTS] {
        if row >= self.rows {
            return &[0; GROUP_SLOTS];
        }
        let at = (row * RLWE_POLYS + poly) * self.poly_words + self.first;
        let (group, _) = self.queries[query][at..].split_first_chunk().expect("a whole group");
        group
    }
}

/// The residues of a database.
pub(super) fn db_words(db: &NttTiledDb) -> &[u32] {
    // SAFETY: all bit patterns are words, in the machine's own byte order; `align_to` splits where alignment requires,
    // which is nowhere in a database.
    let (head, words, tail) = unsafe { db.bytes().align_to::<u32>() };
    debug_assert!(head.is_empty() && tail.is_empty());
    words
}

/// The results of all queries, written by several threads in disjoint slots.
pub(super) struct SharedResults<'a> {
    starts: Vec<*mut u32>,
    words: usize,
    poly_words: usize,
    lent: PhantomData<&'a mut [u32]>,
}

// SAFETY: the words are only written through `write`, whose callers keep their slots disjoint.
unsafe impl Sync for SharedResults<'_> {}

impl<'a> SharedResults<'a> {
    /// `results` of one query each, `[column][poly][limb][slot]`.
    pub(super) fn new(tiling: NttTiling, results: &'a mut [Vec<u32>]) -> Self {
        let words = tiling.columns() * RLWE_POLYS * tiling.poly_words();
        assert!(results.iter().all(|result| result.len() == words));
        let starts = results.iter_mut().map(|result| result.as_mut_ptr()).collect();
        Self { starts, words, poly_words: tiling.poly_words(), lent: PhantomData }
    }

    /// Writes a group of slots, which begins at word `first` of polynomial `poly` of (`query`, `column`).
    ///
    /// # Safety
    /// Nothing else may access these slots of this polynomial at the same time.
    pub(super) unsafe fn write(
        &self,
        query: usize,
        column: usize,
        poly: usize,
        first: usize,
        group: &[u32; GROUP_SLOTS],
    ) {
        let at = (column * RLWE_POLYS + poly) * self.poly_words + first;
        assert!(at + GROUP_SLOTS <= self.words);
        // SAFETY: within the borrowed result (just checked); exclusive by the caller's promise.
        unsafe { self.starts[query].add(at).cast::<[u32; GROUP_SLOTS]>().write(*group) };
    }
}
