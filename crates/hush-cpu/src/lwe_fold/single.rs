//! The choice of the kernel for one query, by measurement.
//!
//! One query has little arithmetic for each byte of the database, so the core waits for memory most of the time. Which kernel
//! waits least depends on what the core fetches by itself and on how wide it loads. AVX2 is up to 8 % faster than AVX-512 on some
//! cores, and half as fast on others of the same maker. So each kernel folds a little of the first large database that is opened,
//! which takes some 10 ms in all. All kernels give the same words.

use std::time::Instant;

use hush_ops::tiling::{GROUP_ROWS, TiledDb};

use super::{FoldKernel, QueryRows, split_rows};
use crate::Cpu;

/// The number of bytes that a kernel folds at a time, for every [`SLICE_THREADS`] threads, up to [`MOST_SLICES`] times.
const SLICE_BYTES: usize = 16 << 20;
const SLICE_THREADS: usize = 4;
const MOST_SLICES: usize = 8;
/// The number of times that each kernel folds. Its best time counts, as others may be disturbed.
const ROUNDS: usize = 4;
/// The share of the usual kernel's time below which another kernel is used, so that noise decides nothing.
const SHARE: f64 = 0.97;

/// Chooses the kernel for one query, unless it has been chosen or `db` is so small that caches hold it.
pub(crate) fn choose_single(cpu: &Cpu, db: &TiledDb) {
    let kernels = &cpu.kernels().fold;
    if kernels.singles.is_empty() || kernels.single.get().is_some() {
        return;
    }
    let tiling = db.tiling();
    let bytes = SLICE_BYTES * cpu.threads().div_ceil(SLICE_THREADS).min(MOST_SLICES);
    let rows = bytes.div_ceil(GROUP_ROWS * tiling.padded_cols()) * GROUP_ROWS;
    let slices = tiling.rows() / rows;
    if slices < ROUNDS {
        return;
    }
    let mut best = vec![f64::INFINITY; kernels.singles.len()];
    // No slice is folded twice in a row, or it might still be in a cache.
    let mut slice = (0..slices).cycle();
    for _ in 0..ROUNDS {
        for (best, (_, kernel)) in best.iter_mut().zip(kernels.singles) {
            let first = slice.next().unwrap_or(0) * rows;
            *best = best.min(seconds(cpu, kernel, &db.rows(first..first + rows)));
        }
    }
    // If another thread was first, it has measured the same.
    let _ = kernels.single.set(fastest(&best));
}

/// Returns the seconds that one fold of one query takes.
fn seconds(cpu: &Cpu, kernel: &FoldKernel, db: &TiledDb) -> f64 {
    let tiling = db.tiling();
    let cols = db.tiling().cols();
    let query = vec![0; cols];
    let items = split_rows(tiling, 0..tiling.groups(), cpu.threads());
    let start = Instant::now();
    cpu.fold_items_with(kernel, db, &QueryRows { cols, words: &query }, items, |(), _, _| {});
    start.elapsed().as_secs_f64()
}

/// Returns the index of the fastest kernel, or 0 if no other is clearly faster than the first.
fn fastest(seconds: &[f64]) -> usize {
    let least = (0..seconds.len()).min_by(|&a, &b| seconds[a].total_cmp(&seconds[b])).unwrap_or(0);
    if seconds[least] < SHARE * seconds[0] { least } else { 0 }
}

#[cfg(test)]
mod tests {
    use hush_ops::{contract::LweQueries, tiling::Tiling};
    use std::sync::Arc;

    use super::*;
    use crate::{
        features::{Cores, Level},
        lwe_fold::lwe_fold,
    };

    #[test]
    fn another_kernel_has_to_be_clearly_faster() {
        for (seconds, expected) in
            [(&[1.0, 0.99][..], 0), (&[1.0, 0.9], 1), (&[1.0, 1.1], 0), (&[1.0, 0.95, 0.5], 2), (&[1.0], 0)]
        {
            assert_eq!(fastest(seconds), expected, "{seconds:?}");
        }
    }

    #[test]
    fn a_large_database_decides_and_all_kernels_give_the_same_words() {
        let level = Level::detect();
        // SAFETY: the machine has the level.
        let cpu = || unsafe { Cpu::with_cores(level, Cores::detect(), 1) }.expect("a thread starts");
        let of_rows = |rows: usize| {
            let tiling = Tiling::new(rows, 8192);
            let bytes: Vec<u8> = (0..tiling.bytes()).map(|at| (at % 251) as u8).collect();
            TiledDb::new(tiling, Arc::new(bytes)).expect("its length")
        };
        let words = (0..8192u32).map(|at| at.wrapping_mul(2_654_435_761)).collect();
        let queries = LweQueries { cols: 8192, words };
        let small = of_rows(1000);
        let large = of_rows(8192);
        let usual = cpu();
        let chosen = cpu();
        choose_single(&chosen, &small);
        assert_eq!(chosen.kernels().fold.single_level(), None);
        choose_single(&chosen, &large);
        let has_choice = !chosen.kernels().fold.singles.is_empty();
        assert_eq!(chosen.kernels().fold.single_level().is_some(), has_choice);
        let expected = lwe_fold(&usual, &small, &queries);
        for index in 0..chosen.kernels().fold.singles.len() {
            let forced = cpu();
            forced.kernels().fold.single.set(index).expect("nothing is chosen");
            assert!(lwe_fold(&forced, &small, &queries) == expected, "kernel {index}");
        }
    }
}
