//! The selectors of a few groups of slots, taken from polynomials and laid out slot by slot.

use hush_ops::{contract::RLWE_POLYS, ntt_tiling::GROUP_SLOTS};

/// The number of rows that laid out selectors are padded to a multiple of.
const PADDED_ROWS: usize = 16;
/// Returns the words of the selectors of one query at one slot, `[row][poly]`: rows are padded to 16 with zeros.
pub(super) fn query_words(rows: usize) -> usize {
    rows.next_multiple_of(PADDED_ROWS) * RLWE_POLYS
}

/// The selectors of some queries at neighbouring groups of slots modulo one limb.
pub(crate) struct SelectorColumns<'a> {
    /// The queries, each `[row][poly][word of a polynomial]`.
    pub(super) queries: &'a [&'a [u32]],
    /// The number of rows (D0).
    pub(super) rows: usize,
    /// The number of words of a polynomial, over all limbs.
    pub(super) poly_words: usize,
    /// The word of every polynomial where the groups begin.
    pub(super) first: usize,
    /// The number of groups.
    pub(super) groups: usize,
}

impl SelectorColumns<'_> {
    /// Returns the words of one slot, `[query][row][poly]`.
    pub(super) fn slot_words(&self) -> usize {
        self.queries.len() * query_words(self.rows)
    }

    /// Returns the words of all groups.
    pub(super) fn words(&self) -> usize {
        self.groups * GROUP_SLOTS * self.slot_words()
    }

    /// Returns the slots of all groups of polynomial `poly` of the selector of row `row`, query `query`.
    #[inline(always)]
    pub(super) fn slots(&self, query: usize, row: usize, poly: usize) -> &[u32] {
        let at = (row * RLWE_POLYS + poly) * self.poly_words + self.first;
        &self.queries[query][at..at + self.groups * GROUP_SLOTS]
    }
}

/// Implements [`super::kernel::RlweFoldKernel::transpose`] in portable code.
pub(super) fn transpose(columns: &SelectorColumns<'_>, out: &mut [u32]) {
    assert_eq!(out.len(), columns.words());
    let slot_words = columns.slot_words();
    let query_words = query_words(columns.rows);
    for query in 0..columns.queries.len() {
        for index in 0..query_words {
            let row = index / RLWE_POLYS;
            let poly = index % RLWE_POLYS;
            let at = query * query_words + index;
            if row >= columns.rows {
                (0..columns.groups * GROUP_SLOTS).for_each(|slot| out[slot * slot_words + at] = 0);
                continue;
            }
            for (slot, &word) in columns.slots(query, row, poly).iter().enumerate() {
                out[slot * slot_words + at] = word;
            }
        }
    }
}
