//! (6) Fold the first dimension of ring elements: the database once through the cores for up to 8 queries.
//!
//! Every level does the same walk. A unit of work is a group of 16 NTT slots modulo one limb, for all columns: the
//! selectors of these slots are laid out for the kernel of the level and stay in the L2 cache while the group's part
//! of the database, one contiguous run, streams past. The kernel multiplies one chunk (a tile of 16 columns) after
//! another; only the layout of the selectors and this product differ. Its results are cache lines of the folded
//! polynomials.

use hush_math::modulus::Modulus;
use hush_ops::{
    ntt_tiling::{GROUP_SLOTS, NttTiledDb},
    reference::rlwe_fold::RLWE_POLYS,
};
use rayon::prelude::*;

use crate::{Cpu, workspace::Workspace};

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
    let mut results: Vec<Vec<u32>> = selectors.iter().map(|_| vec![0; words]).collect();
    if words == 0 || tiling.rows() == 0 || selectors.is_empty() {
        return results;
    }
    // Passes of about the same size.
    let pass = selectors.len().div_ceil(selectors.len().div_ceil(MAX_BATCH));
    for (queries, results) in selectors.chunks(pass).zip(results.chunks_mut(pass)) {
        fold_pass(cpu, moduli, db, queries, results);
    }
    results
}

/// One pass over the whole database.
fn fold_pass(cpu: &Cpu, moduli: &[Modulus], db: &NttTiledDb, queries: &[&[u32]], results: &mut [Vec<u32>]) {
    let tiling = db.tiling();
    let kernel = cpu.kernels().rlwe_fold.for_batch(queries.len());
    let results = SharedResults::new(tiling, results);
    cpu.install(|| {
        (0..tiling.limbs() * tiling.groups()).into_par_iter().with_max_len(1).for_each(|unit| {
            let selectors = GroupSelectors {
                queries,
                rows: tiling.rows(),
                poly_words: tiling.poly_words(),
                first: unit * GROUP_SLOTS,
            };
            let modulus = &moduli[unit / tiling.groups()];
            cpu.with_workspace(|workspace| fold_group(kernel, db, &selectors, modulus, workspace, &results));
        });
    });
}

/// One unit of work, start to end, on the calling thread.
fn fold_group(
    kernel: &RlweFoldKernel,
    db: &NttTiledDb,
    selectors: &GroupSelectors<'_>,
    modulus: &Modulus,
    workspace: &mut Workspace,
    results: &SharedResults<'_>,
) {
    let (tiling, batch) = (db.tiling(), selectors.queries.len());
    let prepared_words = (kernel.prepared_words)(tiling.rows(), batch);
    let buffer = workspace.words(prepared_words + batch * RLWE_POLYS * BLOCK_WORDS);
    let (prepared, out) = buffer.split_at_mut(prepared_words);
    let group = &layout::db_words(db)[selectors.first / GROUP_SLOTS * tiling.group_words()..];
    // SAFETY: `Cpu` only hands out kernels of a level that its constructor vouched for; `begin` and `end` enclose the
    // chunks on this thread.
    unsafe {
        (kernel.prepare)(selectors, modulus, prepared);
        (kernel.begin)(batch);
    }
    for tile in 0..tiling.tiles() {
        let chunk = Chunk {
            db: &group[tile * tiling.chunk_words()..][..tiling.chunk_words()],
            rows: tiling.rows(),
            prepared,
            batch,
            modulus,
            out,
        };
        // SAFETY: as above.
        unsafe { (kernel.chunk)(chunk) };
        for (index, block) in out.chunks_exact(BLOCK_WORDS).enumerate() {
            let (query, poly) = (index / RLWE_POLYS, index % RLWE_POLYS);
            let (columns, _) = block.as_chunks();
            for (column, slots) in tiling.tile_columns(tile).zip(columns) {
                // SAFETY: these slots, modulo this limb, are this unit's alone.
                unsafe { results.write(query, column, poly, selectors.first, slots) };
            }
        }
    }
    // SAFETY: as above.
    unsafe { (kernel.end)() };
}
