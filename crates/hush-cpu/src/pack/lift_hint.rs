//! The hint to evaluation form, written straight into its tiled layout.
//!
//! Both ends are strided: a polynomial's coefficients are a hint row apart, and its slots are a tile's rows apart. So a
//! unit of work is 16 neighbouring polynomials of each column of a tile: the hint is read in whole cache lines, one for
//! 16 coefficients numbered alike, and after the transforms of 16 polynomials that are neighbours in the tile, whole
//! cache lines are written, one a slot. Both are transpositions of squares of 16 x 16 words.

use std::{marker::PhantomData, ops::Range, sync::Arc};

use hush_ops::{
    OpsError,
    ntt_tiling::{GROUP_SLOTS, NttTiledDb, NttTiling},
    pack_shape::PackShape,
};
use rayon::prelude::*;

use super::squares::{SQUARE, Transpose, transpose_of};
use crate::{
    Cpu, CpuRing,
    buffer::UnwrittenBuffer,
    ring::{Lift, ModRing},
    workspace::Workspace,
};

/// As [`hush_ops::contract::PackOps::lift_hint`], for a hint of the shape.
///
/// # Errors
/// [`OpsError::Shape`] if n is more than a tiling has rows.
pub(super) fn lift_hint(
    cpu: &Cpu,
    ring: &CpuRing,
    hint: &[u32],
    n: usize,
    shape: &PackShape,
    columns: Range<usize>,
) -> Result<NttTiledDb, OpsError> {
    let kept = &ring.kept;
    let tiling = NttTiling::new(kept.degree(), kept.limbs().len(), n, columns.len())?;
    let mut residues = UnwrittenBuffer::<u8>::new(tiling.bytes());
    let job = LiftJob {
        ring: kept,
        lift: Lift::words(ring.context().params().plaintext_bits()),
        transpose: transpose_of(cpu.level()),
        hint: Hint { words: hint, n, first_row: shape.rows_of(columns.clone()).start },
        rows: columns.map(|column| shape.column_rows(column)).collect(),
        tiling,
        tile_width: tile_width(tiling),
        out: SharedTiles::new(&mut residues),
    };
    let firsts = (0..n).step_by(SQUARE);
    let units: Vec<Unit> = (0..tiling.tiles())
        .flat_map(|tile| firsts.clone().map(move |i| Unit { tile, polys: i..n.min(i + SQUARE) }))
        .collect();
    cpu.install(|| {
        units.into_par_iter().with_max_len(1).for_each(|unit| {
            cpu.with_workspace(|workspace| job.lift_unit(&unit, workspace));
        });
    });
    // SAFETY: the units are all polynomials of all tiles, and each wrote its own.
    let residues = unsafe { residues.assume_written() };
    NttTiledDb::new(tiling, Arc::new(residues))
}

/// Columns of a tile, padding included.
fn tile_width(tiling: NttTiling) -> usize {
    tiling.chunk_words() / (GROUP_SLOTS * tiling.rows().max(1))
}

/// A unit of work: some neighbouring polynomials of all columns of a tile.
struct Unit {
    tile: usize,
    polys: Range<usize>,
}

/// Rows of n words.
struct Hint<'a> {
    words: &'a [u32],
    n: usize,
    /// Database row of the first one.
    first_row: usize,
}

struct LiftJob<'a> {
    ring: &'a ModRing,
    lift: Lift,
    transpose: Transpose,
    hint: Hint<'a>,
    /// Database rows of each column.
    rows: Vec<Range<usize>>,
    tiling: NttTiling,
    tile_width: usize,
    out: SharedTiles<'a>,
}

