//! Steps (5)(6): folds the first dimension of a database of symbols.
//!
//! ```text
//! for every column, for every 4 rows, for every limb:
//!     values = NTT(symbols of the rows)                          (once for all queries; they never leave the cache)
//!     for every query:  sums += values * selectors               (64 bits, reduced before they overflow)
//! ```

use hush_ops::{
    contract::{RLWE_POLYS, RlweBatch},
    steps::{SymbolFold, poly_bytes},
    symbol_tiling::SymbolDb,
};
use rayon::prelude::*;

use super::{
    row_sums::{ROWS, most_rows, multiply_rows, reduce},
    unpack::unpack,
};
use crate::{Cpu, buffer, ring::CpuRing, workspace::Workspace};

/// The most queries that share the transforms of a pass. With more, selectors and sums leave the caches of a core. (Measured: with
/// 32 at once a query takes more than twice as long.)
const MAX_BATCH: usize = 8;

/// Computes [`hush_ops::contract::TfheOps::symbol_fold`] for operands that fit together.
pub(super) fn symbol_fold(
    cpu: &Cpu,
    ring: &CpuRing,
    db: &SymbolDb,
    selectors: &[&RlweBatch],
) -> Vec<RlweBatch> {
    // All passes are of about the same size.
    let pass = selectors.len().div_ceil(selectors.len().div_ceil(MAX_BATCH).max(1)).max(1);
    selectors.chunks(pass).flat_map(|queries| fold_pass(cpu, ring, db, queries)).collect()
}

/// Folds some queries in one pass, in parallel over columns.
fn fold_pass(cpu: &Cpu, ring: &CpuRing, db: &SymbolDb, selectors: &[&RlweBatch]) -> Vec<RlweBatch> {
    let columns = db.tiling().columns();
    let ciphertext_words = RLWE_POLYS * ring.kept.words();
    let mut results: Vec<Vec<u32>> =
        selectors.iter().map(|_| buffer::zeroed_vec(columns * ciphertext_words)).collect();
    let mut by_column: Vec<Vec<&mut [u32]>> = (0..columns).map(|_| Vec::new()).collect();
    for result in &mut results {
        let ciphertexts = result.chunks_exact_mut(ciphertext_words);
        by_column.iter_mut().zip(ciphertexts).for_each(|(column, ciphertext)| column.push(ciphertext));
    }
    let selectors: Vec<&[u32]> = selectors.iter().map(|batch| &batch.words[..]).collect();
    cpu.install(|| {
        by_column.into_par_iter().enumerate().for_each(|(column, mut out)| {
            cpu.with_workspace(|workspace| fold_column(ring, db, column, &selectors, &mut out, workspace));
        });
    });
    results.into_iter().map(|words| RlweBatch { ciphertext_words, words: words.into() }).collect()
}

/// Adds the sum over a column to `out`, a ciphertext a query.
fn fold_column(
    ring: &CpuRing,
    db: &SymbolDb,
    column: usize,
    selectors: &[&[u32]],
    out: &mut [&mut [u32]],
    workspace: &mut Workspace,
) {
    let kept = &ring.kept;
    let tiling = db.tiling();
    let degree = kept.degree();
    let words = RLWE_POLYS * kept.words();
    let sums_words = 2 * words * selectors.len();
    let (buffer, transform) =
        workspace.ring_buffers(tiling.plaintext_words() + ROWS * degree + sums_words, kept.transform_words());
    let (sums, buffer) = buffer.split_at_mut(sums_words);
    let (values, packed) = buffer.split_at_mut(ROWS * degree);
    sums.fill(0);
    let shortest = kept.limbs().iter().map(|limb| most_rows(limb.ntt.plan().modulus().bits())).min();
    let at_once = shortest.unwrap_or(ROWS).min(tiling.rows());
    let mut added = 0;
    for first in (0..tiling.rows()).step_by(ROWS) {
        let rows = first..tiling.rows().min(first + ROWS);
        for (l, limb) in kept.limbs().iter().enumerate() {
            for (row, values) in rows.clone().zip(values.chunks_exact_mut(degree)) {
                unpack(kept.level(), limb, tiling, db.plaintext(row, column), packed, values);
                limb.ntt.forward(values, transform);
            }
            let values = &values[..rows.len() * degree];
            for (selectors, sums) in selectors.iter().zip(sums.chunks_exact_mut(2 * words)) {
                let half = |row: usize, poly: usize| {
                    &selectors[row * words + poly * kept.words() + l * degree..][..degree]
                };
                let mut of_rows = [[&[][..]; RLWE_POLYS]; ROWS];
                of_rows
                    .iter_mut()
                    .zip(rows.clone())
                    .for_each(|(slot, row)| *slot = [half(row, 0), half(row, 1)]);
                let (a, b) = sums.split_at_mut(2 * kept.words());
                let of_limb = 2 * l * degree..2 * (l + 1) * degree;
                let sums = [&mut a[of_limb.clone()], &mut b[of_limb]];
                multiply_rows(kept.level(), values, &of_rows[..rows.len()], sums);
            }
        }
        added += rows.len();
        if added + ROWS > at_once || rows.end == tiling.rows() {
            added = 0;
            for (out, sums) in out.iter_mut().zip(sums.chunks_exact_mut(2 * words)) {
                let limbs = kept.limbs().iter().cycle();
                for ((limb, out), sums) in
                    limbs.zip(out.chunks_exact_mut(degree)).zip(sums.chunks_exact_mut(2 * degree))
                {
                    reduce(kept.level(), limb.montgomery, sums, out);
                }
            }
        }
    }
}

hush_ops::footprint!(Cpu: SymbolFold, up to MAX_BATCH, |step, batch| {
    let &SymbolFold { ring, db, parts } = step;
    batch * (db.rows() + db.columns().div_ceil(parts)) * 2 * poly_bytes(&ring)
});
