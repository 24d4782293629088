//! The lift of the hint to evaluation form, written straight into its tiled layout.
//!
//! ```text
//! for every tile, 16 neighbouring polynomials of each of its columns:        (a unit of work)
//!     transpose whole cache lines of the hint, one for 16 coefficients of the same index
//!     for every limb: lift and transform the polynomials, then transpose back and write whole cache lines, one a slot
//! ```
//!
//! Both ends are strided: a polynomial's coefficients are a hint row apart, and its slots are a tile's rows apart. Squares of
//! 16 x 16 words are transposed, so that both ends use whole cache lines.

use std::{marker::PhantomData, ops::Range, sync::Arc};

use hush_ops::{
    OpsError,
    ntt_tiling::{GROUP_SLOTS, NttTiledDb, NttTiling},
    pack_shape::PackShape,
    steps::poly_bytes,
};
use rayon::prelude::*;

use super::squares::{SQUARE, Squares};
use crate::{
    Cpu, CpuRing,
    buffer::UnwrittenBuffer,
    buffer_pool::LentBuffer,
    kernels::end_stream,
    ring::{Lift, ModRing},
    workspace::Workspace,
};

/// Computes [`hush_ops::contract::PackOps::lift_hint`] for a hint of the shape.
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
    let mut residues = cpu.result_buffers().take_unwritten(tiling.bytes());
    let job = LiftJob {
        ring: kept,
        lift: Lift::words(ring.context().params().plaintext_bits()),
        squares: Squares::of(cpu.level()),
        hint: Hint { words: hint, n, first_row: shape.rows_of(columns.clone()).start },
        rows: columns.map(|column| shape.plaintext_rows(column)).collect(),
        tiling,
        out: SharedTiles::new(&mut residues, tiling),
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
    let residues = LentBuffer::of(residues, tiling.bytes(), cpu.result_buffers());
    NttTiledDb::new(tiling, Arc::new(residues))
}

/// A unit of work: some neighbouring polynomials of all columns of a tile.
struct Unit {
    tile: usize,
    polys: Range<usize>,
}

/// A range of rows of a hint, n words each.
struct Hint<'a> {
    words: &'a [u32],
    n: usize,
    /// The database row of the first of these rows.
    first_row: usize,
}

struct LiftJob<'a> {
    ring: &'a ModRing,
    lift: Lift,
    squares: Squares,
    hint: Hint<'a>,
    /// The database rows of each column.
    rows: Vec<Range<usize>>,
    tiling: NttTiling,
    out: SharedTiles<'a>,
}