impl LiftJob<'_> {
    /// Words from a polynomial in scratch memory to the next: a line is left free, so that lines that are transposed
    /// together do not share a set of a cache.
    fn stride(&self) -> usize {
        self.ring.degree() + SQUARE
    }

    /// One unit of work, start to end, on the calling thread.
    fn lift_unit(&self, unit: &Unit, workspace: &mut Workspace) {
        let block = SQUARE * self.stride();
        let (buffer, transform) =
            workspace.ring_buffers((self.tile_width + 1) * block, self.ring.transform_words());
        let (values, words) = buffer.split_at_mut(block);
        let columns = &self.rows[self.tiling.tile_columns(unit.tile)];
        for (rows, words) in columns.iter().zip(words.chunks_exact_mut(block)) {
            self.gather(rows, &unit.polys, words);
        }
        let neighbours = SQUARE / self.tile_width;
        for first in unit.polys.clone().step_by(neighbours) {
            let polys = first..unit.polys.end.min(first + neighbours);
            for limb in 0..self.tiling.limbs() {
                for (index, values) in values.chunks_exact_mut(self.stride()).enumerate() {
                    let (i, column) = (first + index / self.tile_width, index % self.tile_width);
                    let values = &mut values[..self.ring.degree()];
                    if column < columns.len() && i < polys.end {
                        let line = column * SQUARE + i - unit.polys.start;
                        let words = &words[line * self.stride()..][..self.ring.degree()];
                        let limb = &self.ring.limbs()[limb];
                        self.lift.apply(self.ring.level(), limb, words, values);
                        limb.ntt.forward(values, transform);
                    } else {
                        values.fill(0);
                    }
                }
                self.scatter(limb, unit.tile, &polys, values);
            }
        }
    }

    /// The coefficients of some polynomials of the column that is made of `rows`: `[polynomial][N]`,
    /// [`LiftJob::stride`] apart.
    fn gather(&self, rows: &Range<usize>, polys: &Range<usize>, words: &mut [u32]) {
        let Hint { words: hint, n, first_row } = self.hint;
        for first in (0..self.ring.degree()).step_by(SQUARE) {
            let to = &mut words[first..][..(SQUARE - 1) * self.stride() + SQUARE];
            let lines = rows.len().saturating_sub(first).min(SQUARE);
            let start = (rows.start - first_row + first) * n + polys.start;
            if lines == SQUARE && polys.len() == SQUARE {
                let from = &hint[start..][..(SQUARE - 1) * n + SQUARE];
                // SAFETY: the lines are within the slices; the machine has the level, says who made the backend.
                unsafe { (self.transpose)(from.as_ptr(), n, to.as_mut_ptr(), self.stride()) };
            } else {
                let mut square = [0; SQUARE * SQUARE];
                for (line, square) in square.chunks_exact_mut(SQUARE).take(lines).enumerate() {
                    square[..polys.len()].copy_from_slice(&hint[start + line * n..][..polys.len()]);
                }
                // SAFETY: as above.
                unsafe { (self.transpose)(square.as_ptr(), SQUARE, to.as_mut_ptr(), self.stride()) };
            }
        }
    }

    /// Writes the transforms of neighbours in a tile, `[polynomial][column]`, modulo one limb.
    fn scatter(&self, limb: usize, tile: usize, polys: &Range<usize>, values: &[u32]) {
        let (words, slot_words) = (polys.len() * self.tile_width, self.tiling.rows() * self.tile_width);
        for slot in (0..self.ring.degree()).step_by(GROUP_SLOTS) {
            let from = &values[slot..][..(SQUARE - 1) * self.stride() + SQUARE];
            let start = self.tiling.offset(limb, slot, polys.start, tile * self.tile_width);
            let to = self.out.at(start..start + (GROUP_SLOTS - 1) * slot_words + words);
            if words == SQUARE {
                // SAFETY: the lines are within both, and no other unit's, since those are of other polynomials or tiles;
                // the machine has the level, says who made the backend.
                unsafe { (self.transpose)(from.as_ptr(), self.stride(), to, slot_words) };
            } else {
                let mut square = [0u32; SQUARE * SQUARE];
                // SAFETY: as above.
                unsafe { (self.transpose)(from.as_ptr(), self.stride(), square.as_mut_ptr(), SQUARE) };
                for (line, square) in square.chunks_exact(SQUARE).enumerate() {
                    // SAFETY: `words` words are within each line, and no other unit's.
                    unsafe { to.add(line * slot_words).copy_from_nonoverlapping(square.as_ptr(), words) };
                }
            }
        }
    }
}

/// The residues of a tiled database, written by several threads in disjoint places.
struct SharedTiles<'a> {
    start: *mut u32,
    words: usize,
    lent: PhantomData<&'a mut [u32]>,
}

// SAFETY: whoever writes keeps the places disjoint.
unsafe impl Sync for SharedTiles<'_> {}

impl<'a> SharedTiles<'a> {
    fn new(bytes: &'a mut UnwrittenBuffer<u8>) -> Self {
        let words = bytes.len() / size_of::<u32>();
        // An aligned buffer that is not empty is aligned for words.
        Self { start: bytes.as_mut_ptr().cast(), words, lent: PhantomData }
    }

    /// Where the words of a range are to be written; those in between may be others'.
    fn at(&self, range: Range<usize>) -> *mut u32 {
        assert!(range.start <= range.end && range.end <= self.words);
        // SAFETY: within the borrowed buffer (just checked).
        unsafe { self.start.add(range.start) }
    }
}
