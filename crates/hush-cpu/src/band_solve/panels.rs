//! A banded unit triangular matrix, packed for substitution in blocks of four rows.

use hush_ops::symbol::Symbol;

/// The number of rows of a block, and of columns of a group.
pub(super) const BLOCK: usize = 4;

/// Four rows of four coefficients.
pub(super) type Quad<S> = [[S; BLOCK]; BLOCK];

/// A unit triangular matrix whose row block `b` (rows `4b..4b + 4`) reaches the column groups `b`, `b ± 1`, ...,
/// `b ± k`: minus below the diagonal, plus above. The ones of the diagonal are not stored.
pub(super) struct Panels<S> {
    offsets: Vec<usize>,
    quads: Vec<Quad<S>>,
    reach: usize,
}

impl<S: Symbol> Panels<S> {
    /// Returns the number of row blocks.
    pub(super) fn blocks(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the largest distance of a group from its block's diagonal.
    pub(super) fn reach(&self) -> usize {
        self.reach
    }

    /// Returns the quads of block `block`, at least one. Number `k` is at distance `k` from the diagonal.
    pub(super) fn block(&self, block: usize) -> &[Quad<S>] {
        &self.quads[self.offsets[block]..self.offsets[block + 1]]
    }
}

/// A builder that packs a matrix row by row.
pub(super) struct PanelsBuilder<S> {
    panels: Panels<S>,
    pending: [Vec<[S; BLOCK]>; BLOCK],
    filled: usize,
}

impl<S: Symbol> PanelsBuilder<S> {
    /// Creates a builder of a matrix of `rows` rows.
    pub(super) fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows.div_ceil(BLOCK) + 1);
        offsets.push(0);
        Self {
            panels: Panels { offsets, quads: Vec::new(), reach: 0 },
            pending: Default::default(),
            filled: 0,
        }
    }

    /// Adds a row, given as its groups of four coefficients from the diagonal outwards.
    pub(super) fn push_row(&mut self, groups: impl Iterator<Item = [S; BLOCK]>) {
        let row = &mut self.pending[self.filled];
        row.clear();
        row.extend(groups);
        let used = row.iter().rposition(|&group| group != [S::default(); BLOCK]).map_or(0, |last| last + 1);
        row.truncate(used);
        self.filled += 1;
        if self.filled == BLOCK {
            self.close_block();
        }
    }

    /// Returns the packed matrix. Fills the last block up with rows of zeros.
    pub(super) fn finish(mut self) -> Panels<S> {
        if self.filled > 0 {
            self.pending[self.filled..].iter_mut().for_each(Vec::clear);
            self.close_block();
        }
        self.panels
    }

    fn close_block(&mut self) {
        let reach = self.pending.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let quad =
            |k: usize| std::array::from_fn(|row| self.pending[row].get(k).copied().unwrap_or_default());
        self.panels.quads.extend((0..reach).map(quad));
        self.panels.reach = self.panels.reach.max(reach - 1);
        self.panels.offsets.push(self.panels.quads.len());
        self.filled = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_padded_and_trimmed() {
        let mut builder = PanelsBuilder::new(5);
        for row in 0..5u8 {
            builder.push_row([[row; 4], [0; 4], [0, 10 * row, 0, 0], [0; 4]].into_iter());
        }
        let panels = builder.finish();
        assert_eq!((panels.blocks(), panels.reach()), (2, 2));
        assert_eq!(panels.block(0)[0], [[0; 4], [1; 4], [2; 4], [3; 4]]);
        assert_eq!(panels.block(0)[1], [[0; 4]; 4]);
        assert_eq!(panels.block(0)[2], [[0; 4], [0, 10, 0, 0], [0, 20, 0, 0], [0, 30, 0, 0]]);
        assert_eq!(panels.block(1)[2], [[0, 40, 0, 0], [0; 4], [0; 4], [0; 4]]);
    }

    #[test]
    fn an_empty_block_has_its_diagonal_group() {
        let mut builder = PanelsBuilder::<u32>::new(1);
        builder.push_row(std::iter::empty());
        assert_eq!(builder.finish().block(0), [[[0; 4]; 4]]);
    }
}
