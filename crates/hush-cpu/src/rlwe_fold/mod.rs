//! (6) Fold the first dimension of ring elements: the database once through the cores for up to 8 queries.
//!
//! Every level does the same walk. A group of 16 NTT slots modulo one limb, for all columns, is one contiguous run of
//! the database: the selectors of these slots are laid out for the kernel of the level and stay in the L2 cache while
//! the run streams past. The kernel multiplies one chunk (a tile of 16 columns) after another; only the layout of the
//! selectors and this product differ. A unit of work is a few neighbouring groups: selectors are read, and results
//! written, a few cache lines at a time, as both are spread over a page for every polynomial.

use std::ops::Range;

use hush_math::modulus::Modulus;
use hush_ops::{
    ntt_tiling::{GROUP_SLOTS, NttTiledDb, NttTiling},
    reference::rlwe_fold::RLWE_POLYS,
};
use rayon::prelude::*;

use crate::{Cpu, buffer, workspace::Workspace};

mod amx;
mod amx_selectors;
mod ifma;
mod kernel;
mod lanes;
mod layout;
mod vectors;

pub(crate) use kernel::RlweFoldKernels;

use kernel::{BLOCK_WORDS, Chunk, MAX_BATCH, RlweFoldKernel};
use layout::{GroupSelectors, SharedResults};

/// Most groups of a unit of work. (Measured: with 1, reading selectors and writing results takes a third of the time
/// of a pass for 8 queries.)
const UNIT_GROUPS: usize = 8;
/// Fewest units for a thread, if groups of one unit suffice.
const UNITS_PER_THREAD: usize = 4;

/// As [`hush_ops::reference::rlwe_fold::rlwe_fold`], which has the orders of selectors and results, for operands that
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
    // Passes of about the same size.
    let pass = selectors.len().div_ceil(selectors.len().div_ceil(MAX_BATCH));
    for (queries, results) in selectors.chunks(pass).zip(results.chunks_mut(pass)) {
        let results = SharedResults::new(tiling, results);
        let kernel = cpu.kernels().rlwe_fold.for_batch(queries.len());
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
    let firsts = |limb: usize| (0..tiling.groups()).step_by(unit).map(move |first| (limb, first));
    (0..tiling.limbs()).flat_map(firsts).map(|(limb, first)| Unit { limb, groups: groups(first) }).collect()
}

/// One pass over the whole database.
struct Pass<'a> {
    kernel: &'a RlweFoldKernel,
    moduli: &'a [Modulus],
    db: &'a NttTiledDb,
    queries: &'a [&'a [u32]],
    results: SharedResults<'a>,
}

impl Pass<'_> {
    /// One unit of work, start to end, on the calling thread.
    fn fold_unit(&self, unit: &Unit, workspace: &mut Workspace) {
        let (tiling, batch) = (self.db.tiling(), self.queries.len());
        let first = unit.limb * tiling.degree() + unit.groups.start * GROUP_SLOTS;
        let selector_words = layout::selector_words(tiling.rows(), batch);
        let prepared_words = (self.kernel.prepared_words)(tiling.rows(), batch);
        let out_words = tiling.tiles() * batch * RLWE_POLYS * BLOCK_WORDS;
        let buffer = workspace.words(prepared_words + unit.groups.len() * (selector_words + out_words));
        let (prepared, rest) = buffer.split_at_mut(prepared_words);
        let (selectors, out) = rest.split_at_mut(unit.groups.len() * selector_words);
        layout::gather_selectors(self.queries, tiling, first, selectors);
        let groups = selectors.chunks_exact(selector_words).zip(out.chunks_exact_mut(out_words));
        for (group, (words, out)) in unit.groups.clone().zip(groups) {
            let selectors = GroupSelectors { words, rows: tiling.rows(), batch };
            self.fold_group(unit.limb, group, &selectors, prepared, out);
        }
        for column in 0..tiling.columns() {
            for index in 0..batch * RLWE_POLYS {
                // SAFETY: these slots, modulo this limb, are this unit's alone.
                let slots = unsafe { self.results.slots_mut(index, column, first, unit.groups.len()) };
                for (slots, out) in slots.iter_mut().zip(out.chunks_exact(out_words)) {
                    slots.write(*layout::block_column(out, batch, index, column));
                }
            }
        }
    }

    /// Folds one group of slots: `out` becomes `[tile][query][poly][16 columns][slot of the group]`.
    fn fold_group(
        &self,
        limb: usize,
        group: usize,
        selectors: &GroupSelectors<'_>,
        prepared: &mut [u32],
        out: &mut [u32],
    ) {
        let (tiling, modulus) = (self.db.tiling(), &self.moduli[limb]);
        let start = (limb * tiling.groups() + group) * tiling.group_words();
        let db = &layout::db_words(self.db)[start..start + tiling.group_words()];
        // SAFETY: `Cpu` only hands out kernels of a level that its constructor vouched for; `begin` and `end` enclose
        // the chunks on this thread.
        unsafe {
            (self.kernel.prepare)(selectors, modulus, prepared);
            (self.kernel.begin)(selectors.batch);
            let blocks = out.chunks_exact_mut(selectors.batch * RLWE_POLYS * BLOCK_WORDS);
            for (db, out) in db.chunks_exact(tiling.chunk_words()).zip(blocks) {
                (self.kernel.chunk)(Chunk {
                    db,
                    rows: tiling.rows(),
                    prepared,
                    batch: selectors.batch,
                    modulus,
                    out,
                });
            }
            (self.kernel.end)();
        }
    }
}
