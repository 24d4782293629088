//! Step (6), the fold of the first dimension of ring elements: reads the database once for up to 8 queries.
//!
//! ```text
//! for every limb, for every group of 16 NTT slots, in parallel:
//!     lay out the selectors of these slots, slot by slot
//!     for every column, query, poly:  out = sum over rows of db[row][column] * selector[query][row][poly] mod p
//! ```
//!
//! Every level does the same walk; only the kernel that multiplies a group differs. A group, for all columns, is one contiguous run
//! of the database. Its selectors stay in the L2 cache while the run streams past. A unit of work is a few neighbouring groups:
//! selectors are read, and results written, a few cache lines at a time, as both are spread over a page for every polynomial.

use std::ops::Range;

use hush_math::modulus::Modulus;
use hush_ops::{
    contract::RLWE_POLYS,
    ntt_tiling::{GROUP_SLOTS, NttTiledDb, NttTiling},
};
use rayon::prelude::*;

use crate::{
    Cpu, buffer,
    features::Level,
    footprint::EXPANDED_QUERIES,
    kernels::{by_level, with_lanes},
    workspace::Workspace,
};

mod amx;
mod amx_selectors;
mod avx512_selectors;
mod ifma;
mod kernel;
mod lanes;
mod layout;
mod selectors;
mod vectors;

use kernel::{BLOCK_WORDS, Group, MAX_BATCH, RlweFoldKernel};
use layout::SharedResults;
use selectors::SelectorColumns;

/// The most groups of a unit of work. (Measured: with 1, reading selectors and writing results takes a third of the time
/// of a pass for 8 queries.)
const UNIT_GROUPS: usize = 8;
/// The fewest units for a thread, if groups of one unit suffice.
const UNITS_PER_THREAD: usize = 4;

/// The number of queries from which AMX is faster than AVX-512 IFMA. (Measured: for 3 queries it is not, and for 8 queries of one
/// tile it is about as fast.)
const MANY_MIN: usize = 4;

/// The kernels of one level.
pub(crate) struct RlweFoldKernels {
    /// The kernel for few queries, or a database that is read in less time than selectors are prepared.
    few: RlweFoldKernel,
    /// The kernel for at least [`MANY_MIN`] queries of a database of several full tiles.
    many: RlweFoldKernel,
}

impl RlweFoldKernels {
    /// Returns the kernels of `level`. Running them is unsafe on a machine without that level.
    pub(crate) fn of(level: Level) -> Self {
        let with_lanes =
            || with_lanes!(level, L => Self { few: lanes::kernel::<L>(), many: lanes::kernel::<L>() });
        by_level!(level, {
            portable: with_lanes(),
            x86: {
                Level::Avx2 | Level::Avx512 => with_lanes(),
                Level::Avx512Ifma => Self { few: ifma::KERNEL, many: ifma::KERNEL },
                Level::Amx => Self { few: ifma::KERNEL, many: amx::KERNEL },
            },
            arm: { Level::Neon | Level::Dotprod | Level::I8mm => with_lanes() }
        })
    }

    /// Returns the kernel for a pass of `batch` queries.
    fn for_pass(&self, tiling: NttTiling, batch: usize) -> &RlweFoldKernel {
        if batch >= MANY_MIN && tiling.tiles() > 1 { &self.many } else { &self.few }
    }
}

/// Computes [`hush_ops::steps::rlwe_fold::reference`], which has the orders of selectors and results, for operands that
/// fit together.
pub(crate) fn rlwe_fold(
    cpu: &Cpu,
    moduli: &[Modulus],
    db: &NttTiledDb,
    selectors: &[&[u32]],
) -> Vec<Vec<u32>> {
    let tiling = db.tiling();
    let words = tiling.columns() * RLWE_POLYS * tiling.poly_words();
    if words == 0 || tiling.rows() == 0 || selectors.is_empty() {
        return vec![vec![0; words]; selectors.len()];
    }
    let mut results: Vec<Vec<u32>> = selectors.iter().map(|_| buffer::empty_vec(words)).collect();
    // All passes are of about the same size.
    let pass = selectors.len().div_ceil(selectors.len().div_ceil(MAX_BATCH));
    for (queries, results) in selectors.chunks(pass).zip(results.chunks_mut(pass)) {
        let results = SharedResults::new(tiling, results);
        let kernel = cpu.kernels().rlwe_fold.for_pass(tiling, queries.len());
        let pass = Pass { kernel, moduli, db, queries, results };
        cpu.install(|| {
            split_groups(tiling, cpu.threads()).into_par_iter().with_max_len(1).for_each(|unit| {
                cpu.with_workspace(|workspace| pass.fold_unit(&unit, workspace));
            });
        });
    }
    // SAFETY: the units of a pass are all slots of all columns, and each wrote its own.
    results.iter_mut().for_each(|result| unsafe { result.set_len(words) });
    results
}

