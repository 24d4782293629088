//! Where selectors come from and results go to: a few groups of slots of many polynomials.

use std::{marker::PhantomData, mem::MaybeUninit};

use hush_ops::{
    ntt_tiling::{GROUP_SLOTS, NttTiledDb, NttTiling, TILE_COLUMNS},
    reference::rlwe_fold::RLWE_POLYS,
};

use super::kernel::BLOCK_WORDS;

/// The selectors of some queries at one group of slots.
pub(crate) struct GroupSelectors<'a> {
    /// `[query][row][poly][slot of the group]`.
    pub(super) words: &'a [u32],
    /// Rows (D0).
    pub(super) rows: usize,
    /// Number of queries.
    pub(super) batch: usize,
}

impl GroupSelectors<'_> {
    /// The slots of polynomial `poly` of the selector of row `row`, query `query`; zeros beyond the last row.
    #[inline(always)]
    pub(super) fn slots(&self, query: usize, row: usize, poly: usize) -> &[u32; GROUP_SLOTS] {
        if row >= self.rows {
            return &[0; GROUP_SLOTS];
        }
        let (groups, _) = self.words.as_chunks();
        &groups[(query * self.rows + row) * RLWE_POLYS + poly]
    }
}

/// Words of the selectors of one group.
pub(super) fn selector_words(rows: usize, batch: usize) -> usize {
    batch * rows * RLWE_POLYS * GROUP_SLOTS
}

/// Copies the selectors of neighbouring groups, which begin at word `first` of every polynomial, to `out`: as many as
/// it holds, each as in [`GroupSelectors`]. The selectors of a query are `[row][poly][limb][slot]`.
pub(super) fn gather_selectors(queries: &[&[u32]], tiling: NttTiling, first: usize, out: &mut [u32]) {
    let group_words = selector_words(tiling.rows(), queries.len());
    let groups = out.len() / group_words;
    let polys = queries.iter().flat_map(|query| query.chunks_exact(tiling.poly_words()));
    for (index, poly) in polys.enumerate() {
        let slots = poly[first..first + groups * GROUP_SLOTS].chunks_exact(GROUP_SLOTS);
        for (slots, out) in slots.zip(out.chunks_exact_mut(group_words)) {
            out[index * GROUP_SLOTS..][..GROUP_SLOTS].copy_from_slice(slots);
        }
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

/// The slots of column `column`, polynomial number `index` of the batch, in the results
/// `[tile][query][poly][16 columns][slot of the group]` of one group.
pub(super) fn block_column(out: &[u32], batch: usize, index: usize, column: usize) -> &[u32; GROUP_SLOTS] {
    let block = column / TILE_COLUMNS * batch * RLWE_POLYS + index;
    let (columns, _) = out[block * BLOCK_WORDS..].as_chunks();
    &columns[column % TILE_COLUMNS]
}

/// The results of all queries, written by several threads in disjoint slots.
pub(super) struct SharedResults<'a> {
    starts: Vec<*mut u32>,
    words: usize,
    poly_words: usize,
    lent: PhantomData<&'a mut [u32]>,
}

// SAFETY: the words are only reached through `slots_mut`, whose callers keep their slots disjoint.
unsafe impl Sync for SharedResults<'_> {}

impl<'a> SharedResults<'a> {
    /// The room of `results` of one query each, `[column][poly][limb][slot]`.
    pub(super) fn new(tiling: NttTiling, results: &'a mut [Vec<u32>]) -> Self {
        let words = tiling.columns() * RLWE_POLYS * tiling.poly_words();
        assert!(results.iter().all(|result| result.capacity() >= words));
        let starts = results.iter_mut().map(|result| result.as_mut_ptr()).collect();
        Self { starts, words, poly_words: tiling.poly_words(), lent: PhantomData }
    }

    /// `groups` groups of slots of column `column`, polynomial number `index` of the batch, which begin at word
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
        let (query, poly) = (index / RLWE_POLYS, index % RLWE_POLYS);
        let at = (column * RLWE_POLYS + poly) * self.poly_words + first;
        assert!(at + groups * GROUP_SLOTS <= self.words);
        // SAFETY: within the borrowed result (just checked); exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.starts[query].add(at).cast(), groups) }
    }
}