impl LiftJob<'_> {
    /// Returns the words from a polynomial in scratch memory to the next. A line is left free, so that lines that are transposed
    /// together do not share a set of a cache.
    fn stride(&self) -> usize {
        self.ring.degree() + SQUARE
    }

    /// Runs one unit of work on the calling thread.
    fn lift_unit(&self, unit: &Unit, workspace: &mut Workspace) {
        let column_words = SQUARE * self.stride();
        let columns = self.tiling.tile_columns(unit.tile);
        let values_words = SQUARE * self.stride();
        let (buffer, transform) = workspace.ring_buffers(
            values_words + self.tiling.tile_width() * column_words,
            self.ring.transform_words(),
        );
        let (values, words) = buffer.split_at_mut(values_words);
        for (column, words) in columns.clone().zip(words.chunks_exact_mut(column_words)) {
            self.gather(&self.rows[column], &unit.polys, words);
        }
        let neighbours = SQUARE / self.tiling.tile_width();
        for first in unit.polys.clone().step_by(neighbours) {
            let polys = first..unit.polys.end.min(first + neighbours);
            for (limb_index, limb) in self.ring.limbs().iter().enumerate() {
                for (index, values) in values.chunks_exact_mut(self.stride()).enumerate() {
                    let i = first + index / self.tiling.tile_width();
                    let column = index % self.tiling.tile_width();
                    let values = &mut values[..self.ring.degree()];
                    if column >= columns.len() || i >= polys.end {
                        values.fill(0);
                        continue;
                    }
                    let line = column * SQUARE + i - unit.polys.start;
                    let words = &words[line * self.stride()..][..self.ring.degree()];
                    self.lift.apply(self.ring.level(), limb, words, values);
                    limb.ntt.forward(values, transform);
                }
                self.scatter(limb_index, unit.tile, &polys, values);
            }
        }
        end_stream();
    }

    /// Gathers the coefficients of some polynomials of the column that is made of `rows`: `[polynomial][N]`,
    /// [`LiftJob::stride`] apart.
    fn gather(&self, rows: &Range<usize>, polys: &Range<usize>, words: &mut [u32]) {
        let Hint { words: hint, n, first_row } = self.hint;
        for first in (0..self.ring.degree()).step_by(SQUARE) {
            let to = words[first..][..(SQUARE - 1) * self.stride() + SQUARE].as_mut_ptr();
            let lines = rows.len().saturating_sub(first).min(SQUARE);
            let start = (rows.start - first_row + first) * n + polys.start;
            if lines == SQUARE && polys.len() == SQUARE {
                let from = hint[start..][..(SQUARE - 1) * n + SQUARE].as_ptr();
                // SAFETY: the lines are within the slices; the maker of the backend promised that the machine has the level.
                unsafe { (self.squares.transpose)(from, n, to, self.stride()) };
                continue;
            }
            let mut square = [0; SQUARE * SQUARE];
            for (line, square) in square.chunks_exact_mut(SQUARE).take(lines).enumerate() {
                square[..polys.len()].copy_from_slice(&hint[start + line * n..][..polys.len()]);
            }
            // SAFETY: as above.
            unsafe { (self.squares.transpose)(square.as_ptr(), SQUARE, to, self.stride()) };
        }
    }

    /// Writes the transforms of neighbours in a tile, `[polynomial][column]`, modulo one limb.
    fn scatter(&self, limb: usize, tile: usize, polys: &Range<usize>, values: &[u32]) {
        let words = polys.len() * self.tiling.tile_width();
        let slot_words = self.tiling.rows() * self.tiling.tile_width();
        for slot in (0..self.ring.degree()).step_by(GROUP_SLOTS) {
            let from = &values[slot..][..(SQUARE - 1) * self.stride() + SQUARE];
            let start = self.tiling.offset(limb, slot, polys.start, tile * self.tiling.tile_width());
            let to = self.out.at(start..start + (GROUP_SLOTS - 1) * slot_words + words);
            // SAFETY of both: the lines are within `from` and `to`. No other unit writes them, as units differ in their
            // polynomials or tiles. The maker of the backend promised that the machine has the level.
            if words == SQUARE && start.is_multiple_of(SQUARE) && slot_words.is_multiple_of(SQUARE) {
                // SAFETY: as above; the tiles begin at a cache line.
                unsafe { (self.squares.stream)(from.as_ptr(), self.stride(), to, slot_words) };
                continue;
            }
            let mut square = [0u32; SQUARE * SQUARE];
            // SAFETY: as above.
            unsafe { (self.squares.transpose)(from.as_ptr(), self.stride(), square.as_mut_ptr(), SQUARE) };
            for (line, square) in square.chunks_exact(SQUARE).enumerate() {
                // SAFETY: as above.
                unsafe { to.add(line * slot_words).copy_from_nonoverlapping(square.as_ptr(), words) };
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

// SAFETY: the writers keep their places disjoint.
unsafe impl Sync for SharedTiles<'_> {}

impl<'a> SharedTiles<'a> {
    /// Shares the memory of `bytes`, which must hold `tiling`.
    fn new(bytes: &'a mut UnwrittenBuffer<u8>, tiling: NttTiling) -> Self {
        // A buffer that is not empty begins at a cache line.
        Self { start: bytes.as_mut_ptr().cast(), words: tiling.bytes() / size_of::<u32>(), lent: PhantomData }
    }

    /// Returns the address of the words of a range. Some words in between may belong to other units.
    fn at(&self, range: Range<usize>) -> *mut u32 {
        assert!(range.start <= range.end && range.end <= self.words);
        // SAFETY: within the borrowed buffer (just checked).
        unsafe { self.start.add(range.start) }
    }
}

hush_ops::footprint!(Cpu: LiftHint, |step, batch| batch * step.n * step.columns * poly_bytes(&step.ring));