/// A unit of work: neighbouring groups of slots modulo one limb.
struct Unit {
    limb: usize,
    groups: Range<usize>,
}

/// Splits all groups into units for `threads` threads.
fn split_groups(tiling: NttTiling, threads: usize) -> Vec<Unit> {
    let share = tiling.limbs() * tiling.groups() / (threads * UNITS_PER_THREAD);
    let unit = share.clamp(1, UNIT_GROUPS);
    let groups = |first: usize| first..tiling.groups().min(first + unit);
    (0..tiling.limbs())
        .flat_map(|limb: usize| (0..tiling.groups()).step_by(unit).map(move |first| (limb, first)))
        .map(|(limb, first)| Unit { limb, groups: groups(first) })
        .collect()
}

/// The operands of one pass over the whole database.
struct Pass<'a> {
    kernel: &'a RlweFoldKernel,
    moduli: &'a [Modulus],
    db: &'a NttTiledDb,
    queries: &'a [&'a [u32]],
    results: SharedResults<'a>,
}

impl Pass<'_> {
    /// Runs one unit of work on the calling thread.
    fn fold_unit(&self, unit: &Unit, workspace: &mut Workspace) {
        let tiling = self.db.tiling();
        let batch = self.queries.len();
        let groups = unit.groups.len();
        let columns = SelectorColumns {
            queries: self.queries,
            rows: tiling.rows(),
            poly_words: tiling.poly_words(),
            first: unit.limb * tiling.degree() + unit.groups.start * GROUP_SLOTS,
            groups,
        };
        let scratch_words = (self.kernel.scratch_words)(tiling.rows(), batch);
        let tile_words = batch * RLWE_POLYS * BLOCK_WORDS;
        let out_words = groups * tiling.tiles() * tile_words;
        let buffer = workspace.words(scratch_words + columns.words() + out_words);
        let (scratch, rest) = buffer.split_at_mut(scratch_words);
        let (selectors, out) = rest.split_at_mut(columns.words());
        // SAFETY: `Cpu` only hands out kernels of a level that its constructor vouched for.
        unsafe { (self.kernel.transpose)(&columns, selectors) };
        let parts =
            selectors.chunks_exact(columns.words() / groups).zip(out.chunks_exact_mut(out_words / groups));
        for (group, (selectors, out)) in unit.groups.clone().zip(parts) {
            self.fold_group(unit.limb, group, selectors, scratch, out);
        }
        for column in 0..tiling.columns() {
            let tile = column / tiling.tile_width();
            let column_in_tile = column % tiling.tile_width();
            for index in 0..batch * RLWE_POLYS {
                // SAFETY: only this unit has these slots modulo this limb.
                let slots = unsafe { self.results.slots_mut(index, column, columns.first, groups) };
                for (slots, out) in slots.iter_mut().zip(out.chunks_exact(out_words / groups)) {
                    slots.write(*layout::block_column(&out[tile * tile_words..], index, column_in_tile));
                }
            }
        }
    }

    /// Folds one group of slots.
    fn fold_group(&self, limb: usize, group: usize, selectors: &[u32], scratch: &mut [u32], out: &mut [u32]) {
        let tiling = self.db.tiling();
        let start = (limb * tiling.groups() + group) * tiling.group_words();
        let group = Group {
            db: &layout::db_words(self.db)[start..start + tiling.group_words()],
            rows: tiling.rows(),
            tile_width: tiling.tile_width(),
            selectors,
            batch: self.queries.len(),
            modulus: &self.moduli[limb],
            scratch,
            out,
        };
        // SAFETY: `Cpu` only hands out kernels of a level that its constructor vouched for.
        unsafe { (self.kernel.fold)(group) };
    }
}

hush_ops::footprint!(Cpu: RlweFold, up to EXPANDED_QUERIES, |step, batch| batch * step.db.fold_bytes());
